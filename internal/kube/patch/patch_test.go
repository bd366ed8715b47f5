package patch_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
)

func node(finalizers ...string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Finalizers: finalizers}}
}

// meanwhile is another writer.
func meanwhile(t *testing.T, server client.Client, change func(*corev1.Node)) {
	t.Helper()
	var fresh corev1.Node
	if err := server.Get(t.Context(), client.ObjectKey{Name: "n"}, &fresh); err != nil {
		t.Fatal(err)
	}
	change(&fresh)
	if err := server.Update(t.Context(), &fresh); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyOurFinalizerGoesAndOtherChangesDoNotMatter(t *testing.T) {
	t.Parallel()
	server := controllertest.NewServer(t, node("other/a", "ours/b")).Build()
	seen := node("other/a", "ours/b")
	meanwhile(t, server, func(n *corev1.Node) { n.Labels = map[string]string{"changed": "meanwhile"} })
	if err := server.Patch(t.Context(), seen, patch.RemoveFinalizer(seen, "ours/b")); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen.Finalizers, []string{"other/a"}) || seen.Labels["changed"] != "meanwhile" {
		t.Fatalf("finalizers %v, labels %v", seen.Finalizers, seen.Labels)
	}
}

// P-40: an object that somebody has written meanwhile keeps the finalizer, an unchanged one loses it.
func TestAFinalizerGoesOffWhatNobodyHasWritten(t *testing.T) {
	t.Parallel()
	server := controllertest.NewServer(t, node("other/a", "ours/b")).Build()
	var seen corev1.Node
	if err := server.Get(t.Context(), client.ObjectKey{Name: "n"}, &seen); err != nil {
		t.Fatal(err)
	}
	late := seen.DeepCopy()
	meanwhile(t, server, func(n *corev1.Node) { n.Spec.ProviderID = "named meanwhile" })
	if err := server.Patch(t.Context(), late, patch.RemoveFinalizerOfUnchanged(&seen, "ours/b")); err == nil {
		t.Fatalf("finalizers %v: want the patch refused", late.Finalizers)
	}
	if err := server.Get(t.Context(), client.ObjectKey{Name: "n"}, &seen); err != nil {
		t.Fatal(err)
	}
	if err := server.Patch(t.Context(), &seen, patch.RemoveFinalizerOfUnchanged(&seen, "ours/b")); err != nil ||
		!slices.Equal(seen.Finalizers, []string{"other/a"}) {
		t.Errorf("finalizers %v: %v", seen.Finalizers, err)
	}
}

// A finalizer that somebody added meanwhile must not be lost.
func TestAChangedListOfFinalizersIsRefused(t *testing.T) {
	t.Parallel()
	server := controllertest.NewServer(t, node("ours/b", "new/c")).Build()
	seen := node("ours/b")
	if err := server.Patch(t.Context(), seen, patch.RemoveFinalizer(seen, "ours/b")); err == nil {
		t.Fatal("the patch must be refused")
	}
}

func TestAnotherObjectOfTheNameIsLeftAlone(t *testing.T) {
	t.Parallel()
	stands, seen := node("ours/b"), node("ours/b")
	stands.UID, seen.UID = "second", "first"
	server := controllertest.NewServer(t, stands).Build()
	if err := server.Patch(t.Context(), seen, patch.RemoveFinalizer(seen, "ours/b")); err == nil {
		t.Fatal("the patch must be refused")
	}
}

func changed(before *corev1.Node) *corev1.Node {
	after := before.DeepCopy()
	after.Labels = map[string]string{"a/b~c": "1"}
	after.Annotations = map[string]string{"note": "x"}
	after.Finalizers = append(after.Finalizers, "ours/b")
	after.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "K", Name: "o", UID: "u"}}
	after.Spec.Taints = []corev1.Taint{{Key: "new", Effect: corev1.TaintEffectNoSchedule}}
	return after
}

func TestANodeGetsAllThatDiffers(t *testing.T) {
	t.Parallel()
	empty, full := node(), node("other/a")
	full.Labels, full.Annotations = map[string]string{"keep": "1"}, map[string]string{"keep": "1"}
	full.Spec.Taints = []corev1.Taint{{Key: "old", Effect: corev1.TaintEffectNoExecute}}
	for name, before := range map[string]*corev1.Node{"empty": empty, "full": full} {
		server := controllertest.NewServer(t, before.DeepCopy()).Build()
		got := before.DeepCopy()
		if err := server.Patch(t.Context(), got, patch.Node(before, changed(before))); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.Labels["a/b~c"] != "1" || got.Annotations["note"] != "x" || len(got.OwnerReferences) != 1 ||
			len(got.Spec.Taints) != 1 || got.Spec.Taints[0].Key != "new" ||
			!slices.Contains(got.Finalizers, "ours/b") || len(got.Finalizers) != len(before.Finalizers)+1 ||
			got.Labels["keep"] != before.Labels["keep"] {
			t.Errorf("%s: got %+v %+v", name, got.ObjectMeta, got.Spec)
		}
	}
}

