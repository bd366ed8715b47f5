package disruption_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// L-40: what is known of an excess while the limit and the process change. An excess that Joiner saw arise goes at
// once, whatever the limit becomes. Another one goes at once only below the limit at which it was seen.
func TestWhatIsKnownOfAnExcess(t *testing.T) {
	t.Parallel()
	round := func(t *testing.T, r *rig) { t.Helper(); r.reconcile(t); r.sync(t) }
	to := func(limit string) func(*testing.T, *rig) {
		return func(t *testing.T, r *rig) { t.Helper(); r.change(t, softLimit(limit)) }
	}
	anew := func(t *testing.T, r *rig) { t.Helper(); r.restart(); r.sync(t) }
	refused := func(t *testing.T, r *rig) { // a round in which no pool can be written
		t.Helper()
		r.patch = func() error { return controllertest.ErrRefused }
		if _, err := r.step.Reconcile(t.Context(), reconcile.Request{}); err == nil {
			t.Error("the mark was written")
		}
		r.patch = nil
	}
	rolls := func(t *testing.T, r *rig) {
		t.Helper()
		r.appear(t, "y", map[string]string{karpenterv1.ReplacesAnnotationKey: "a",
			karpenterv1.ReplacementsAnnotationKey: "1"})
		r.mark(t, "a", "Drifted")
		r.sync(t)
	}
	more := func(t *testing.T, r *rig) { t.Helper(); r.appear(t, "z", nil); r.sync(t) }
	type steps []func(*testing.T, *rig)
	for name, c := range map[string]struct {
		steps steps
		want  string
	}{
		"raised at once": {steps{to("4"), round, to("1"), round, to("2"), round}, "AtOnce 2"},
		"raised, by another process": {steps{to("4"), round, to("1"), round, anew, round, to("2"), round},
			"AtOnce 2"},
		"raised, unseen by another":    {steps{to("4"), round, to("1"), round, anew, to("2"), round}, "Inherited"},
		"inherited, refused":           {steps{to("3"), refused, to("2"), round}, "Inherited"},
		"inherited, lowered, refused":  {steps{to("3"), round, to("2"), refused, round}, "AtOnce 2"},
		"lowered, refused, and raised": {steps{to("3"), round, to("2"), refused, to("3"), round}, "Inherited"},
		"seen in a roll, and lowered":  {steps{to("4"), rolls, round, to("3"), more, round}, "AtOnce 3"},
		"seen in a roll":               {steps{to("4"), rolls, round, more, round}, "Inherited"},
	} {
		r := newRig(t, softFleet("9", "0", "a", "b", "c", "d")...)
		r.over(interceptor.NewClient(r.server, interceptor.Funcs{
			Patch: func(ctx context.Context, s client.WithWatch, o client.Object, p client.Patch,
				options ...client.PatchOption) error {
				if r.patch != nil {
					return r.patch()
				}
				return s.Patch(ctx, o, p, options...)
			},
		}))
		for _, step := range c.steps {
			step(t, r)
		}
		if got := r.aboveLimit(t); got != c.want {
			t.Errorf("%s: mark %q, want %q", name, got, c.want)
		}
	}
}

// L-40: the mark of a pool that is within its limit again is off, and its other annotations stay.
func TestTheMarkOfAPoolWithinItsLimitIsOff(t *testing.T) {
	t.Parallel()
	objects := softFleet("2", "1", "a", "b")
	objects[0].SetAnnotations(map[string]string{karpenterv1.AboveLimitAnnotationKey: "Inherited",
		"example.com/own": "yes"})
	r := newRig(t, objects...)
	r.reconcile(t)
	var pool karpenterv1.NodePool
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: "default"}, &pool); err != nil {
		t.Fatal(err)
	}
	if len(pool.Annotations) != 1 || pool.Annotations["example.com/own"] != "yes" {
		t.Errorf("annotations %v", pool.Annotations)
	}
}

// L-40: an inherited excess is reported once, with all existing nodes. One that goes at once is not reported as
// inherited.
func TestAnInheritedExcessIsToldOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, softFleet("1", "0", "a", "b", "c", "d")...)
	r.goes(t, "a")
	for range 4 {
		r.reconcile(t)
		r.sync(t)
	}
	r.change(t, softLimit("0"))
	r.reconcile(t)
	told := slices.DeleteFunc(r.tape.Said(), func(s string) bool { return !strings.Contains(s, "first saw it") })
	if len(told) != 1 || !strings.Contains(told[0], "4 nodes, limit 1 (soft limit)") || !strings.Contains(told[0],
		"so 3 nodes are removed") {
		t.Errorf("told %q", told)
	}
}

// L-40: each pool has its own mark, and one's failure does not delay another. In a round that marks any, nothing goes.
func TestEachPoolHasItsMark(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ refuse, first, second string }{
		"both": {"", "Inherited", "Inherited"}, "refused": {"default", "", "Inherited"},
	} {
		objects := softFleet("1", "2", "a", "b", "c")
		other := softFleet("1", "2", "x", "y", "z")
		pool := other[0].(*karpenterv1.NodePool)
		pool.Name, pool.UID = "other", "other"
		last := softFleet("9", "2")[0].(*karpenterv1.NodePool)
		last.Name, last.UID = "within", "within"
		for _, o := range other[1:] {
			o.GetLabels()[karpenterv1.NodePoolLabelKey] = "other"
		}
		var gone []client.Object // from the API server, and not from the picture yet
		for _, name := range []string{"a-first", "z-last"} {
			p := softFleet("1", "2")[0].(*karpenterv1.NodePool)
			p.Name, p.UID = name, types.UID(name)
			gone = append(gone, p)
		}
		r := newRig(t, append(append(append(objects, other...), last), gone...)...)
		for _, p := range gone {
			if err := r.server.Delete(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		r.over(interceptor.NewClient(r.server, interceptor.Funcs{
			Patch: func(ctx context.Context, s client.WithWatch, o client.Object, p client.Patch,
				options ...client.PatchOption) error {
				if o.GetName() == c.refuse {
					return controllertest.ErrRefused
				}
				return s.Patch(ctx, o, p, options...)
			},
		}))
		_, err := r.step.Reconcile(t.Context(), reconcile.Request{})
		var got karpenterv1.NodePool
		if err := r.server.Get(t.Context(), types.NamespacedName{Name: "other"}, &got); err != nil {
			t.Fatal(err)
		}
		marked, _ := r.state(t)
		if second := got.Annotations[karpenterv1.AboveLimitAnnotationKey]; (err != nil) != (c.refuse != "") ||
			r.aboveLimit(t) != c.first ||
			second != c.second || len(marked) != 0 {
			t.Errorf("%s: error %v, marks %q and %q, nodes marked %v", name, err, r.aboveLimit(t), second, marked)
		}
	}
}
