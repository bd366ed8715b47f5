package claim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/claim"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/metrics"
)

// counted gives the rig metrics that can be read.
func (r *rig) counted() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	r.config.Metrics = metrics.New(registry)
	r.step = claim.New(r.config)
	return registry
}

// stages are those that were measured, each as often as it was, in order.
func stages(t *testing.T, registry *prometheus.Registry) string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, family := range families {
		if family.GetName() != "joiner_node_stage_seconds" {
			continue
		}
		for _, metric := range family.Metric {
			for range metric.GetHistogram().GetSampleCount() {
				all = append(all, metric.Label[1].GetValue())
			}
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// U-10, U-32: how long each stage took is measured once for each claim, and that its node is ready for pods is told
// once.
func TestU10_StagesAreMeasured(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim(), joined())
	var told []string
	r.config.Joined = func(c *karpenterv1.NodeClaim, after time.Duration) {
		if told = append(told, c.Name); after <= 0 {
			t.Errorf("it took %s", after)
		}
	}
	registry := r.counted()
	r.reconcile(t)
	r.makeReady(t)
	for range 3 {
		r.clock.Advance(10 * time.Second)
		r.reconcile(t)
	}
	if !slices.Equal(told, []string{"c1"}) {
		t.Errorf("told is that %q have joined, want it once", told)
	}
	if got := stages(t, registry); got != "initialized launched registered" {
		t.Errorf("measured are the stages %q, want each once", got)
	}
}

// U-10: each node that joins counts once, with its pool and zone; each claim that ends or is given up, too.
func TestClaimsAndNodesAreCounted(t *testing.T) {
	t.Parallel()
	c := newClaim()
	c.Labels[karpenterv1.CapacityTypeLabelKey] = "spot"
	r := newRig(t, c, joined())
	registry := r.counted()
	count := func(name string, labels ...string) float64 { return controllertest.Count(t, registry, name, labels...) }
	r.reconcile(t)
	r.reconcile(t)
	if n := count("karpenter_nodes_created_total", "default", "a"); n != 1 {
		t.Errorf("%v nodes were created in pool default and zone a, want 1", n)
	}
	if got := stages(t, registry); got != "launched registered" {
		t.Errorf("measured are the stages %q, want one launch and one registration", got)
	}
	r.clock.Advance(time.Hour)
	r.reconcile(t) // initialization times out
	if n := count("karpenter_nodeclaims_disrupted_total", "initialization_timeout", "default", "spot",
		"graceful"); n != 1 {
		t.Errorf("%v claims were disrupted by their timeout, want 1", n)
	}
	r.reconcile(t) // the node is being deleted
	n := r.node(t)
	n.Finalizers = nil
	if err := r.server.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r.reconcile(t)
	}
	if n := count("karpenter_nodeclaims_terminated_total", "default", "spot", "a"); n != 1 || r.claim(t) != nil {
		t.Errorf("%v claims were terminated, want 1", n)
	}
	// K-08: its end, and that of its machine, are measured.
	for _, name := range []string{"karpenter_nodeclaims_termination_duration_seconds",
		"karpenter_nodeclaims_instance_termination_duration_seconds"} {
		if n := controllertest.Observed(t, registry, name, "default"); n != 1 {
			t.Errorf("%s was observed %d times, want once", name, n)
		}
	}
}

// P-30: the node carries what its claim says, beside what its kubelet says; it is the claim's, once.
func TestANodeIsAdopted(t *testing.T) {
	t.Parallel()
	c := newClaim()
	c.Annotations = map[string]string{"note": "claim"}
	n := joined()
	n.Labels = map[string]string{"kubelet": "yes", "team": "kubelet"}
	n.Annotations = map[string]string{"kubelet": "yes"}
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule})
	r := newRig(t, c, n)
	r.reconcile(t)
	got := r.node(t)
	if got.Labels["kubelet"] != "yes" || got.Labels["team"] != "a" ||
		got.Labels[karpenterv1.NodeRegisteredLabelKey] != "true" || got.Labels[corev1.LabelTopologyZone] != "a" {
		t.Errorf("labels %v", got.Labels)
	}
	if got.Annotations["note"] != "claim" || got.Annotations["kubelet"] != "yes" {
		t.Errorf("annotations %v", got.Annotations)
	}
	if len(got.OwnerReferences) != 1 {
		t.Fatalf("owners %v, want the claim", got.OwnerReferences)
	}
	owner := got.OwnerReferences[0]
	if owner.Kind != "NodeClaim" || owner.APIVersion != "karpenter.sh/v1" || owner.Name != "c1" || owner.UID != "u1" ||
		owner.BlockOwnerDeletion == nil || !*owner.BlockOwnerDeletion {
		t.Errorf("owner %+v, want the claim, which may not go before its node", owner)
	}
	var taints []string
	for _, taint := range got.Spec.Taints {
		taints = append(taints, taint.Key)
	}
	if slices.Sort(taints); !slices.Equal(taints, []string{"boot", corev1.TaintNodeNotReady, "team"}) {
		t.Errorf("taints %v: want those of the claim once, without the one of a node that is not registered", taints)
	}
	if r.claim(t).Status.NodeName != "n1" || !slices.Contains(got.Finalizers, karpenterv1.TerminationFinalizer) {
		t.Error("the claim names its node, and the node waits for us at its end")
	}
	if said := strings.Join(r.tape.Said(), "\n"); strings.Contains(said, "UnregisteredTaintMissing") {
		t.Errorf("said %q although the taint was there", said)
	}
}

