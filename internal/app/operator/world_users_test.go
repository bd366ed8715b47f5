package operator

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

// users draws what providers, users and Karpenter do, and returns for how long. In some worlds all comes within
// seconds.
func (w *world) users() (busy time.Duration) {
	busy = pick(w, 5*time.Second, time.Minute, 10*time.Minute)
	all := []func(){
		w.putPolicy, w.putPolicy, w.putPolicy, w.dropPolicy, w.deny, w.putPool, w.putPool, w.putPool, w.putClass,
		w.putClass, w.deleteWrapper, w.deleteWrapper, w.stripWrapper, w.force, w.forgeStatus, w.deleteProduct, w.strip,
		w.alterPool, w.alterClass, w.annotate, w.strange, w.restart, w.roll, w.openGuard,
		w.pause, w.retag, w.breakWatch, w.breakWatch, w.undefine, w.undefine,
		w.putSecret, w.putSecret, w.dropSecret, w.askVersion,
	}
	often := pick(w, 2, 5) // what happens later hides what went wrong before
	for _, do := range all {
		for range w.dice.IntN(often) { // not every run has everything
			w.after(w.between(0, busy), do)
		}
	}
	return busy
}

func pick[T any](w *world, from ...T) T { return from[w.dice.IntN(len(from))] }

// change writes a changed copy of an object, if there is one of that name.
func change[T client.Object](w *world, like T, name string, part apiserver.Part, do func(T)) {
	found := w.guest.Peek(like, client.ObjectKey{Name: name})
	if found == nil {
		return
	}
	fresh := found.DeepCopyObject().(T)
	do(fresh)
	w.tell("somebody changes %s %s: %v", serve.KindOf(like), name, w.guest.Update(fresh, part))
}

func (w *world) create(o client.Object) {
	if w.unserved("create", serve.KindOf(o)) != nil {
		return
	}
	w.tell("somebody creates %s %s: %v", serve.KindOf(o), o.GetName(), w.guest.Create(o))
}

func (w *world) delete(like client.Object, name string) {
	err := w.guest.Delete(like, client.ObjectKey{Name: name}, apiserver.DeleteOptions{})
	w.tell("somebody deletes %s %s: %v", serve.KindOf(like), name, err)
}

func (w *world) requirements() (list []karpenterv1.NodeSelectorRequirementWithMinValues) {
	of := func(key string, op corev1.NodeSelectorOperator, values ...string) {
		list = append(list, karpenterv1.NodeSelectorRequirementWithMinValues{Key: key, Operator: op, Values: values})
	}
	if w.dice.IntN(2) == 0 {
		of(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpIn,
			pick(w, []string{"m5.large"}, []string{"m5.large", "c5.large"}, []string{"r5.large"})...)
	}
	if w.dice.IntN(3) == 0 {
		of(corev1.LabelTopologyZone, pick(w, corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn), "zone-a")
	}
	return list
}

func (w *world) putPolicy() {
	policy := w.policy()
	fresh := policy == nil
	if fresh {
		policy = &hypershiftv1beta1.AutoNodePolicy{ObjectMeta: metav1.ObjectMeta{
			Namespace: policyKey().Namespace, Name: policyKey().Name}}
	}
	policy.Spec = hypershiftv1beta1.AutoNodePolicySpec{}
	policy.Spec.NodePoolDefaults.Requirements = w.requirements()
	if w.dice.IntN(2) == 0 {
		policy.Spec.EC2NodeClassDefaults.RootVolume = &hypershiftv1beta1.RootVolume{
			VolumeSize: new(resource.MustParse(pick(w, "100Gi", "200Gi"))), Encrypted: pick(w, nil, new(true))}
	}
	if fresh {
		w.tell("the provider makes the policy: %v", w.management.Create(policy))
		return
	}
	w.tell("the provider changes the policy: %v", w.management.Update(policy, apiserver.Main))
}

func (w *world) dropPolicy() {
	w.tell("the provider deletes the policy: %v",
		w.management.Delete(&hypershiftv1beta1.AutoNodePolicy{}, policyKey(), apiserver.DeleteOptions{}))
}

