package apply_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// intent returns a claim's intent to be removed, empty if there is none.
func (r *rig) intent(t *testing.T, name string) karpenterv1.Condition {
	t.Helper()
	var claim karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), client.ObjectKey{Name: name}, &claim); err != nil {
		t.Fatal(err)
	}
	known, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason)
	return known
}

func (r *rig) taints(t *testing.T) []corev1.Taint {
	t.Helper()
	var node corev1.Node
	if err := r.server.Get(t.Context(), client.ObjectKey{Name: "n1"}, &node); err != nil {
		t.Fatal(err)
	}
	return node.Spec.Taints
}

func (r *rig) mark(t *testing.T, remove plan.Remove) {
	t.Helper()
	if marked, err := r.applier.Mark(t.Context(), remove); err != nil || !marked {
		t.Fatalf("marked %t, error %v", marked, err)
	}
}

// D-10: the intent has the reason, and its message explains it. The taint keeps pods away and evicts none.
func TestTheIntentSaysWhy(t *testing.T) {
	t.Parallel()
	for why, want := range map[string]string{
		"":                 "chosen to be removed: Empty",
		"4 nodes of 3 run": "chosen to be removed: Empty: 4 nodes of 3 run",
	} {
		claim, node, remove := markable()
		remove.Why = why
		r := newRig(t, limit.Unlimited(), interceptor.Funcs{}, claim, node)
		r.mark(t, remove)
		got := r.intent(t, "c1")
		if got.Status != metav1.ConditionTrue || got.Reason != "Empty" || got.Message != want {
			t.Errorf("the claim says %+v, want %q", got, want)
		}
		disrupted := corev1.Taint{Key: karpenterv1.DisruptedTaintKey, Effect: corev1.TaintEffectNoSchedule}
		if taints := r.taints(t); !slices.Contains(taints, disrupted) || len(taints) != 2 {
			t.Errorf("taints %v, want %v beside the one of others", taints, disrupted)
		}
	}
}

// D-10: an existing intent is not rewritten just for its text. It is if its reason changes, or if it was taken back.
func TestTheIntentIsWrittenWhenItChanges(t *testing.T) {
	t.Parallel()
	stands := condition.True(karpenterv1.ConditionTypeDisruptionReason, "Empty", "chosen to be removed: Empty")
	for name, c := range map[string]struct {
		before condition.Value
		reason plan.DisruptionReason
		wrote  bool
	}{
		"other words":  {stands, plan.Empty, false},
		"other reason": {stands, plan.Drifted, true},
		"taken back":   {condition.False(stands.Type, "Empty", ""), plan.Empty, true},
	} {
		claim, node, remove := markable()
		condition.Set(&claim.Status.Conditions, 0, c.before, controllertest.Start())
		remove.Reason, remove.Why = c.reason, "in other words"
		var writes []string
		r := newRig(t, limit.Unlimited(), tape(&writes), claim, node)
		r.mark(t, remove)
		if slices.Contains(writes, "status c1") != c.wrote {
			t.Errorf("%s: writes %v, want the intent written: %t", name, writes, c.wrote)
		}
		if got := r.intent(t, "c1"); got.Reason != string(c.reason) || got.Status != metav1.ConditionTrue {
			t.Errorf("%s: the claim says %+v", name, got)
		}
	}
}

// A claim whose node has not come is removed like any other; nobody looks for its node.
func TestAClaimWithoutANodeIsMarkedAndUnmarked(t *testing.T) {
	t.Parallel()
	claim, _, remove := markable()
	remove.Node = ""
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if _, node := o.(*corev1.Node); node {
				return errors.New("there is no node to be asked for")
			}
			return c.Get(ctx, key, o, options...)
		},
	}, claim)
	r.mark(t, remove)
	if err := r.applier.Undo(t.Context(), remove); err != nil {
		t.Fatal(err)
	}
	if got := r.intent(t, "c1"); got.Status != "" {
		t.Errorf("after it was taken back the claim says %+v", got)
	}
}

