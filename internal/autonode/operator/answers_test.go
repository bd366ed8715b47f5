package operator

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
)

// B-15: while the watch is behind the operator's own writes, a step goes on from their answers.
func TestOwnWritesCountBeforeTheWatchShowsThem(t *testing.T) {
	t.Parallel()
	at := func(version string) *hypershiftv1beta1.OpenshiftNodePool {
		return &hypershiftv1beta1.OpenshiftNodePool{
			ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u", ResourceVersion: version},
		}
	}
	a := newAnswers()
	a.remember("1", at("2"))
	a.remember("2", at("3"))
	for cached, want := range map[string]string{"1": "3", "2": "3", "3": "3", "4": "4"} {
		if got := a.newest(at(cached)).GetResourceVersion(); got != want {
			t.Errorf("the cache shows %s: going on from %s, want %s", cached, got, want)
		}
	}
	a.remember("7", at("8")) // somebody else wrote in between: what was before is not known to be older
	if got := a.newest(at("2")).GetResourceVersion(); got != "2" {
		t.Errorf("going on from %s", got)
	}
	another := at("7")
	another.UID = "another"
	if got := a.newest(another).GetResourceVersion(); got != "7" {
		t.Errorf("another object of that name is taken for %s", got)
	}
	a.forget("web")
	if got := a.newest(at("7")).GetResourceVersion(); got != "7" {
		t.Errorf("a forgotten object is taken for %s", got)
	}
}

// Of its own writes in a row the last four are known.
func TestHowManyOwnWritesAreKnown(t *testing.T) {
	t.Parallel()
	a := newAnswers()
	pool := func(version string) *hypershiftv1beta1.OpenshiftNodePool {
		return &hypershiftv1beta1.OpenshiftNodePool{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u",
			ResourceVersion: version}}
	}
	versions := []string{"1", "2", "3", "4", "5", "6", "7"}
	for i, version := range versions[:len(versions)-1] {
		a.remember(version, pool(versions[i+1]))
	}
	for cached, want := range map[string]string{"2": "2", "3": "7", "4": "7", "5": "7", "6": "7", "7": "7"} {
		if got := a.newest(pool(cached)).GetResourceVersion(); got != want {
			t.Errorf("the cache shows %s: going on from %s, want %s", cached, got, want)
		}
	}
}