func (w *world) poolName() string { return pick(w, "a", "b", "c") }

func (w *world) className() string { return pick(w, "default", "big") }

func (w *world) putPool() {
	name := w.poolName()
	pool := &hypershiftv1beta1.OpenshiftNodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set := func(p *hypershiftv1beta1.OpenshiftNodePool) {
		p.Spec.Template.Spec.Requirements = w.requirements()
		if p.Spec.Template.Spec.NodeClassRef = nil; w.dice.IntN(2) == 0 {
			p.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: karpenterawsv1.Group,
				Kind: karpenterawsv1.EC2NodeClassKind, Name: w.className()}
		}
		p.Spec.Weight = pick(w, nil, new(int32(1+w.dice.IntN(9))))
	}
	if w.guest.Peek(pool, client.ObjectKey{Name: name}) != nil {
		change(w, pool, name, apiserver.Main, set)
		return
	}
	set(pool)
	w.create(pool)
}

func (w *world) putClass() {
	name := w.className()
	class := &hypershiftv1.OpenshiftEC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	set := func(c *hypershiftv1.OpenshiftEC2NodeClass) {
		c.Spec.Monitoring = pick(w, hypershiftv1.MonitoringBasic, hypershiftv1.MonitoringDetailed)
	}
	if w.guest.Peek(class, client.ObjectKey{Name: name}) != nil {
		change(w, class, name, apiserver.Main, set)
		return
	}
	set(class)
	w.create(class)
}

// wrapper returns the kind of one wrapper or the other, and a name.
func (w *world) wrapper() (client.Object, string) {
	if w.dice.IntN(3) == 0 {
		return &hypershiftv1.OpenshiftEC2NodeClass{}, w.className()
	}
	return &hypershiftv1beta1.OpenshiftNodePool{}, w.poolName()
}

func (w *world) product() (client.Object, string) {
	if w.dice.IntN(3) == 0 {
		return &karpenterawsv1.EC2NodeClass{}, w.className()
	}
	return &karpenterv1.NodePool{}, w.poolName()
}

func (w *world) deleteWrapper() { w.delete(w.wrapper()) }

// stripWrapper takes the finalizers off a wrapper, which may be going.
func (w *world) stripWrapper() {
	like, name := w.wrapper()
	change(w, like, name, apiserver.Main, func(o client.Object) { o.SetFinalizers(nil) })
}

// force deletes a wrapper together with its finalizers, and sometimes makes it again at once.
func (w *world) force() {
	like, name := w.wrapper()
	found := w.guest.Peek(like, client.ObjectKey{Name: name})
	w.delete(like, name)
	change(w, like, name, apiserver.Main, func(o client.Object) { o.SetFinalizers(nil) })
	if found != nil && w.dice.IntN(2) == 0 {
		fresh := found.DeepCopyObject().(client.Object)
		fresh.SetUID("")
		fresh.SetResourceVersion("")
		fresh.SetFinalizers(nil)
		w.create(fresh)
	}
}

func (w *world) forgeStatus() {
	name := w.poolName()
	change(w, &hypershiftv1beta1.OpenshiftNodePool{}, name, apiserver.Status,
		func(p *hypershiftv1beta1.OpenshiftNodePool) {
			for i := range p.Status.Conditions {
				p.Status.Conditions[i].Status = pick(w, metav1.ConditionTrue, metav1.ConditionFalse)
			}
			p.Status.ObservedPolicy = pick(w, nil, &hypershiftv1.ObservedPolicy{UID: "forged", Generation: 7})
		})
}

func (w *world) deleteProduct() { w.delete(w.product()) }

// strip takes the marks of the operator off a product.
func (w *world) strip() {
	like, name := w.product()
	change(w, like, name, apiserver.Main, func(o client.Object) {
		o.SetLabels(nil)
		if w.dice.IntN(2) == 0 {
			o.SetOwnerReferences(nil)
		}
	})
}