// P-30: a node that joins without the taint may have pods already: users get one event. A node that was registered
// before does not count.
func TestANodeWithoutTheTaintIsTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*corev1.Node)
		told   bool
	}{
		"no taint":       {func(n *corev1.Node) { n.Spec.Taints = nil }, true},
		"another effect": {func(n *corev1.Node) { n.Spec.Taints[0].Effect = corev1.TaintEffectNoSchedule }, true},
		"another key":    {func(n *corev1.Node) { n.Spec.Taints[0].Key = "x" }, true},
		"registered already": {func(n *corev1.Node) {
			n.Spec.Taints, n.Labels = nil, map[string]string{karpenterv1.NodeRegisteredLabelKey: "true"}
		}, false},
		"the taint": {func(*corev1.Node) {}, false},
	} {
		n := joined()
		c.change(n)
		r := newRig(t, newClaim(), n)
		r.reconcile(t)
		if told := strings.Contains(strings.Join(r.tape.Said(), "\n"),
			"c1 UnregisteredTaintMissing: Node n1 joined without"); told != c.told {
			t.Errorf("%s: said %q", name, r.tape.Said())
		}
	}
}

// A node that is new and not ready is left to its kubelet for its first seconds, then registered; one that is ready at
// once is not waited for.
func TestANewNodeSettles(t *testing.T) {
	t.Parallel()
	n := joined()
	n.CreationTimestamp = metav1.NewTime(controllertest.Start())
	r := newRig(t, newClaim(), n)
	r.clock.Advance(400 * time.Millisecond)
	if result := r.reconcile(t); r.is(t, karpenterv1.ConditionTypeRegistered) == "True" ||
		result.RequeueAfter != 2600*time.Millisecond {
		t.Errorf("Registered=%s, again after %s: want it in 2.6s", r.is(t, karpenterv1.ConditionTypeRegistered),
			result.RequeueAfter)
	}
	r.clock.Advance(2600 * time.Millisecond)
	if r.reconcile(t); r.is(t, karpenterv1.ConditionTypeRegistered) != "True" {
		t.Error("three seconds old, it is registered as it is")
	}
	plain := newClaim()
	plain.Spec.StartupTaints = nil
	r = newRig(t, plain, n)
	r.makeReady(t)
	if r.reconcile(t); r.is(t, karpenterv1.ConditionTypeInitialized) != "True" {
		t.Error("a node that is ready is not waited for")
	}
}

// A node that is being deleted is not registered any more, and the claim says so.
func TestANodeThatGoesIsNotRegistered(t *testing.T) {
	t.Parallel()
	n := joined()
	n.Finalizers = []string{"example.com/hold"}
	r := newRig(t, newClaim(), n)
	if err := r.server.Delete(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	r.reconcile(t)
	if got, _ := condition.Get(r.claim(t).Status.Conditions,
		karpenterv1.ConditionTypeRegistered); got.Status != "Unknown" || got.Reason != "NodeTerminating" {
		t.Errorf("Registered=%s %s, want NodeTerminating", got.Status, got.Reason)
	}
	r = newRig(t, newClaim())
	r.reconcile(t)
	if got, _ := condition.Get(r.claim(t).Status.Conditions,
		karpenterv1.ConditionTypeRegistered); got.Reason != "NodeNotFound" {
		t.Errorf("Registered=%s %s, want NodeNotFound", got.Status, got.Reason)
	}
}

// P-30: Ready says which stage is missing, the first one.
func TestReadyIsAllThreeStages(t *testing.T) {
	t.Parallel()
	r := newRig(t, newClaim())
	reason := func() string {
		got, _ := condition.Get(r.claim(t).Status.Conditions, karpenterv1.ConditionTypeReady)
		return string(got.Status) + " " + got.Reason
	}
	r.reconcile(t)
	if got := reason(); got != "Unknown NotRegistered" {
		t.Errorf("launched: Ready=%s", got)
	}
	r.create(t, joined())
	r.reconcile(t)
	if got := reason(); got != "Unknown NotInitialized" {
		t.Errorf("registered: Ready=%s", got)
	}
	r.makeReady(t)
	r.reconcile(t)
	if got := reason(); got != "True Ready" {
		t.Errorf("initialized: Ready=%s", got)
	}
	if len(r.claim(t).Status.Capacity) == 0 || r.claim(t).Status.ProviderID != "fake://u1" {
		t.Errorf("status %+v, want what the machine has", r.claim(t).Status)
	}
}

// P-30: a stage whose beginning nobody wrote down does not time out.
func TestAStageWithoutABeginningDoesNotTimeOut(t *testing.T) {
	t.Parallel()
	c := newClaim()
	c.Status.ProviderID = "fake://u1"
	c.Status.Conditions = []karpenterv1.Condition{
		{Type: karpenterv1.ConditionTypeLaunched, Status: metav1.ConditionTrue},
	}
	r := newRig(t, c)
	if r.reconcile(t); r.claim(t).DeletionTimestamp != nil {
		t.Errorf("it is given up: %+v", r.claim(t).Status.Conditions)
	}
}
