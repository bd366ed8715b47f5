package plug

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/iampolicy"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/rights"
)

// registered launches a machine for a claim, and has its node register.
func (r *region) registered(c *connection, claim *karpenterv1.NodeClaim) {
	r.t.Helper()
	ctx := r.t.Context()
	if err := r.kube.Create(ctx, claim); err != nil {
		r.t.Fatal(err)
	}
	machine, err := c.machines.Launch(ctx, claim, time.Time{})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.kube.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
		r.t.Fatal(err)
	}
	claim.Status.ProviderID, claim.Status.NodeName = machine.ProviderID, "ip-10-0-0-1"
	claim.Status.Conditions = []karpenterv1.Condition{
		{Type: karpenterv1.ConditionTypeRegistered, Status: metav1.ConditionTrue,
			Reason: karpenterv1.ConditionTypeRegistered, LastTransitionTime: metav1.Now()}}
	if err := r.kube.Status().Update(ctx, claim); err != nil {
		r.t.Fatal(err)
	}
}

// E-58: the rights for tasks other than machines are used: names, status checks, the queue, profiles, the cluster.
func TestTheRightsOfUpkeepAreUsed(t *testing.T) {
	t.Parallel()
	gone := aClass("gone")
	r := newRegion(t, func(s *settings) { s.queue = "events" }, aClass("default"), gone)
	r.server.AddQueue("events")
	c, ctx := r.connectNow(), t.Context()
	r.look()
	r.look()
	claim := &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: types.UID("uid-of-n1"),
			Labels: map[string]string{karpenterv1.NodePoolLabelKey: "p"}},
		Spec: karpenterv1.NodeClaimSpec{
			NodeClassRef: &karpenterv1.NodeClassReference{Group: awsv1.Group, Kind: "EC2NodeClass", Name: "default"},
			Resources: karpenterv1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
			},
			Requirements: []karpenterv1.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelInstanceTypeStable,
				Operator: corev1.NodeSelectorOpIn, Values: []string{"m5.large"}}},
		},
	}
	r.registered(c, claim)
	if _, err := newTagger(r.link).Reconcile(ctx,
		reconcile.Request{NamespacedName: client.ObjectKeyFromObject(claim)}); err != nil {
		t.Fatal(err)
	}
	checks := newHealth(r.link)
	for range 2 { // it begins with the second
		if _, err := checks.step(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.queueURL(ctx, c); err != nil {
		t.Fatal(err)
	}
	before := len(r.server.InstanceProfiles())
	if err := r.kube.Patch(ctx, r.class("gone"),
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	if err := client.IgnoreNotFound(r.kube.Delete(ctx, gone)); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	r.later = 2 * time.Hour
	r.mu.Unlock()
	if err := newCollector(r.link).sweep(ctx, c); err != nil {
		t.Fatal(err)
	}
	if after := len(r.server.InstanceProfiles()); after != before-1 {
		t.Errorf("%d profiles after the sweep, %d before", after, before)
	}
	r.expectRights(rights.Names{Partition: "aws", Region: "us-east-1", Account: ec2test.Account, Cluster: clusterName,
		NodeRole: "nodes", Queue: "events"})
}

// expectRights compares the requested rights with those of upkeep.
func (r *region) expectRights(names rights.Names) {
	r.t.Helper()
	policy, err := rights.Controller(names)
	if err != nil {
		r.t.Fatal(err)
	}
	used := map[iampolicy.Right]bool{}
	for _, call := range r.server.Calls() {
		for _, ask := range call.Asks {
			for _, right := range policy.Decide(ask.Request()).Rights {
				used[right] = true
			}
		}
	}
	for _, what := range rights.OfUpkeep() {
		found := false
		for _, right := range policy.Rights() {
			if strings.HasPrefix(right.String(), what) {
				found = true
				if !used[right] {
					r.t.Errorf("%s: nothing uses it", right)
				}
			}
		}
		if !found {
			r.t.Errorf("%s: no policy has it", what)
		}
	}
}
