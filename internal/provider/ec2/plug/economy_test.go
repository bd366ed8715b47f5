package plug

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// day runs the controllers of the plug-in, each when it is due, and lists machines like the garbage collector.
type day struct {
	*region
	due   map[string]time.Time
	steps map[string]func(ctx context.Context) (time.Duration, error)
}

func newDay(r *region) *day {
	d := &day{region: r, due: map[string]time.Time{}, steps: map[string]func(context.Context) (time.Duration, error){}}
	step := func(name string, reconciler reconcile.Reconciler) {
		d.steps[name] = func(ctx context.Context) (time.Duration, error) {
			result, err := reconciler.Reconcile(ctx, request())
			return result.RequeueAfter, err
		}
	}
	for _, c := range r.parts(r.t.Context()).Controllers {
		if c.Start && c.Name != Queue {
			step(c.Name, c.Reconciler)
		}
	}
	began := r.Now()
	d.steps["list"] = func(ctx context.Context) (time.Duration, error) {
		_, err := (lazy{link: r.link}).List(ctx)
		if d.Now().Sub(began) < 3*time.Minute { // E-55
			return 10 * time.Second, err
		}
		return 2 * time.Minute, err
	}
	return d
}

// run lets the given seconds pass, and returns the number of AWS calls and of those that changed something.
func (d *day) run(length time.Duration) (calls, changes int) {
	d.t.Helper()
	d.server.Forget()
	for end := d.Now().Add(length); d.Now().Before(end); d.pass(time.Second) {
		for _, name := range []string{Connect, Classes, Offers, Collect, Health, "list"} {
			if d.Now().Before(d.due[name]) {
				continue
			}
			again, err := d.steps[name](d.t.Context())
			if err != nil {
				d.t.Fatalf("%s: %v", name, err)
			}
			d.due[name] = d.Now().Add(max(again, time.Second))
		}
	}
	for action, n := range d.server.Counts() {
		calls += n
		switch action {
		case "ec2:RunInstances", "ec2:CreateFleet", "ec2:CreateLaunchTemplate", "ec2:DeleteLaunchTemplate",
			"ec2:TerminateInstances",
			"ec2:CreateTags", "iam:CreateInstanceProfile", "iam:AddRoleToInstanceProfile", "iam:DeleteInstanceProfile":
			changes += n
		}
	}
	return calls, changes
}

// E-61: at rest with 1,000 nodes and 20 classes of equal selectors there are at most 8 calls a minute, and a start
// costs at most 80, prices included, none of which changes anything.
func TestCallsAtRestAndAtAStart(t *testing.T) {
	t.Parallel()
	var objects []client.Object
	for i := range 20 {
		objects = append(objects, aClass(fmt.Sprintf("class-%02d", i)))
	}
	objects = append(objects, aClass("default"))
	r := newRegion(t, nil, objects...)
	first := newDay(r)
	first.run(70 * time.Second) // until EC2 is sure to know the profiles
	r.fill(1000)
	first.run(2 * time.Minute)
	const minutes = 30
	calls, _ := first.run(minutes * time.Minute)
	perMinute := float64(calls) / minutes
	t.Logf("at rest: %.1f calls a minute: %v", perMinute, r.server.Counts())
	if perMinute > 8 {
		t.Errorf("%.1f calls a minute at rest, want at most 8", perMinute)
	}
	r.link = r.again()
	calls, changes := newDay(r).run(time.Minute)
	t.Logf("at a start: %d calls: %v", calls, r.server.Counts())
	if calls > 80 || changes > 0 {
		t.Errorf("%d calls at a start, %d of them change something; want at most 80 and none: %v", calls, changes,
			r.server.Counts())
	}
}

// again starts a new process.
func (r *region) again() *link {
	deps := r.deps
	deps.Registerer = nil
	l := newLink(r.settings, deps)
	l.load, l.clock = r.link.load, r.link.clock
	return l
}

// fill launches machines for the given number of claims, each with its node.
func (r *region) fill(n int) {
	r.t.Helper()
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { r.join(fmt.Sprintf("n%04d", i)) })
	}
	group.Wait()
}

// join makes a claim, launches its machine, and has its node register.
func (r *region) join(name string) {
	claim := aClaim(name)
	claim.Finalizers = []string{karpenterv1.TerminationFinalizer}
	if err := r.kube.Create(r.t.Context(), claim); err != nil {
		r.t.Error(err)
		return
	}
	i, err := r.connected().machines.Launch(r.t.Context(), claim, time.Time{})
	if err != nil {
		r.t.Error(err)
		return
	}
	if err := r.kube.Get(r.t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
		r.t.Error(err)
		return
	}
	claim.Status.ProviderID, claim.Status.NodeName, claim.Status.ImageID = i.ProviderID, "node-"+name, i.ImageID
	claim.Status.Conditions = []karpenterv1.Condition{
		{Type: karpenterv1.ConditionTypeRegistered, Status: metav1.ConditionTrue},
		{Type: karpenterv1.ConditionTypeInitialized, Status: metav1.ConditionTrue}}
	if err := r.kube.Status().Update(r.t.Context(), claim); err != nil {
		r.t.Error(err)
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-" + name,
			Labels: map[string]string{corev1.LabelInstanceTypeStable: i.Type}},
	}
	node.Spec.ProviderID, node.Finalizers = i.ProviderID, claim.Finalizers
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.Capacity = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("3900Mi")}
	if err := r.kube.Create(r.t.Context(), node); err != nil {
		r.t.Error(err)
	}
}
