package notice_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/notice"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
)

// V-15: whoever still has a dropped annotation is told what to use instead.
func TestDroppedAnnotationsAreTold(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ key, value, want string }{
		{karpenterv1.DroppedDoNotEvictAnnotationKey, "true", "use karpenter.sh/do-not-disrupt"},
		{karpenterv1.DoNotDisruptAnnotationKey, "soon", "soon"},
		{karpenterv1.DoNotDisruptAnnotationKey, "true", ""},
		{karpenterv1.DisruptionCostAnnotationKey, "low",
			`annotation karpenter.sh/disruption-cost is "low": want a whole number`},
		{karpenterv1.DisruptionCostAnnotationKey, "99999999999", "it counts as not given"},
		{karpenterv1.DisruptionCostAnnotationKey, "-5", ""},
		{karpenterv1.DoNotDisruptAnnotationKey, "1h", ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p",
			Annotations: map[string]string{test.key: test.value}}}
		tape := &controllertest.Tape{}
		step := &notice.Pods{Client: controllertest.NewServer(t, pod).Build(), Events: tape}
		if _, err := step.Reconcile(t.Context(),
			reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "p"}}); err != nil {
			t.Fatal(err)
		}
		said := strings.Join(tape.Said(), "")
		if test.want == "" && said != "" || !strings.Contains(said, test.want) {
			t.Errorf("%s=%s: said %q, want %q", test.key, test.value, said, test.want)
		}
		if said != "" && !notice.Concerns(pod) {
			t.Errorf("%s=%s: the filter of the watch leaves it out", test.key, test.value)
		}
	}
}

func TestDroppedAnnotationsOfNodesAreTold(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n", Annotations: map[string]string{karpenterv1.DroppedDoNotConsolidateAnnotationKey: "true"},
		},
	}
	node.Spec.ProviderID = "fake://n"
	claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Status: karpenterv1.NodeClaimStatus{
		ProviderID: node.Spec.ProviderID,
	}}
	for _, test := range []struct {
		objects []client.Object
		owners  notice.Owners
		said    int
	}{
		{[]client.Object{node, claim}, controllertest.Everything{}, 1},
		{[]client.Object{node, claim}, fleet.New(), 0}, // another program's
		{[]client.Object{node}, controllertest.Everything{}, 0},
	} {
		tape := &controllertest.Tape{}
		step := &notice.Nodes{Client: controllertest.NewServer(t, test.objects...).Build(), Fleet: test.owners,
			Events: tape}
		if _, err := step.Reconcile(t.Context(),
			reconcile.Request{NamespacedName: types.NamespacedName{Name: "n"}}); err != nil ||
			len(tape.Said()) != test.said || !notice.Concerns(node) {
			t.Errorf("%d objects, %T: said %q, error %v; want %d events", len(test.objects), test.owners, tape.Said(),
				err, test.said)
		}
	}
}

// a switch of a node or NodeClaim with a value other than true or false has no effect, and that is reported on
// the object.
func TestSwitchesOfNodesThatMeanNothingAreTold(t *testing.T) {
	t.Parallel()
	for _, key := range []string{karpenterv1.DoNotDisruptAnnotationKey, karpenterv1.DoNotRepairAnnotationKey} {
		for value, told := range map[string]bool{"yes": true, "30m": true, "": true, "True": true, "true": false,
			"false": false} {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{key: value}}}
			node.Spec.ProviderID = "fake://n"
			claim := &karpenterv1.NodeClaim{
				ObjectMeta: metav1.ObjectMeta{Name: "c", Annotations: map[string]string{key: value}},
				Status:     karpenterv1.NodeClaimStatus{ProviderID: node.Spec.ProviderID, NodeName: "n"}}
			tape := &controllertest.Tape{}
			step := &notice.Nodes{Client: controllertest.NewServer(t, node, claim).Build(),
				Fleet: controllertest.Everything{}, Events: tape}
			if _, err := step.Reconcile(t.Context(),
				reconcile.Request{NamespacedName: types.NamespacedName{Name: "n"}}); err != nil {
				t.Fatal(err)
			}
			fault := " IgnoredField: annotation " + key + ` is "` + value +
				`": want "true" or "false"; it counts as "false"`
			said := strings.Join(tape.Said(), "\n")
			if strings.Contains(said, "n"+fault) != told || strings.Contains(said, "c"+fault) != told ||
				!told && said != "" {
				t.Errorf("%s=%q: said\n%s", key, value, said)
			}
			if told && (!notice.Concerns(node) || !notice.Concerns(claim)) {
				t.Errorf("%s=%q: the filter of the watch leaves it out", key, value)
			}
		}
	}
}