// Heartbeats and labels of others do not matter; a first taint of others does.
func TestOnlyChangesOfTheSameListAreRefused(t *testing.T) {
	t.Parallel()
	server := controllertest.NewServer(t, node()).Build()
	before := node()
	meanwhile(t, server, func(n *corev1.Node) { n.Annotations = map[string]string{"heartbeat": "1"} })
	after := before.DeepCopy()
	after.Spec.Taints = []corev1.Taint{{Key: "ours", Effect: corev1.TaintEffectNoSchedule}}
	if err := server.Patch(t.Context(), before.DeepCopy(), patch.Node(before, after)); err != nil {
		t.Fatal(err)
	}
	if err := server.Patch(t.Context(), before.DeepCopy(), patch.Node(before, after)); err == nil {
		t.Fatal("the list is another one now: the patch must be refused")
	}
}

// B-12: taints that others write while a node comes up neither block our patch nor get lost. Our patch is refused if
// one of our own taints has changed.
func TestTaintsOfOthersStay(t *testing.T) {
	t.Parallel()
	taint := func(key string) corev1.Taint { return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule} }
	for name, c := range map[string]struct {
		before, meanwhile, after []string
		want                     string // "" for refused
	}{
		"one of others goes":  {[]string{"ours", "other"}, []string{"ours"}, []string{"other"}, "[]"},
		"one of others comes": {[]string{"ours"}, []string{"ours", "other"}, nil, "[other]"},
		"others come and go, ours comes": {[]string{"other"}, []string{"another"}, []string{"other", "ours"},
			"[another ours]"},
		"two go, one comes": {[]string{"a", "b", "c"}, []string{"a", "b", "c", "d"},
			[]string{"b", "new"}, "[b d new]"},
		"nothing changes":                     {[]string{"a"}, []string{"b"}, []string{"a"}, "[b]"},
		"ours is gone":                        {[]string{"ours"}, nil, nil, ""},
		"ours has moved":                      {[]string{"other", "ours"}, []string{"ours"}, []string{"other"}, ""},
		"another stands in its place":         {[]string{"ours"}, []string{"other", "ours"}, nil, ""},
		"there was none, and somebody was so": {nil, []string{"other"}, []string{"ours"}, ""},
	} {
		list := func(keys []string) (taints []corev1.Taint) {
			for _, key := range keys {
				taints = append(taints, taint(key))
			}
			return taints
		}
		before, after := node(), node()
		before.Spec.Taints, after.Spec.Taints = list(c.before), list(c.after)
		server := controllertest.NewServer(t, before.DeepCopy()).Build()
		meanwhile(t, server, func(n *corev1.Node) { n.Spec.Taints = list(c.meanwhile) })
		got := before.DeepCopy()
		err := server.Patch(t.Context(), got, patch.Node(before, after))
		keys := []string{}
		for _, t := range got.Spec.Taints {
			keys = append(keys, t.Key)
		}
		if refused := err != nil; refused != (c.want == "") || !refused && fmt.Sprint(keys) != c.want {
			t.Errorf("%s: %v, error %v; want %q", name, keys, err, c.want)
		}
	}
}

// P-41, P-43: an annotation that somebody wrote meanwhile stays, whether there was none before, others, or another
// value.
func TestAnAnnotationIsSetOnlyOverWhatWasSeen(t *testing.T) {
	t.Parallel()
	for _, before := range []map[string]string{nil, {"other": "x"}, {"other": "x", "ours/due": "tomorrow"}} {
		stands, seen := node(), node()
		stands.Annotations, seen.Annotations = before, before
		server := controllertest.NewServer(t, stands).Build()
		late := seen.DeepCopy()
		if err := server.Patch(t.Context(), seen, patch.Annotation(seen, "ours/due", "soon")); err != nil {
			t.Fatal(err)
		}
		if err := server.Patch(t.Context(), late.DeepCopy(), patch.Annotation(late, "ours/due", "later")); err == nil {
			t.Fatalf("annotations %v: the patch must be refused", before)
		}
		if seen.Annotations["ours/due"] != "soon" || seen.Annotations["other"] != before["other"] {
			t.Errorf("annotations %v", seen.Annotations)
		}
	}
}

// E-38: of two processes that add the same labels, for two machines, the first one counts. Other labels do not matter.
func TestLabelsAreAddedOnce(t *testing.T) {
	t.Parallel()
	for name, labels := range map[string]map[string]string{"with labels": {"pool": "a"}, "without": nil} {
		made := node()
		made.Labels = labels
		server := controllertest.NewServer(t, made).Build()
		seen := made.DeepCopy()
		meanwhile(t, server, func(n *corev1.Node) { n.Annotations = map[string]string{"changed": "meanwhile"} })
		add := func(kind string) error {
			after := seen.DeepCopy()
			after.Labels = map[string]string{"type": kind}
			for key, value := range labels {
				after.Labels[key] = value
			}
			return server.Patch(t.Context(), seen.DeepCopy(), patch.MetaAdding(seen, after))
		}
		if err := add("m5.large"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := add("c5.large"); err == nil {
			t.Errorf("%s: the second one is written, too", name)
		}
		if err := server.Get(t.Context(), client.ObjectKey{Name: "n"}, seen); err != nil ||
			seen.Labels["type"] != "m5.large" {
			t.Errorf("%s: labels %v, error %v", name, seen.Labels, err)
		}
	}
}
