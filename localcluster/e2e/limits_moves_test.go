package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// sized is what a pool asks for: amd64 machines with so many CPUs.
func sized(cpus string) string {
	return amd64Linux + "\n- {key: karpenter.kwok.sh/instance-cpu, operator: In, values: ['" + cpus + "']}"
}

// L-10, L-13: a terminating node counts until it is gone. At a limit of one, its pod's next node is not launched while
// a PodDisruptionBudget holds up the drain. It comes at once when nothing does any more.
func TestATerminatingNodeCounts(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, "disruption: {consolidateAfter: Never}\nhardLimits: {nodes: 1}"))
	r.apply(deployment("web", 1, "{cpu: '1'}", oneEach("web")) + guard("web", "maxUnavailable: 0"))
	r.allRunning(1, soon)
	watch := r.watchClaims("karpenter.sh/nodepool=default")
	first := r.names()
	r.run("delete", "nodeclaim", first[0], "--wait=false")
	r.run("scale", "deployment", "web", "--replicas=2") // a pod that no node has room for
	r.told("Pod", "", "FailedScheduling", "nodes 1 of 1 (hard limit)")
	for range 10 {
		claims, err := r.claims(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(claims) != 1 || claims[0].DeletionTimestamp == nil {
			t.Fatalf("%d claims, want the one that is being deleted", len(claims))
		}
		time.Sleep(500 * time.Millisecond)
	}
	r.run("delete", "poddisruptionbudget", "web")
	r.eventually(later, "another claim instead of the first", func(ctx context.Context) (bool, string, error) {
		claims, err := r.claims(ctx)
		return len(claims) == 1 && claims[0].DeletionTimestamp == nil, fmt.Sprintf("%d claims", len(claims)), err
	})
	if most := watch.max(); most != 1 {
		t.Errorf("there were %d claims at a time; want 1", most)
	}
}

// L-32: at the hard limit a node whose pods fit elsewhere is still removed: nothing has to be launched for them.
func TestANodeWhosePodsFitElsewhereGoesAtTheHardLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", sized("4"),
		"disruption: {consolidateAfter: 1s, budgets: [{nodes: '100%'}]}\nhardLimits: {nodes: 2}"))
	r.apply(deployment("web", 2, "{cpu: '1'}", oneEach("web")))
	r.allRunning(2, soon)
	r.apply(deployment("filler", 2, "{cpu: '1'}", `topologySpreadConstraints:
- {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: filler}}}`))
	r.allRunning(4, soon)
	before, watch := r.names(), r.watchClaims("karpenter.sh/nodepool=default")
	r.run("scale", "deployment", "web", "--replicas=1")
	r.eventually(later, "one of the two nodes alone", func(ctx context.Context) (bool, string, error) {
		now := r.names()
		return len(now) == 1 && slices.Contains(before, now[0]), fmt.Sprintf("%v of %v", now, before), nil
	})
	r.allRunning(3, soon)
	if most := watch.max(); most != 2 {
		t.Errorf("there were %d claims at a time; want 2", most)
	}
	if output := r.run("get", "events", "--field-selector=reason=DisruptionBlocked", "-o",
		"name"); strings.TrimSpace(output) != "" {
		t.Errorf("%q: nothing was to be blocked", output)
	}
}

// L-30, L-33: a command needs room only for what it launches: with one free slot, three nodes become one, which is
// cheaper.
func TestThreeNodesBecomeOneInOneFreeSlot(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "types.json")
	writeTypes(t, file, instanceType{"small", 2, 0.10}, instanceType{"large", 8, 0.15})
	r := newRig(t, func(o *rig.Options) { o.Args = []string{"--instance-types-file-path=" + file} })
	pool := func(types string) {
		r.apply(kwokPool("default", amd64Linux+"\n- {key: node.kubernetes.io/instance-type, operator: In, values: ["+
			types+"]}", "disruption: {consolidateAfter: 1s, budgets: [{nodes: '100%'}]}\nhardLimits: {nodes: 4}"))
	}
	pool("small")
	r.apply(deployment("web", 3, "{cpu: 1500m}", ""))
	r.allRunning(3, soon)
	r.count(3)
	before, watch := r.names(), r.watchClaims("karpenter.sh/nodepool=default")
	pool("small, large")
	var replaces []string
	r.eventually(later, "one large node", func(ctx context.Context) (bool, string, error) {
		claims, err := r.claims(ctx)
		for _, c := range claims {
			if names := c.Annotations[karpenterv1.ReplacesAnnotationKey]; names != "" {
				replaces = strings.Split(names, ",")
			}
		}
		return len(claims) == 1 && !slices.Contains(before, claims[0].Name), fmt.Sprintf("%d claims", len(claims)), err
	})
	r.allRunning(3, soon)
	if slices.Sort(replaces); !slices.Equal(replaces, before) {
		t.Errorf("one claim replaces %v, want %v", replaces, before)
	}
	if most := watch.max(); most != 4 {
		t.Errorf("there were %d claims at a time; want 4", most)
	}
}
