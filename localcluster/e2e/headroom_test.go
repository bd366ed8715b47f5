package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// haveNodes waits until n nodes are Initialized and there are no more claims.
func (r *testRig) haveNodes(n int) {
	r.t.Helper()
	r.eventually(later, fmt.Sprintf("%d nodes", n), func(context.Context) (bool, string, error) {
		have, claims := r.ready(), len(r.names())
		return have == n && claims == n, fmt.Sprintf("%d nodes, %d claims", have, claims), nil
	})
}

// K-54: the life of a NodePool's headroom on a real cluster. joinerctl sets it, the room comes, real pods take it at
// once, and it is restored. Unreadable headroom is reported, and pods get nodes all the same. At a limit pods get
// nodes, and the headroom does not. Outside its time there is none. When it is removed, its nodes go.
func TestK54_TheLifeOfHeadroom(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default",
		amd64Linux+"\n- {key: node.kubernetes.io/instance-type, operator: In, values: [c-2x-amd64-linux]}", quick))
	r.apply(deployment("web", 4, "{cpu: 1500m}", ""))
	r.allRunning(4, later)
	headroom := func(args ...string) {
		t.Helper()
		if code, out, failures := r.ask(append([]string{"headroom"}, args...)...); code != 0 || failures != "" {
			t.Fatalf("joinerctl headroom %v: exit %d, %s%s", args, code, out, failures)
		}
	}
	headroom("set", "default", "50%")
	r.poolCondition("default", "Headroom", "True", "50%: there is room for 2 pods")
	r.haveNodes(6)
	if _, out, _ := r.ask("headroom", "show"); !strings.Contains(out, "50%") || !strings.Contains(out,
		"Kept 50%: there is room for 2 pods") {
		t.Errorf("joinerctl headroom show says\n%s", out)
	}
	r.stay(r.names(), 10*time.Second) // though nothing is on two of them, and empty ones go at once

	before, err := r.nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.run("scale", "deployment", "web", "--replicas=6")
	r.allRunning(6, soon)
	pods, err := r.pods(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods {
		if _, there := before[p.Spec.NodeName]; !there {
			t.Errorf("%s runs on %s, which was launched for it: there was room", p.Name, p.Spec.NodeName)
		}
	}
	r.haveNodes(9) // room for half of six
	r.poolCondition("default", "Headroom", "True", "50%: there is room for 3 pods")

	r.limit("default", "8", "null") // real pods come first
	r.run("scale", "deployment", "web", "--replicas=8")
	r.allRunning(8, later)
	r.poolCondition("default", "Headroom", "False", "50%: there is room for 0 of 4 pods", "for 4 there is none")
	r.haveNodes(8)

	r.run("annotate", "--overwrite", "nodepool", "default", "joiner.sh/headroom=lots")
	r.poolCondition("default", "Headroom", "False",
		`annotation joiner.sh/headroom is "lots": want a share from 1% to 1000%`)
	r.told("NodePool", "default", "IgnoredField", `annotation joiner.sh/headroom is "lots"`)
	if code, out, _ := r.ask("headroom", "show"); code != 1 || !strings.Contains(out, `is "lots": want a share`) {
		t.Errorf("joinerctl headroom show: exit %d\n%s", code, out)
	}
	r.poolCondition("default", "Ready", "True")
	r.limit("default", "null", "null")
	r.run("scale", "deployment", "web", "--replicas=9")
	r.allRunning(9, later)
	r.haveNodes(9)

	headroom("set", "default", "cpu=3", "--schedule", "@yearly", "--for", "1m", "--time-zone", "Europe/Berlin")
	r.poolCondition("default", "Headroom", "False", "no room is kept at this time")
	r.stay(r.names(), 5*time.Second)
	headroom("set", "default", "cpu=3") // two of the pods that run
	r.haveNodes(11)
	r.poolCondition("default", "Headroom", "True", "cpu=3: there is room for 2 pods")
	headroom("clear", "default")
	r.haveNodes(9)
	r.run("delete", "deployment", "web", "--wait=false")
	r.nothingLeft(later)
}

// K-54: the life of a floor on a real cluster. It is filled without any pod, and kept though empty nodes go at once. A
// node that somebody deletes is replaced. A limit is stronger, and a restart changes nothing. When the floor is
// removed, the nodes go.
func TestK54_TheLifeOfAFloor(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default",
		amd64Linux+
			"\n- {key: node.kubernetes.io/instance-type, operator: In, values: [c-2x-amd64-linux, c-4x-amd64-linux]}",
		quick))
	r.run("annotate", "nodepool", "default", "joiner.sh/min-nodes=three")
	r.poolCondition("default", "MinNodes", "False",
		`annotation joiner.sh/min-nodes is "three": want a whole number of nodes`)
	r.poolCondition("default", "Ready", "True")
	r.run("annotate", "--overwrite", "nodepool", "default", "joiner.sh/min-nodes=3")
	r.haveNodes(3)
	r.poolCondition("default", "MinNodes", "True", "it has 3 of the 3 nodes that it always keeps")
	nodes, err := r.nodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		if kind := node.Labels["node.kubernetes.io/instance-type"]; kind != "c-2x-amd64-linux" {
			t.Errorf("%s is a %s, want the cheapest", node.Name, kind)
		}
		if code, text := r.explained("node", node.Name); code != "MinNodes" ||
			!strings.Contains(text, "always keeps 3 nodes") {
			t.Errorf("explain node %s says %s:\n%s", node.Name, code, text)
		}
	}
	r.stay(r.names(), 10*time.Second)

	claims, err := r.claims(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone := claims[0]
	r.run("delete", "nodeclaim", gone.Name, "--wait=false")
	r.eventually(later, "the node to be made up for", func(ctx context.Context) (bool, string, error) {
		now, err := r.claims(ctx)
		there := slices.ContainsFunc(now, func(
			c karpenterv1.NodeClaim) bool {
			return c.UID == gone.UID
		}) // the new one may have the old one's name
		return len(now) == 3 && r.ready() == 3 && !there, fmt.Sprint(r.names()), err
	})
	r.apply(deployment("web", 5, "{cpu: 1500m}", "")) // pods above the floor get nodes, which go with them
	r.allRunning(5, later)
	r.run("scale", "deployment", "web", "--replicas=0")
	r.haveNodes(3)

	r.kill("with a floor and no pod")
	r.stay(r.names(), 10*time.Second)
	r.limit("default", "2", "null")
	r.haveNodes(2)
	r.poolCondition("default", "MinNodes", "False",
		"it has 2 of the 3 nodes that it always keeps: nodes 2 of 2 (soft limit)")
	r.limit("default", "null", "null")
	r.haveNodes(3)
	r.run("annotate", "nodepool", "default", "joiner.sh/min-nodes-")
	r.nothingLeft(later)
}