// A claim that is gone or being deleted is not marked, and that is no error. So is one that goes between read and
// write.
func TestWhatGoesAnywayIsNotMarked(t *testing.T) {
	t.Parallel()
	gone := apierrors.NewNotFound(schema.GroupResource{Resource: "nodeclaims"}, "c1")
	for name, c := range map[string]struct {
		change func(*karpenterv1.NodeClaim, *corev1.Node)
		writes error // what a write of the claim is answered
	}{
		"claim gone":      {change: func(c *karpenterv1.NodeClaim, _ *corev1.Node) { c.Name = "another" }},
		"claim going":     {change: func(c *karpenterv1.NodeClaim, _ *corev1.Node) { goes(&c.ObjectMeta) }},
		"goes meanwhile":  {writes: gone},
		"node gone":       {change: func(_ *karpenterv1.NodeClaim, n *corev1.Node) { n.Name = "another" }},
		"claim not found": {change: func(c *karpenterv1.NodeClaim, _ *corev1.Node) { c.UID = "before" }},
	} {
		claim, node, remove := markable()
		if c.change != nil {
			c.change(claim, node)
		}
		hooks := interceptor.Funcs{}
		if c.writes != nil {
			hooks.SubResourcePatch = func(context.Context, client.Client, string, client.Object, client.Patch,
				...client.SubResourcePatchOption) error {
				return c.writes
			}
		}
		r := newRig(t, limit.Unlimited(), hooks, claim, node)
		if marked, err := r.applier.Mark(t.Context(), remove); marked || err != nil {
			t.Errorf("%s: marked %t, error %v", name, marked, err)
		}
	}
}

// goes makes an object one that is being deleted and held by somebody's finalizer.
func goes(meta *metav1.ObjectMeta) {
	now := metav1.NewTime(controllertest.Start())
	meta.DeletionTimestamp, meta.Finalizers = &now, []string{"example.com/hold"}
}

// A node that is being deleted keeps its taint: its drain needs it.
func TestANodeThatIsDeletedKeepsItsTaint(t *testing.T) {
	t.Parallel()
	claim, node, remove := markable()
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: karpenterv1.DisruptedTaintKey,
		Effect: corev1.TaintEffectNoSchedule})
	goes(&node.ObjectMeta)
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{}, claim, node)
	if err := r.applier.Undo(t.Context(), remove); err != nil || len(r.taints(t)) != 2 {
		t.Errorf("taints %v, error %v: want them as they were", r.taints(t), err)
	}
}

// D-10: after the claim is gone, its node may still carry the taint of an intent that no longer exists.
func TestTheTaintIsTakenOffWhenTheClaimIsGone(t *testing.T) {
	t.Parallel()
	_, node, remove := markable()
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: karpenterv1.DisruptedTaintKey,
		Effect: corev1.TaintEffectNoSchedule})
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{}, node)
	if err := r.applier.Undo(t.Context(), remove); err != nil || len(r.taints(t)) != 1 {
		t.Errorf("taints %v, error %v: want only the one of others", r.taints(t), err)
	}
}

// strangers owns only the claims, nodes and pools that it is told.
type strangers struct{ pools, claims, nodes bool }

func (s strangers) OwnsPool(*karpenterv1.NodePool) bool   { return s.pools }
func (s strangers) OwnsClaim(*karpenterv1.NodeClaim) bool { return s.claims }
func (s strangers) OwnsNode(*corev1.Node, *karpenterv1.NodeClaim, *karpenterv1.NodePool) bool {
	return s.nodes
}

// whatever a plan says, nothing is written to what is not ours.
func TestWhatIsNotOursIsNotWrittenTo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ours strangers
		want []string
	}{
		"claim": {strangers{pools: true, nodes: true}, nil},
		"node":  {strangers{pools: true, claims: true}, []string{"status c1"}},
	} {
		claim, node, remove := markable()
		var writes []string
		r := newRig(t, limit.Unlimited(), tape(&writes), claim, node)
		r.with(func(a *apply.Config) { a.Fleet = c.ours })
		if _, err := r.applier.Mark(t.Context(), remove); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.Equal(writes, c.want) {
			t.Errorf("%s of another: writes %v, want %v", name, writes, c.want)
		}
	}
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{})
	r.with(func(a *apply.Config) { a.Fleet = strangers{claims: true, nodes: true} })
	out := r.apply(t, planOf(launch(plan.NoSlot, "a")))
	if len(out.Refused) != 1 || !strings.Contains(out.Refused[0].Why, "no provider here serves") ||
		len(r.claims(t)) != 0 {
		t.Errorf("pool of another: outcome %+v", out)
	}
}

