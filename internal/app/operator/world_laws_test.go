package operator

import (
	"context"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

var (
	worldSeed  = flag.Uint64("world-seed", 0, "of TestWhateverHappens: this seed alone, with its story")
	worldSeeds = flag.Uint64("world-seeds", 200, "of TestWhateverHappens: how many")
)

// Whatever users, the provider and faults do, in the end each product is as the policy and its wrapper say, the status
// is true, and nothing is written any more.
func TestWhateverHappensEndsAsThePolicySays(t *testing.T) {
	t.Parallel()
	if *worldSeed > 0 {
		w := judgeWorlds(t, *worldSeed, 1)
		t.Log("\n" + strings.Join(w.story, "\n"))
		return
	}
	judgeWorlds(t, 1, *worldSeeds)
}

// each run also looks at worlds that none has seen.
func TestWhateverHappensInFreshWorlds(t *testing.T) {
	t.Parallel()
	first := uint64(time.Now().UnixNano()) % 1e12
	t.Logf("seeds from %d", first)
	judgeWorlds(t, first, 50)
}

// A failure can be looked at only if its seed gives the same world again.
func TestTheSameSeedIsTheSameWorld(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= 50; seed++ {
		one, other := judgeWorlds(t, seed, 1), judgeWorlds(t, seed, 1)
		if !slices.Equal(one.story, other.story) {
			t.Errorf("seed %d has two stories", seed)
		}
	}
}

// without a policy that can be read, a new process does not know since when the guest is protected. A NodePool
// that is made past the admission policies at that time is judged when the policy can be read again (seed 6730).
func TestA07_AStrangerIsJudgedWhenThePolicyCanBeReadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(1, surround(t))
	w.faulty, w.slow, w.fromHosted, w.foreign = 0, time.Millisecond, false, operator.ForeignDelete
	w.putPolicy()
	w.start()
	w.run(2 * time.Minute)
	w.denied = errDenied()
	w.start()
	w.run(5 * time.Second)
	stranger := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}}
	w.create(stranger)
	w.run(2 * time.Minute)
	if w.guest.Peek(stranger, client.ObjectKeyFromObject(stranger)) == nil {
		t.Fatal("it goes although the policy cannot be read")
	}
	w.denied = nil
	w.run(15 * time.Minute)
	if w.judge(); w.problem != nil {
		t.Errorf("%v\n%s", w.problem, strings.Join(w.story, "\n"))
	}
}

// judgeWorlds lets n worlds happen, reports what is wrong with them, and returns the last one.
func judgeWorlds(t *testing.T, first, n uint64) (w *world) {
	t.Helper()
	shared := surround(t)
	for seed := first; seed < first+n; seed++ {
		w = newWorld(seed, shared)
		if w.play(); w.problem != nil {
			t.Errorf("seed %d: %v", seed, w.problem)
		}
	}
	return w
}

func surround(t *testing.T) surroundings {
	t.Helper()
	scheme, err := apiserver.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	userData := filepath.Join(t.TempDir(), "user-data")
	if err := os.WriteFile(userData, []byte("boot"), 0o600); err != nil {
		t.Fatal(err)
	}
	return surroundings{scheme, readRights(t, "joiner-operator-guest/rules", "joiner-operator/rules"), userData}
}

// play lets everything happen, heals the world, and judges what has become of it.
func (w *world) play() {
	w.start()
	w.run(w.users())
	w.healed, w.denied, w.before.dead = true, nil, true
	if w.process.dead {
		w.start()
	}
	w.tell("healed")
	w.goOn()
	w.resolveVersions()
	w.run(15 * time.Minute)
	w.judge()
	guest, management := w.guest.Version(), w.management.Version()
	w.run(time.Hour)
	if w.guest.Version() != guest || w.management.Version() != management {
		w.fail("it does not come to rest: %d writes in the guest, %d in the management cluster in an hour",
			w.guest.Version()-guest, w.management.Version()-management)
	}
	if w.leaving = pick(w, "", teardown, release); w.leaving != "" {
		w.leave()
	} else if w.fromHosted {
		w.dismantle()
	}
}

// How the operator leaves a cluster.
const (
	teardown = "teardown" // takes all with it (G19)
	release  = "release"  // hands all over
)

