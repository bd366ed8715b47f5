package translate

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// owned returns waitingPod as a pod of a controller.
func owned(apiVersion, kind, name string) *corev1.Pod {
	pod := waitingPod()
	pod.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: apiVersion, Kind: kind, Name: name, Controller: new(true)},
	}
	return pod
}

// P-03: a pod without constraints of its own is spread with those that its services and its owner select.
func TestDefaultSpreadSelectsByServicesAndOwner(t *testing.T) {
	t.Parallel()
	constraints,
		err := ParseDefaultSpread(
		`[{"maxSkew":2,"topologyKey":"topology.kubernetes.io/zone","whenUnsatisfiable":"DoNotSchedule","minDomains":3},
		{"maxSkew":1,"topologyKey":"kubernetes.io/hostname","whenUnsatisfiable":"ScheduleAnyway"}]`)
	if err != nil {
		t.Fatal(err)
	}
	known := Workloads{
		Services: map[string]map[string]map[string]string{
			"shop":  {"front": {"app": "web"}, "other": {"app": "db"}},
			"other": {"front": {"hash": "abc"}},
		},
		Owners: map[string]cluster.Selector{
			"ReplicaSet shop/web-abc": Selector(&metav1.LabelSelector{MatchLabels: map[string]string{"hash": "abc"}}),
			"StatefulSet shop/db":     {Enabled: true, Labels: requirement.FromLabels(map[string]string{"set": "db"})},
		},
	}
	own := waitingPod()
	own.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{
		{TopologyKey: "zone", MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway},
	}
	alone := waitingPod()
	alone.Labels = nil
	for name, row := range map[string]struct {
		pod  *corev1.Pod
		want string // "" for no constraint
	}{
		"a service":                 {waitingPod(), "app=web"},
		"service and replica set":   {owned("apps/v1", "ReplicaSet", "web-abc"), "app=web hash=abc"},
		"service and stateful set":  {owned("apps/v1", "StatefulSet", "db"), "app=web set=db"},
		"an owner that is not seen": {owned("apps/v1", "ReplicaSet", "unseen"), "app=web"},
		"an owner of another kind":  {owned("batch/v1", "Job", "web-abc"), "app=web"},
		"a group of another name":   {owned("example.com/v1", "ReplicaSet", "web-abc"), "app=web"},
		"nothing it belongs to":     {alone, ""},
		"constraints of its own":    {own, ""},
	} {
		shape := &cluster.Shape{}
		AddDefaultSpread(shape, row.pod, constraints, known)
		if row.want == "" {
			if len(shape.Spread)+len(shape.SoftSpread) > 0 {
				t.Errorf("%s: spread %v, %v; want none", name, shape.Spread, shape.SoftSpread)
			}
			continue
		}
		if len(shape.Spread) != 1 || len(shape.SoftSpread) != 1 || shape.Spread[0].Pods.String() != row.want ||
			shape.Spread[0].MaxSkew != 2 ||
			shape.Spread[0].MinDomains != 3 || shape.SoftSpread[0].Key != "kubernetes.io/hostname" ||
			shape.SoftSpread[0].Pods.String() != row.want {
			t.Errorf("%s: spread %v, soft %v; want one of each, by %s", name, shape.Spread, shape.SoftSpread, row.want)
		}
	}
}

// P-03: the defaults of a kube-scheduler without configuration are preferences, never hard constraints.
func TestSystemDefaultSpreadOnlyAsks(t *testing.T) {
	t.Parallel()
	for _, none := range []string{"", "None", "[]"} {
		if list, err := ParseDefaultSpread(none); err != nil || len(list) != 0 {
			t.Errorf("%q: %v, error %v; want nothing", none, list, err)
		}
	}
	list, err := ParseDefaultSpread("System")
	if err != nil || len(list) != 2 || list[0].MaxSkew != 3 || list[1].MaxSkew != 5 ||
		list[0].WhenUnsatisfiable != corev1.ScheduleAnyway || list[1].WhenUnsatisfiable != corev1.ScheduleAnyway {
		t.Errorf("System is %v, error %v; want skew 3 over hostnames and 5 over zones, both ScheduleAnyway", list, err)
	}
}

// P-03: a bad setting names the field, the value and what is allowed.
func TestABadDefaultSpreadNamesItsField(t *testing.T) {
	t.Parallel()
	good := `{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}`
	for _, row := range []struct{ text, want string }{
		{"system", "want None, System or a JSON list"},
		{`{"maxSkew":1}`, "want None, System or a JSON list"},
		{`[{"skew":1}]`, `unknown field "skew"`},
		{`[` + good + `] [`, "more after the JSON list"},
		{`[{"maxSkew":0,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule"}]`,
			"[0].maxSkew is 0: want 1 or more"},
		{`[` + good + `,{"maxSkew":1,"topologyKey":"","whenUnsatisfiable":"DoNotSchedule"}]`,
			`[1].topologyKey is "": want the name of a node label`},
		{`[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"Never"}]`,
			`[0].whenUnsatisfiable is "Never": want DoNotSchedule or ScheduleAnyway`},
		{`[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"DoNotSchedule","labelSelector":{}}]`,
			"[0] has labelSelector"},
		{`[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway","minDomains":2}]`,
			"[0].minDomains is 2"},
		{`[` + good + `,` + good + `]`, "[1] repeats topologyKey zone with DoNotSchedule"},
	} {
		if _, err := ParseDefaultSpread(row.text); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: error %v; want %q in it", row.text, err, row.want)
		}
	}
}