// D-10: a replacement that stays after all loses only the record of what it was made for. This is written once, and
// not for a claim that is gone.
func TestAReplacementIsReleased(t *testing.T) {
	t.Parallel()
	claim, _, remove := markable()
	claim.Annotations = map[string]string{
		karpenterv1.ReplacesAnnotationKey: "a,b", karpenterv1.ReplacementsAnnotationKey: "2",
		"example.com/own": "kept",
	}
	var writes []string
	r := newRig(t, limit.Unlimited(), tape(&writes), claim)
	for range 2 {
		if err := r.applier.Release(t.Context(), remove, nil); err != nil {
			t.Fatal(err)
		}
	}
	var fresh karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), client.ObjectKey{Name: "c1"}, &fresh); err != nil {
		t.Fatal(err)
	}
	if len(fresh.Annotations) != 1 || fresh.Annotations["example.com/own"] != "kept" || !slices.Equal(writes,
		[]string{"patch c1"}) {
		t.Errorf("annotations %v after the writes %v", fresh.Annotations, writes)
	}
	// D-15: the claims that it did replace stay recorded on it.
	fresh.Annotations[karpenterv1.ReplacesAnnotationKey] = "a,b"
	if err := r.server.Update(t.Context(), &fresh); err != nil {
		t.Fatal(err)
	}
	if err := r.applier.Release(t.Context(), remove, []string{"a"}); err != nil {
		t.Fatal(err)
	}
	if err := r.server.Get(t.Context(), client.ObjectKey{Name: "c1"}, &fresh); err != nil ||
		len(fresh.Annotations) != 2 || fresh.Annotations[karpenterv1.ReplacedAnnotationKey] != "a" {
		t.Errorf("annotations %v, error %v", fresh.Annotations, err)
	}
	remove.Claim = "gone"
	if err := r.applier.Release(t.Context(), remove, nil); err != nil {
		t.Errorf("a claim that is gone: %v", err)
	}
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		claim, _, remove := markable()
		claim.Annotations = map[string]string{karpenterv1.ReplacesAnnotationKey: "a"}
		r := newRig(t, limit.Unlimited(), interceptor.Funcs{}, claim)
		server := f.Wrap(r.server)
		r.with(func(a *apply.Config) { a.Client, a.Live = server, server })
		return func() error { return r.applier.Release(t.Context(), remove, nil) }
	})
}

// D-10: if other replacements of a command did not come, a replacement replaces fewer claims. This is written once,
// and not for a claim that is gone.
func TestAReplacementReplacesFewer(t *testing.T) {
	t.Parallel()
	claim, _, remove := markable()
	claim.Annotations = map[string]string{
		karpenterv1.ReplacesAnnotationKey: "a,b,c", karpenterv1.ReplacementsAnnotationKey: "3",
		"example.com/own": "kept",
	}
	var writes []string
	r := newRig(t, limit.Unlimited(), tape(&writes), claim)
	for range 2 {
		if err := r.applier.Narrow(t.Context(), remove, []string{"a", "c"}, 2); err != nil {
			t.Fatal(err)
		}
	}
	var fresh karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), client.ObjectKey{Name: "c1"}, &fresh); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{karpenterv1.ReplacesAnnotationKey: "a,c", karpenterv1.ReplacementsAnnotationKey: "2",
		"example.com/own": "kept"}
	if !maps.Equal(fresh.Annotations, want) || !slices.Equal(writes, []string{"patch c1"}) {
		t.Errorf("annotations %v after the writes %v", fresh.Annotations, writes)
	}
	remove.Claim = "gone"
	if err := r.applier.Narrow(t.Context(), remove, []string{"a"}, 1); err != nil {
		t.Errorf("a claim that is gone: %v", err)
	}
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		claim, _, remove := markable()
		claim.Annotations = map[string]string{karpenterv1.ReplacesAnnotationKey: "a,b"}
		r := newRig(t, limit.Unlimited(), interceptor.Funcs{}, claim)
		server := f.Wrap(r.server)
		r.with(func(a *apply.Config) { a.Client, a.Live = server, server })
		return func() error { return r.applier.Narrow(t.Context(), remove, []string{"a"}, 1) }
	})
}

// D-10: the intents of a plan are written before its launches.
func TestIntentsComeBeforeLaunches(t *testing.T) {
	t.Parallel()
	claim, node, remove := markable()
	var writes []string
	hooks := tape(&writes)
	hooks.Create = func(ctx context.Context, c client.WithWatch, o client.Object,
		options ...client.CreateOption) error {
		writes = append(writes, "create")
		return c.Create(ctx, o, options...)
	}
	r := newRig(t, limit.Unlimited(), hooks, claim, node)
	p := planOf(replacement(plan.NoSlot, "c1"))
	p.Removes = []plan.Remove{remove}
	out := r.apply(t, p)
	if want := []string{"status c1", "patch n1", "create"}; !slices.Equal(writes, want) || !slices.Equal(out.Marked,
		[]string{"c1"}) {
		t.Errorf("writes %v, want %v; outcome %+v", writes, want, out)
	}
}

