package whatif

import (
	"os"
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

// TestU31_WhatIsLeftOutOfAClusterChangesNothing: the plan is the same for whole documents and for what is kept of
// them, twice. What a pod's containers run is not kept (U-40).
func TestU31_WhatIsLeftOutOfAClusterChangesNothing(t *testing.T) {
	t.Parallel()
	reads, err := NewUnderstanding()
	if err != nil {
		t.Fatal(err)
	}
	understood := 0
	for seed := range uint64(seeds) {
		g := newGenerator(t, seed)
		whole := stored(t, g.pictured(g.cluster()))
		want := planned(t, g.pictured(whole))
		var spare []Document
		for _, d := range copied(whole) {
			kept := reads.Of(d)
			if pod, isPod := kept.object.(*corev1.Pod); isPod {
				understood++
				if c := pod.Spec.Containers[0]; c.Image != "" || len(c.Env) > 0 || pod.ManagedFields != nil {
					t.Errorf("seed %d: %+v is kept", seed, c)
				}
			}
			spare = append(spare, kept)
		}
		for range 2 { // a world writes into its own copies
			inventory, err := kwok.LoadInventory("testdata/small.json", os.ReadFile)
			if err != nil {
				t.Fatal(err)
			}
			w, err := New(Input{Documents: spare, Catalogue: inventory.Catalog(), Now: time.Unix(1_800_000_000, 0)})
			if err != nil {
				t.Fatal(err)
			}
			if got := planned(t, w); !reflect.DeepEqual(got, want) {
				t.Errorf("seed %d: %+v\nof what is kept, of the whole\n%+v", seed, got, want)
			}
		}
	}
	if understood == 0 {
		t.Error("there was no pod")
	}
}

// stored returns the objects of a world as a cluster has them, with more in its pods than planning uses.
func stored(t *testing.T, w *World) (documents []Document) {
	t.Helper()
	for _, o := range w.told {
		o := o.DeepCopyObject()
		if pod, isPod := o.(*corev1.Pod); isPod {
			pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
			pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
			for i := range pod.Spec.Containers {
				pod.Spec.Containers[i].Image = "image"
				pod.Spec.Containers[i].Env = []corev1.EnvVar{{Name: "NAME", Value: "value"}}
			}
		}
		if o.GetObjectKind().GroupVersionKind().Empty() {
			continue
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, Document{Where: "the cluster", Content: content, Stored: true})
	}
	return documents
}
