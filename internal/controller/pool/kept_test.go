package pool_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/pool"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// annotated is the pool after a look at it with these annotations.
func (r *rig) annotated(t *testing.T, annotations ...string) *karpenterv1.NodePool {
	t.Helper()
	p := r.reconcile(t)
	for _, key := range []string{karpenterv1.MinNodesAnnotationKey, karpenterv1.HeadroomAnnotationKey} {
		delete(p.Annotations, key)
	}
	for i := 0; i < len(annotations); i += 2 {
		p.Annotations[annotations[i]] = annotations[i+1]
	}
	if err := r.server.Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	return r.reconcile(t)
}

// K-54: a pool with a floor reports whether it has the nodes, and what prevents that. It stays Ready. An invalid
// annotation is a warning, and without the annotation nothing is reported.
func TestK54_APoolSaysHowItsFloorStands(t *testing.T) {
	t.Parallel()
	const kind = karpenterv1.ConditionTypeMinNodes
	for name, row := range map[string]struct {
		cluster, value string
		status         metav1.ConditionStatus
		says           string
	}{
		"kept": {"pool default min-nodes=1\nnode n1 type=m5.large zone=a pool=default", "1", "True",
			"Kept it has 1 of the 1 nodes"},
		"on its way": {"pool default min-nodes=2\nnode n1 type=m5.large zone=a pool=default", "2", "False",
			"OnTheWay it has 1 of the 2 nodes that it always keeps; the others are launched"},
		"a limit": {"pool default min-nodes=2 nodes=1\nnode n1 type=m5.large zone=a pool=default", "2",
			"False", "LimitReached it has 1 of the 2 nodes that it always keeps: nodes 1 of 1 (soft limit)"},
		"not ready": {"pool default min-nodes=2 blocked=it_is_so", "2", "False",
			"Missing it has 0 of the 2 nodes that it always keeps: it is so"},
		"sold out": {"pool default min-nodes=2 need=zone=b", "2", "False",
			"Missing it has 0 of the 2 nodes that it always keeps: every instance type that it admits is sold out"},
		"not understood": {"pool default", "two", "False",
			`Ignored annotation joiner.sh/min-nodes is "two": want a whole number of nodes from 0 to 100000`},
		"not seen yet": {"pool default", "2", "Unknown", "NotPlanned"},
	} {
		r := newRig(t, newPool())
		s, err := enginetest.Parse("type m5.large cpu=2 mem=8Gi zones=a od=0.096\n" + row.cluster)
		if err != nil {
			t.Fatal(err)
		}
		r.picture = *s
		p := r.annotated(t, karpenterv1.MinNodesAnnotationKey, row.value)
		got, _ := condition.Get(p.Status.Conditions, kind)
		if text := got.Reason + " " + got.Message; got.Status != row.status || !strings.HasPrefix(text, row.says) {
			t.Errorf("%s: %s %s; want %s %s", name, got.Status, text, row.status, row.says)
		}
		check(t, p, karpenterv1.ConditionTypeReady, metav1.ConditionTrue)
		if said := strings.Join(r.tape.Said(), "\n"); strings.Contains(said,
			"default IgnoredField: annotation joiner.sh/min-nodes") != (row.value == "two") {
			t.Errorf("%s: said %s", name, said)
		}
		if _, found := condition.Get(r.annotated(t).Status.Conditions, kind); found {
			t.Errorf("%s: the pool keeps no nodes any more, and says that it does", name)
		}
	}
}

// K-54: a pool with headroom says whether there is the room, as a CapacityBuffer does.
func TestK54_APoolSaysHowItsHeadroomStands(t *testing.T) {
	t.Parallel()
	const kind = karpenterv1.ConditionTypeHeadroom
	for name, row := range map[string]struct {
		value  string
		room   pool.Headroom
		status metav1.ConditionStatus
		says   string
	}{
		"there": {"10%", pool.Headroom{On: true, Pods: 2, Room: view.Room{There: 2}}, "True",
			"Kept 10%: there is room for 2 pods"},
		"nothing runs": {"10%", pool.Headroom{On: true}, "True",
			"Kept 10%: no pods run that there could be a share of"},
		"on its way": {"10%", pool.Headroom{On: true, Pods: 2, Room: view.Room{There: 1, Planned: 1}}, "False",
			"OnTheWay 10%: there is room for 1 of 2 pods, for 1 it is on its way"},
		"a limit": {"10%", pool.Headroom{On: true, Pods: 2,
			Room: view.Room{There: 1, Missing: 1, Cause: cause.SoftLimitNodes,
				Text: "full"}}, "False", "LimitReached 10%: there is room for 1 of 2 pods, for 1 there is none: full"},
		"paused": {"10%", pool.Headroom{On: true, Pods: 1,
			Room: view.Room{Missing: 1, Cause: cause.PoolPaused, Text: "paused"}}, "False", "PoolPaused 10%"},
		"it fits not": {"10%", pool.Headroom{On: true, Pods: 1,
			Room: view.Room{Missing: 1, Cause: cause.PodTooLarge, Text: "large"}}, "False", "Missing 10%"},
		"not now": {"10%", pool.Headroom{}, "False", "NotNow 10%: no room is kept at this time"},
		"no plan yet": {"10%", pool.Headroom{On: true, Pods: 2}, "Unknown",
			"NotPlanned 10%: no plan has been made for it yet"},
		"not understood": {"some", pool.Headroom{}, "False",
			`Ignored annotation joiner.sh/headroom is "some": want a share from 1% to 1000%`},
	} {
		r := newRig(t, newPool())
		config := r.config()
		config.Headroom = func(string) pool.Headroom { return row.room }
		r.step = pool.New(config)
		p := r.annotated(t, karpenterv1.HeadroomAnnotationKey, row.value)
		got, _ := condition.Get(p.Status.Conditions, kind)
		if text := got.Reason + " " + got.Message; got.Status != row.status || !strings.HasPrefix(text, row.says) {
			t.Errorf("%s: %s %s; want %s %s", name, got.Status, text, row.status, row.says)
		}
		check(t, p, karpenterv1.ConditionTypeReady, metav1.ConditionTrue)
		// while the next plan is made, what the last one said stands
		if row.room.Pods == 2 && row.status != "Unknown" {
			row.room = pool.Headroom{On: true, Pods: 3, Room: row.room.Room}
			if now, _ := condition.Get(r.reconcile(t).Status.Conditions, kind); now != got {
				t.Errorf("%s: %+v, and before the next plan %+v", name, got, now)
			}
		}
		if _, found := condition.Get(r.annotated(t).Status.Conditions, kind); found {
			t.Errorf("%s: the pool keeps no room any more, and says that it does", name)
		}
	}
}