// D-10: a launch is refused if its replaced claim could not be marked; the others are made. The failure is returned.
func TestALaunchThatReplacesAnUnmarkedClaimIsNotMade(t *testing.T) {
	t.Parallel()
	claim, node, remove := markable()
	second, third := remove, remove
	second.Claim, second.ClaimUID, second.Node = "gone", "gone-uid", ""
	third.Claim, third.ClaimUID, third.Node = "broken", "broken-uid", ""
	r := newRig(t, limit.Unlimited(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			options ...client.GetOption) error {
			if key.Name == "broken" {
				return controllertest.ErrRefused
			}
			return c.Get(ctx, key, o, options...)
		},
	}, claim, node)
	p := planOf(replacement(plan.NoSlot, "c1", "gone"), replacement(plan.NoSlot, "gone"), launch(plan.NoSlot, "a"),
		replacement(plan.NoSlot, "c1"))
	p.Removes = []plan.Remove{third, second, remove}
	p.Launches[0].Pods = []plan.PodRef{{Namespace: "default", Name: "p", UID: "uid-p"}}
	out, err := r.applier.Apply(t.Context(), p)
	if !errors.Is(err, controllertest.ErrRefused) || !strings.Contains(err.Error(),
		"marking NodeClaim broken for removal") {
		t.Errorf("error %v, want that of the claim which could not be read", err)
	}
	if !slices.Equal(out.Marked, []string{"c1"}) || len(out.Launched) != 2 || len(r.claims(t)) != 3 ||
		len(out.Refused) != 2 {
		t.Fatalf("outcome %+v, claims %v: want c1 marked, and two launches", out, r.claims(t))
	}
	first := out.Refused[0]
	if first.Pool != "default" || len(first.Pods) != 1 ||
		first.Why != "NodeClaim gone, which it was to replace, is not marked" {
		t.Errorf("refused %+v: want its pool, its pods, and the claim named that is not marked", first)
	}
}

// B-12, D-10: somebody took the taint off by hand. Taking the intent back still puts the node back behind its load
// balancers; without a label of ours there is nothing to write.
func TestUndoGivesANodeWithoutTheTaintBackToItsBalancers(t *testing.T) {
	t.Parallel()
	const key = karpenterv1.ExcludeBalancersLabelKey
	for had, c := range map[string]struct {
		after  string
		writes []string
	}{
		karpenterv1.ExcludeBalancersLabelValue: {"", []string{"patch n1"}},
		"true":                                 {"true", nil},
		"":                                     {"", nil},
	} {
		claim, node, remove := markable()
		if had != "" {
			metav1.SetMetaDataLabel(&node.ObjectMeta, key, had)
		}
		var writes []string
		r := newRig(t, limit.Unlimited(), tape(&writes), claim, node)
		if err := r.applier.Undo(t.Context(), remove); err != nil {
			t.Fatal(err)
		}
		var after corev1.Node
		if err := r.server.Get(t.Context(), client.ObjectKey{Name: "n1"}, &after); err != nil {
			t.Fatal(err)
		}
		if after.Labels[key] != c.after || !slices.Equal(writes, c.writes) || len(after.Spec.Taints) != 1 {
			t.Errorf("the label was %q and is %q, want %q; taints %v; writes %v, want %v", had, after.Labels[key],
				c.after, after.Spec.Taints, writes, c.writes)
		}
	}
}

// B-12: a node that goes at once leaves the load balancers with the write of its taint. A node that waits for its
// replacement goes on serving. Taking an intent back restores the node, but leaves somebody else's label alone.
func TestWhatGoesAtOnceLeavesTheBalancersWithItsTaint(t *testing.T) {
	t.Parallel()
	const key = karpenterv1.ExcludeBalancersLabelKey
	for name, c := range map[string]struct {
		replaced           bool
		had, marked, after string
	}{
		"empty":          {false, "", karpenterv1.ExcludeBalancersLabelValue, ""},
		"replaced":       {true, "", "", ""},
		"somebody's own": {true, "true", "true", "true"},
	} {
		claim, node, remove := markable()
		if c.had != "" {
			metav1.SetMetaDataLabel(&node.ObjectMeta, key, c.had)
		}
		var writes []string
		r := newRig(t, limit.Unlimited(), tape(&writes), claim, node)
		p := planOf()
		if c.replaced {
			p = planOf(replacement(plan.NoSlot, "c1"))
		}
		p.Removes = []plan.Remove{remove}
		label := func() string {
			var n corev1.Node
			if err := r.server.Get(t.Context(), client.ObjectKey{Name: "n1"}, &n); err != nil {
				t.Fatal(err)
			}
			return n.Labels[key]
		}
		r.apply(t, p)
		if got := label(); got != c.marked || !slices.Equal(writes, []string{"status c1", "patch n1"}) {
			t.Errorf("%s: the label is %q, want %q; writes %v", name, got, c.marked, writes)
		}
		if err := r.applier.Undo(t.Context(), remove); err != nil || label() != c.after {
			t.Errorf("%s: taken back, the label is %q, want %q; error %v", name, label(), c.after, err)
		}
	}
}
