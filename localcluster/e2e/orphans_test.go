package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// V-07: the API server accepts a schedule with the right form that names no moment. The pool says so in an event, and
// none of its nodes is disrupted: the budget may have been meant to forbid it.
func TestAScheduleThatNamesNoMoment(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux,
		"disruption: {consolidateAfter: 0s, budgets: [{nodes: '100%'}, {nodes: 0, schedule: '99 99 * * *', duration: 1h}]}"))
	r.apply(deployment("web", 1, "{cpu: '1'}", ""))
	r.allRunning(1, soon)
	r.told("NodePool", "default", "DisruptionBlocked",
		`spec.disruption.budgets[1]: schedule is "99 99 * * *": want five cron fields`)
	r.run("scale", "deployment", "web", "--replicas=0")
	time.Sleep(10 * time.Second)
	r.count(1)
}

// P-33, D-02: when a pool is deleted, its claims go with it, drained. Those that the user keeps (--cascade=orphan)
// stay as they are, and say why nothing disrupts them. Deleted by hand they end like any other.
func TestThePoolIsDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	pool := kwokPool("default", amd64Linux, quick)
	r.apply(pool)
	r.apply(deployment("web", 2, "{cpu: '1'}", oneEach("web")))
	r.allRunning(2, soon)
	r.run("delete", "nodepool", "default")
	r.nothingLeft(later)

	r.apply(pool)
	r.allRunning(2, later)
	r.run("delete", "nodepool", "default", "--cascade=orphan")
	r.run("scale", "deployment", "web", "--replicas=1")
	r.told("NodeClaim", "", "DisruptionBlocked",
		"PoolGone: its NodePool default is gone. To do: delete the NodeClaim to remove it")
	r.count(2)
	r.oneNodePerClaim()
	r.run("scale", "deployment", "web", "--replicas=0")
	r.run("delete", "nodeclaims", "--all", "--wait=false")
	r.nothingLeft(later)
}

// P-40, V-11: the node class is deleted while its nodes run. They stay and can be removed. Their pool says what is
// missing and launches nothing.
func TestTheNodeClassIsDeleted(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, quick))
	r.apply(deployment("web", 2, "{cpu: '1'}", oneEach("web")))
	r.allRunning(2, soon)
	r.run("delete", "kwoknodeclass", "default", "--wait=false")
	r.poolCondition("default", "NodeClassReady", "False", "default")
	r.run("scale", "deployment", "web", "--replicas=3")
	r.told("Pod", "", "FailedScheduling", "KWOKNodeClass default does not exist")
	r.count(2)
	r.run("scale", "deployment", "web", "--replicas=0")
	r.run("delete", "nodeclaims", "--all", "--wait=false")
	r.nothingLeft(later)
}

// D-06: an instance type vanishes from the catalogue while its node runs. The node has drifted, and is replaced.
func TestAnInstanceTypeVanishes(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "types.json")
	writeTypes(t, file, instanceType{"old.type", 4, 0.2})
	r := newRig(t, func(o *rig.Options) { o.Args = []string{"--instance-types-file-path=" + file} })
	r.apply(kwokPool("default", amd64Linux, quick))
	r.apply(deployment("web", 1, "{cpu: '1'}", ""))
	r.allRunning(1, soon)
	before := r.names()
	if err := r.StopJoiner(); err != nil {
		t.Fatal(err)
	}
	writeTypes(t, file, instanceType{"new.type", 4, 0.2})
	if err := r.StartJoiner(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.eventually(later, "a node of the new type", func(ctx context.Context) (bool, string, error) {
		claims, err := r.claims(ctx)
		return len(claims) == 1 && !slices.Contains(before, claims[0].Name), fmt.Sprintf("%d claims", len(claims)), err
	})
	r.told("NodeClaim", before[0], "Drifted",
		"InstanceTypeNotFound: the instance type old.type is not in the catalogue any more")
	r.allRunning(1, soon)
}

// instanceType is a type of a catalogue that a test writes: sold on demand in one zone, with 4 GiB for each core.
type instanceType struct {
	name  string
	cores int
	price float64 // dollars per hour
}

// writeTypes writes a catalogue of the KWOK provider.
func writeTypes(t *testing.T, file string, types ...instanceType) {
	t.Helper()
	var list []any
	for _, kind := range types {
		list = append(list, map[string]any{
			"name": kind.name, "architecture": "amd64", "operatingSystems": []string{"linux"},
			"resources": map[string]string{"cpu": fmt.Sprint(kind.cores), "memory": fmt.Sprintf("%dGi", 4*kind.cores),
				"pods": "50", "ephemeral-storage": "20Gi"},
			"offerings": []any{map[string]any{"Price": kind.price, "Available": true, "Requirements": []any{
				map[string]any{"key": "karpenter.sh/capacity-type", "operator": "In", "values": []string{"on-demand"}},
				map[string]any{"key": "topology.kubernetes.io/zone", "operator": "In", "values": []string{"zone-a"}},
			}}},
		})
	}
	content, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