// leave starts the operator with the flag by which it leaves the cluster, and judges what it has left.
func (w *world) leave() {
	w.tell("the operator leaves by a %s", w.leaving)
	w.healed = false
	w.process.die()
	w.run(time.Minute)
	w.healed = true
	w.run(15 * time.Minute)
	if !w.left {
		w.fail("the %s does not end", w.leaving)
	}
	for _, kind := range w.process.deps.kinds {
		w.guest.All(kind.NewWrapper(), func(o client.Object) {
			if w.leaving == teardown || !kind.Shared && slices.Contains(o.GetFinalizers(), kind.Finalizer) {
				w.fail("the %s leaves %s %s, with the finalizers %v", w.leaving, kind.Wrapper, o.GetName(),
					o.GetFinalizers())
			}
		})
		w.guest.All(kind.NewProduct(), func(o client.Object) {
			if o.GetLabels()[merge.ManagedByLabel] == merge.ManagedByValue {
				w.fail("the %s leaves %s %s", w.leaving, kind.Product, o.GetName())
			}
		})
	}
	for _, guard := range []client.Object{&admissionv1.ValidatingAdmissionPolicy{},
		&admissionv1.ValidatingAdmissionPolicyBinding{}} {
		w.guest.All(guard, func(o client.Object) {
			if o.GetLabels()[merge.ManagedByLabel] == merge.ManagedByValue {
				w.fail("the %s leaves %s %s", w.leaving, serve.KindOf(guard), o.GetName())
			}
		})
	}
}

// judge checks the state of both clusters.
func (w *world) judge() {
	policy, applied, all := w.policy(), 0, 0
	for _, kind := range w.process.deps.kinds {
		wrappers := map[string]client.Object{}
		w.guest.All(kind.NewWrapper(), func(o client.Object) { wrappers[o.GetName()] = o })
		for _, name := range slices.Sorted(maps.Keys(wrappers)) {
			wrapper := wrappers[name]
			all++
			if w.judgeWrapper(kind, policy, wrapper, w.guest.Peek(kind.NewProduct(), client.ObjectKey{Name: name})) {
				applied++
			}
		}
		w.guest.All(kind.NewProduct(), func(o client.Object) {
			if wrappers[o.GetName()] != nil {
				return
			}
			if o.GetLabels()[merge.ManagedByLabel] == merge.ManagedByValue {
				w.fail("%s %s has no wrapper", kind.Product, o.GetName())
			}
			free := kind.Quarantine != nil && kind.Quarantine(o.DeepCopyObject().(client.Object))
			if foreign(policy, o) &&
				(w.foreign == operator.ForeignDelete || w.foreign == operator.ForeignQuarantine && free) {
				w.fail("%s %s was made past the admission policies, and stays", kind.Product, o.GetName())
			}
		})
	}
	if policy != nil {
		w.judgePolicy(policy, applied == all)
	}
	for _, p := range w.process.deps.protections {
		if w.guest.Peek(&p.Policy, client.ObjectKey{Name: p.Policy.Name}) == nil {
			w.fail("the admission policy %s is gone", p.Policy.Name)
		}
	}
}

// foreign reports whether a product without a wrapper was certainly made while the guest was protected.
func foreign(policy *hypershiftv1beta1.AutoNodePolicy, product client.Object) bool {
	if policy == nil {
		return false
	}
	since, protected := condition.Since(policy.Status.Conditions, hypershiftv1beta1.ConditionTypeProtectedOnce)
	return protected && product.GetCreationTimestamp().After(since.Add(10*time.Second))
}

// judgeWrapper checks a wrapper and its product, nil for none, and reports whether the wrapper says that the policy is
// applied.
func (w *world) judgeWrapper(kind operator.Kind, policy *hypershiftv1beta1.AutoNodePolicy,
	wrapper, product client.Object) bool {
	about := kind.Wrapper + " " + wrapper.GetName()
	if wrapper.GetDeletionTimestamp() != nil {
		w.fail("%s does not go", about)
		return false
	}
	made, err := kind.Make(context.Background(), policy, wrapper.DeepCopyObject().(client.Object))
	if err != nil {
		w.fail("%s: %w", about, err)
	}
	state := kind.State(wrapper)
	said, found := condition.Get(*state.Conditions, hypershiftv1beta1.ConditionTypePolicyApplied)
	switch {
	case !found || said.ObservedGeneration != wrapper.GetGeneration():
		w.fail("%s: its status is of generation %d, not %d", about, said.ObservedGeneration, wrapper.GetGeneration())
	case said.Status != metav1.ConditionTrue:
		w.tell("%s says %s %s: %s", about, said.Status, said.Reason, said.Message)
		if made.Product != nil && made.Withheld == nil && w.hasClass(wrapper) {
			w.fail("%s says %s %s: %s", about, said.Status, said.Reason, said.Message)
		}
		return false
	case made.Product == nil:
		w.fail("%s says that the policy is applied, though %v", about, made.Problems)
	case product == nil:
		w.fail("%s says that the policy is applied, and there is no %s", about, kind.Product)
	case kind.Altered(product, made.Product).Any():
		w.fail("%s says that the policy is applied, and the %s differs: %v", about, kind.Product,
			kind.Altered(product, made.Product))
	case !owns(wrapper, product):
		w.fail("%s does not own its %s", about, kind.Product)
	case policy != nil && ((*state.ObservedPolicy) == nil || (*state.ObservedPolicy).UID != policy.UID ||
		(*state.ObservedPolicy).Generation != policy.Generation):
		w.fail("%s says that it has observed %v, not generation %d", about, *state.ObservedPolicy, policy.Generation)
	}
	return true
}

