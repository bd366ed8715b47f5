package conversion

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1beta1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1beta1"
	awsv1beta1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1beta1"
)

// V-20, V-21: server-side apply of each kind. In either version, a manifest that is applied again changes nothing. A
// manager that switches to the other version changes no field that both have. One that applies v1beta1 over another's
// v1 keeps what only v1 says.
func TestEachKindIsAppliedOnTheServerInBothVersions(t *testing.T) {
	t.Parallel()
	r, manifests := start(t)
	r.install(manifests)
	for _, j := range journeys() {
		// The second write after a create stores the defaults of the status, in a CRD without conversion too.
		r.applied(j, "old", j.old, "gitops")
		first := r.applied(j, "old", j.old, "gitops")
		r.unchanged(j, "old", j.old, "gitops", first)
		r.has(j, "v1", "old", j.oldInV1)
		over := r.applied(j, "old", j.oldManifestV1, "gitops")
		if fmt.Sprint(over["spec"]) != fmt.Sprint(first["spec"]) {
			t.Errorf("%s: applied in v1, the spec changes from\n%v to\n%v", j.plural, first["spec"], over["spec"])
		}
		r.unchanged(j, "old", j.oldManifestV1, "gitops", over)

		r.applied(j, "fresh", j.fresh, "terraform")
		written := r.applied(j, "fresh", j.fresh, "terraform")
		r.unchanged(j, "fresh", j.fresh, "terraform", written)
		both := r.applied(j, "fresh", j.freshManifestOld, "gitops")
		if fmt.Sprint(both["spec"]) != fmt.Sprint(written["spec"]) {
			t.Errorf("%s: applied in v1beta1 too, the spec changes from\n%v to\n%v", j.plural, written["spec"],
				both["spec"])
		}
		r.unchanged(j, "fresh", j.fresh, "terraform", both)
		r.unchanged(j, "fresh", j.freshManifestOld, "gitops", both)
	}
}

// applied applies a manifest on the server and returns the object in v1.
func (r *rig) applied(j journey, name, manifest, manager string) map[string]any {
	r.t.Helper()
	r.must(manifest, "apply", "--server-side", "--field-manager="+manager, "-f", "-")
	return r.has(j, "v1", name, nil)
}

func (r *rig) unchanged(j journey, name, manifest, manager string, before map[string]any) {
	r.t.Helper()
	after := r.applied(j, name, manifest, manager)
	if field(after, "metadata.resourceVersion") != field(before, "metadata.resourceVersion") {
		r.t.Errorf("%s %s: applied again by %s, it changes from\n%v to\n%v", j.plural, name, manager, before, after)
	}
}

// V-20, V-21: a client built with the types of v1beta1 reads whole objects, changes a field and writes them back. It
// drops the fields that its types do not have, and none of them is lost.
func TestAnOldClientLosesNothing(t *testing.T) {
	t.Parallel()
	r, manifests := start(t)
	r.install(manifests)
	config, err := clientcmd.BuildConfigFromFlags("", r.cluster.AdminKubeconfig())
	must(t, err)
	old := oldClient(t, config)
	for _, j := range journeys() {
		// Amounts are spelt as types write them: the spec of a NodeClaim cannot be changed, and another spelling is a
		// change, in v1 too.
		r.must(strings.ReplaceAll(j.fresh, "8192Mi", "8Gi"), "apply", "-f", "-")
	}

	var pool karpenterv1beta1.NodePool
	must(t, old.Get(t.Context(), client.ObjectKey{Name: "fresh"}, &pool))
	pool.Spec.Weight = new(int32(9))
	pool.Spec.Template.Spec.Kubelet = &karpenterv1beta1.KubeletConfiguration{MaxPods: new(int32(7))}
	must(t, old.Update(t.Context(), &pool))
	pool.Status.Conditions = []karpenterv1beta1.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue, Severity: "Info"},
	}
	must(t, old.Status().Update(t.Context(), &pool))
	r.has(poolJourney(), "v1", "fresh", map[string]string{
		"spec.weight": "9", "spec.hardLimits.nodes": "3", "spec.disruption.consolidateAfter": "2m",
		"spec.disruption.budgets.0.reasons.0": "Drifted", "spec.template.spec.terminationGracePeriod": "1h",
		"metadata.annotations.compatibility.karpenter.sh/v1beta1-kubelet-conversion": `{"maxPods":7}`,
		"status.conditions.0.type": "Ready", "status.nodes": "0",
	})

	var claim karpenterv1beta1.NodeClaim
	must(t, old.Get(t.Context(), client.ObjectKey{Name: "fresh"}, &claim))
	claim.Labels = map[string]string{"example.com/team": "a"}
	must(t, old.Update(t.Context(), &claim))
	claim.Status.NodeName = "n"
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: *claim.Spec.Resources.Requests.Cpu()}
	must(t, old.Status().Update(t.Context(), &claim))
	r.has(claimJourney(), "v1", "fresh", map[string]string{
		"metadata.labels.example.com/team": "a", "spec.expireAfter": "5h", "spec.terminationGracePeriod": "1h",
		"spec.resources.requests.memory": "8Gi", "status.nodeName": "n", "status.capacity.cpu": "1",
	})

	var class awsv1beta1.EC2NodeClass
	must(t, old.Get(t.Context(), client.ObjectKey{Name: "fresh"}, &class))
	class.Spec.Role, class.Spec.Tags = "others", map[string]string{"team": "a"}
	must(t, old.Update(t.Context(), &class))
	r.has(classJourney(), "v1", "fresh", map[string]string{
		"spec.role": "others", "spec.tags.team": "a", "spec.amiSelectorTerms.0.alias": "bottlerocket@v1.20.3",
		"spec.ipPrefixCount": "2", "spec.kubelet.featureGates.A": "true", "spec.amiFamily": none,
	})
	r.oldClientCreates(old)
}

// oldClientCreates: such a client reads back what it created as it wrote it, and v1 can use it.
func (r *rig) oldClientCreates(old client.Client) {
	var pool, again karpenterv1beta1.NodePool
	ctx := r.t.Context()
	must(r.t, old.Get(ctx, client.ObjectKey{Name: "fresh"}, &pool))
	pool.ObjectMeta = metav1.ObjectMeta{Name: "made"}
	want := pool.Spec.DeepCopy()
	must(r.t, old.Create(ctx, &pool))
	must(r.t, old.Get(ctx, client.ObjectKey{Name: "made"}, &again))
	if !equality.Semantic.DeepEqual(again.Spec, *want) {
		r.t.Errorf("made is read back as\n%+v, was\n%+v", again.Spec, *want)
	}
	r.has(poolJourney(), "v1", "made", map[string]string{"spec.template.spec.expireAfter": "24h",
		"spec.template.spec.nodeClassRef.group": "karpenter.k8s.aws", "spec.disruption.consolidateAfter": "0s"})
	must(r.t, old.Delete(ctx, &again))
}
