package apiserver_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

// a cache that lists again sees the newest states. It notices deletions by absence, and has the last state of
// what is gone. Events from before the list change nothing any more.
func TestACacheListsAnew(t *testing.T) {
	t.Parallel()
	s := newStand(t)
	put := func(name string) {
		if err := s.client.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	drop := func(name string) {
		if err := s.client.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	put("anew")
	put("goes")
	put("stays")
	cache := s.server.NewCache(nil)
	cache.Begin("Node")
	first := cache.Peek(&corev1.Node{}, client.ObjectKey{Name: "anew"}).GetUID()
	drop("anew")
	put("anew")
	put("comes")
	put("never seen")
	drop("never seen")
	drop("goes")
	missed := s.server.Log(cache.Seen("Node"))
	for _, deletions := range []bool{false, true} {
		var found []string
		for _, e := range cache.Relist("Node", deletions) {
			found = append(found, string(e.Type)+" "+e.Object.GetName())
		}
		want := []string{"MODIFIED anew", "ADDED comes", "DELETED goes"}
		if deletions {
			want = []string{"DELETED goes", "MODIFIED anew", "ADDED comes"}
		}
		if !slices.Equal(found, want) {
			t.Errorf("found %v, want %v", found, want)
		}
	}
	for _, e := range cache.Relist("Node", true) {
		if _, fresh := cache.Apply(e); !fresh {
			t.Errorf("%s %s of the list is not taken in", e.Type, e.Object.GetName())
		}
	}
	for _, e := range missed {
		if _, fresh := cache.Apply(e); fresh {
			t.Errorf("%s %s of before the list is taken in", e.Type, e.Object.GetName())
		}
	}
	var names []string
	cache.All(&corev1.Node{}, func(o client.Object) { names = append(names, o.GetName()) })
	if want := []string{"anew", "comes", "stays"}; !slices.Equal(names, want) || len(cache.Relist("Node", false)) > 0 {
		t.Errorf("the cache has %v, want %v and nothing left to learn", names, want)
	}
	if cache.Peek(&corev1.Node{}, client.ObjectKey{Name: "anew"}).GetUID() == first {
		t.Error("the node that was made anew is the one of before")
	}
	var again apiserver.Event
	if _, fresh := cache.Apply(again); fresh {
		t.Error("an event of no kind is taken in")
	}
}