func (w *world) alterPool() {
	change(w, &karpenterv1.NodePool{}, w.poolName(), apiserver.Main, func(p *karpenterv1.NodePool) {
		p.Spec.Template.Spec.Requirements = w.requirements()
	})
}

func (w *world) alterClass() {
	change(w, &karpenterawsv1.EC2NodeClass{}, w.className(), apiserver.Main, func(c *karpenterawsv1.EC2NodeClass) {
		c.Spec.UserData = new(fmt.Sprint("forged ", w.dice.IntN(9)))
	})
}

// annotate is what Karpenter does: the hash of a pool stands in an annotation.
func (w *world) annotate() {
	like, name := w.product()
	change(w, like, name, apiserver.Main, func(o client.Object) {
		annotations := maps.Clone(o.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[karpenterv1.NodePoolHashAnnotationKey] = fmt.Sprint(w.dice.IntN(9))
		o.SetAnnotations(annotations)
	})
}

// strange makes a product by hand, past the admission policies.
func (w *world) strange() {
	if w.dice.IntN(3) == 0 {
		w.create(&karpenterawsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: w.className()}})
		return
	}
	w.create(&karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: w.poolName()}})
}

// deny takes the right to read the policy away for a while.
func (w *world) deny() {
	w.tell("the policy cannot be read")
	w.denied = errDenied()
	w.after(w.between(0, 2*time.Minute), func() {
		w.tell("the policy can be read")
		w.denied = nil
	})
}

func (w *world) restart() {
	if !w.process.dead {
		w.tell("the process ends")
		w.process.die()
	}
}

// roll replaces the process by another one, which begins before the first ends.
func (w *world) roll() {
	if w.process.dead || len(w.undefined) > 0 {
		return
	}
	w.tell("another process begins")
	w.before.dead = true
	w.before = w.process
	w.begin()
	old := w.before
	w.after(w.between(0, 30*time.Second), func() { old.dead = true })
}

// openGuard deletes an admission policy.
func (w *world) openGuard() {
	for _, p := range w.process.deps.protections {
		if w.dice.IntN(2) == 0 {
			w.delete(&p.Policy, p.Policy.Name)
		}
	}
}

// collect is the garbage collector of Kubernetes: what has lost its owners goes after a while.
func (w *world) collect(e apiserver.Event) {
	if e.Type != apiserver.Deleted || !w.collects {
		return
	}
	for _, kind := range w.process.deps.kinds {
		if serve.KindOf(kind.NewWrapper()) != e.Kind() {
			continue
		}
		key := client.ObjectKeyFromObject(e.Object)
		w.after(w.between(0, time.Minute), func() {
			product := w.guest.Peek(kind.NewProduct(), key)
			if product == nil || len(product.GetOwnerReferences()) != 1 ||
				product.GetOwnerReferences()[0].UID != e.Object.GetUID() {
				return
			}
			w.tell("the garbage collector deletes %s %s", kind.Product, key.Name)
			w.delete(kind.NewProduct(), key.Name)
		})
	}
}

// held is a finalizer of Karpenter on products.
const held = "karpenter.sh/termination"

// karpenter holds products for a while when they are deleted: their nodes go first.
func (w *world) karpenter(e apiserver.Event) {
	for _, kind := range w.process.deps.kinds {
		if serve.KindOf(kind.NewProduct()) != e.Kind() {
			continue
		}
		like, name := kind.NewProduct(), e.Object.GetName()
		going := e.Object.GetDeletionTimestamp() != nil
		switch {
		case e.Type == apiserver.Added:
			w.after(w.between(0, time.Second), func() {
				if o := w.guest.Peek(like, client.ObjectKey{Name: name}); o != nil && o.GetDeletionTimestamp() == nil {
					change(w, like, name, apiserver.Main, func(o client.Object) { o.SetFinalizers([]string{held}) })
				}
			})
		case e.Type == apiserver.Modified && going && e.Old.GetDeletionTimestamp() == nil:
			w.after(w.between(0, 30*time.Second), func() {
				change(w, like, name, apiserver.Main, func(o client.Object) { o.SetFinalizers(nil) })
			})
		}
	}
}
