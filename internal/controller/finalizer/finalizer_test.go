package finalizer_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/controller/finalizer"
)

func node(finalizers ...string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Finalizers: finalizers}}
}

func TestOnlyOursGoesAndOtherChangesDoNotMatter(t *testing.T) {
	t.Parallel()
	server := controllertest.NewServer(t, node("other/a", "ours/b")).Build()
	seen := node("other/a", "ours/b")
	var fresh corev1.Node
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(seen), &fresh); err != nil {
		t.Fatal(err)
	}
	fresh.Labels = map[string]string{"changed": "meanwhile"}
	if err := server.Update(t.Context(), &fresh); err != nil {
		t.Fatal(err)
	}
	if err := server.Patch(t.Context(), seen, finalizer.Remove(seen, "ours/b")); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(seen.Finalizers, []string{"other/a"}) || seen.Labels["changed"] != "meanwhile" {
		t.Fatalf("finalizers %v, labels %v", seen.Finalizers, seen.Labels)
	}
}

// A finalizer that somebody added meanwhile must not be lost.
func TestAChangedListIsRefused(t *testing.T) {
	t.Parallel()
	server := controllertest.NewServer(t, node("ours/b", "new/c")).Build()
	seen := node("ours/b")
	if err := server.Patch(t.Context(), seen, finalizer.Remove(seen, "ours/b")); err == nil {
		t.Fatal("the patch must be refused")
	}
}