// hasClass reports whether the node class of a pool has a wrapper, and what its nodes start with. Other wrappers need
// none.
func (w *world) hasClass(wrapper client.Object) bool {
	pool, is := wrapper.(*hypershiftv1beta1.OpenshiftNodePool)
	if !is {
		return true
	}
	class := operator.ClassOf(pool)
	return w.guest.Peek(&hypershiftv1.OpenshiftEC2NodeClass{}, client.ObjectKey{Name: class}) != nil &&
		(!w.fromSecrets || w.management.Peek(&corev1.Secret{}, secretOf(class)) != nil)
}

func (w *world) judgePolicy(policy *hypershiftv1beta1.AutoNodePolicy, applied bool) {
	said, found := condition.Get(policy.Status.Conditions, hypershiftv1beta1.ConditionTypeReady)
	if !found || said.ObservedGeneration != policy.Generation || (said.Status == metav1.ConditionTrue) != applied {
		w.fail("the policy of generation %d says Ready=%s %s of generation %d (%s), though it is applied: %t",
			policy.Generation, said.Status, said.Reason, said.ObservedGeneration, said.Message, applied)
	}
}

// checkEvent checks what the process has done.
func (w *world) checkEvent(e apiserver.Event) {
	if !w.acting {
		return
	}
	w.tell("the operator: %s %s %s", e.Type, e.Kind(), e.Object.GetName())
	for _, kind := range w.process.deps.kinds {
		switch e.Kind() {
		case serve.KindOf(kind.NewProduct()):
			w.checkHash(kind, e)
			w.checkDeletion(kind, e)
		case serve.KindOf(kind.NewWrapper()):
			w.checkLetGo(kind, e)
		}
	}
}

// checkHash checks that a product keeps what Karpenter has written there.
func (w *world) checkHash(kind operator.Kind, e apiserver.Event) {
	if e.Type != apiserver.Modified {
		return
	}
	const hash = karpenterv1.NodePoolHashAnnotationKey
	if was, is := e.Old.GetAnnotations()[hash], e.Object.GetAnnotations()[hash]; is != was {
		w.fail("%s %s has the hash %q of Karpenter's, and had %q", kind.Product, e.Object.GetName(), is, was)
	}
}

// checkLetGo checks that a wrapper goes after its product (R24). Of two processes at once, the other may just have
// made the product, for a wrapper that its cache still shows.
func (w *world) checkLetGo(kind operator.Kind, e apiserver.Event) {
	product := w.guest.Peek(kind.NewProduct(), client.ObjectKeyFromObject(e.Object))
	if e.Type != apiserver.Deleted || product == nil || !w.before.dead {
		return
	}
	if owns(e.Object, product) {
		w.fail("%s %s is let go before its %s", kind.Wrapper, e.Object.GetName(), kind.Product)
	}
}

// checkDeletion checks that no product is deleted whose owner stays (R24, R25).
func (w *world) checkDeletion(kind operator.Kind, e apiserver.Event) {
	if e.Type != apiserver.Deleted &&
		(e.Old == nil || e.Old.GetDeletionTimestamp() != nil || e.Object.GetDeletionTimestamp() == nil) {
		return
	}
	wrapper := w.guest.Peek(kind.NewWrapper(), client.ObjectKeyFromObject(e.Object))
	if wrapper != nil && wrapper.GetDeletionTimestamp() == nil && owns(wrapper, e.Object) {
		w.fail("%s %s is deleted, though its wrapper stays", kind.Product, e.Object.GetName())
	}
}

func owns(owner, object client.Object) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(),
		func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() })
}