// U-42: a field of a pod that planning ignores is reported as long as the pod has no node. A field that planning
// understands, or that keeps the pod from being planned for at all, is not.
func TestU42_WhatOfAPodIsIgnoredIsTold(t *testing.T) {
	t.Parallel()
	terms := func(operators ...corev1.NodeSelectorOperator) *corev1.Affinity {
		required := &corev1.NodeSelector{}
		for _, operator := range operators {
			required.NodeSelectorTerms = append(required.NodeSelectorTerms, corev1.NodeSelectorTerm{
				MatchExpressions: []corev1.NodeSelectorRequirement{
					{Key: "zone", Operator: operator, Values: []string{"a"}},
				}})
		}
		return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: required}}
	}
	bad := []corev1.Toleration{{Key: "x", Operator: "Maybe"}}
	for name, c := range map[string]struct {
		spec corev1.PodSpec
		want string
	}{
		"a toleration": {corev1.PodSpec{Tolerations: bad}, `p IgnoredField: It counts for nothing, and the rest of ` +
			`the pod is planned for: spec.tolerations[0].operator is "Maybe"`},
		"on a node": {corev1.PodSpec{Tolerations: bad, NodeName: "n"}, ""},
		"a good one": {corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}},
			""},
		"one term of two":  {corev1.PodSpec{Affinity: terms("In", "About")}, `operator "About" is none of In, NotIn`},
		"both are good":    {corev1.PodSpec{Affinity: terms("In", "NotIn")}, ""},
		"the only term":    {corev1.PodSpec{Affinity: terms("About")}, ""},
		"nothing is asked": {corev1.PodSpec{}, ""},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"}, Spec: c.spec}
		tape := &controllertest.Tape{}
		step := &notice.Pods{Client: controllertest.NewServer(t, pod).Build(), Events: tape}
		request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "p"}}
		if _, err := step.Reconcile(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		said, concerns := strings.Join(tape.Said(), ""), notice.Concerns(pod)
		if !strings.Contains(said, c.want) || (said == "") != (c.want == "") || concerns != (c.want != "") {
			t.Errorf("%s: said %q, want %q; the filter of the watch lets it through: %t", name, said, c.want, concerns)
		}
	}
}

// K-14: a pod that protects its node for a while reports until when, and later that this is over. One without a node,
// or that protects it for ever, reports neither.
func TestK14_HowLongAPodKeepsItsNodeIsTold(t *testing.T) {
	t.Parallel()
	clock := controllertest.NewClock()
	start := metav1.NewTime(clock.Now())
	pod := func(value, node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p",
			Annotations: map[string]string{karpenterv1.DoNotDisruptAnnotationKey: value}},
			Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: corev1.PodRunning,
				StartTime: &start}}
	}
	finished := pod("1h", "n")
	finished.Status.Phase = corev1.PodSucceeded
	for name, one := range map[string]*corev1.Pod{"kept": pod("1h", "n"), "for ever": pod("true", "n"),
		"without a node": pod("1h", ""), "finished": finished} {
		tape, at := &controllertest.Tape{}, clock.Now()
		step := &notice.Pods{Client: controllertest.NewServer(t, one).Build(), Events: tape,
			Now: func() time.Time { return at }}
		request := reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "p"}}
		first, err := step.Reconcile(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		at = at.Add(first.RequeueAfter)
		second, err := step.Reconcile(t.Context(), request)
		said := strings.Join(tape.Said(), "\n")
		if name != "kept" {
			if said != "" || first.RequeueAfter != 0 || err != nil {
				t.Errorf("%s: said %q, looks again after %s (%v)", name, said, first.RequeueAfter, err)
			}
			continue
		}
		until := start.Add(time.Hour).UTC().Format(time.RFC3339)
		if err != nil || first.RequeueAfter <= 59*time.Minute || second.RequeueAfter != 0 ||
			!strings.Contains(said,
				"p DoNotDisruptUntil: The annotation karpenter.sh/do-not-disrupt keeps voluntary disruption away from its node until "+
					until) ||
			!strings.Contains(said, "p DoNotDisruptGracePeriodElapsed: ") {
			t.Errorf("looks again after %s and %s (%v), said %s", first.RequeueAfter, second.RequeueAfter, err, said)
		}
		if !notice.Concerns(one) {
			t.Error("the filter of the watch leaves it out")
		}
	}
}
