package operator

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
)

// parts of the protection that are not in force are reported when they change, and only then.
func TestA07_WhatIsMissingIsToldOnce(t *testing.T) {
	t.Parallel()
	for whose, hangUp := range map[string]func(*Board, []string){
		"ours": (*Board).SetMissing, "of others": (*Board).setMissingOfOthers,
	} {
		board := NewBoard()
		hangUp(board, []string{"before anybody listens"})
		told := 0
		board.OnVerdict(func(kind, name string) {
			if told++; kind != "ValidatingAdmissionPolicy" || name != "" {
				t.Errorf("%s: told of %s %q", whose, kind, name)
			}
		})
		for i, step := range []struct {
			names []string
			told  int
		}{{[]string{"a"}, 1}, {[]string{"a"}, 1}, {[]string{"a", "b"}, 2}, {nil, 3}, {nil, 3}} {
			if hangUp(board, step.names); told != step.told {
				t.Errorf("%s, step %d: told %d times, want %d", whose, i, told, step.told)
			}
			if all := slices.Concat(board.Missing(), board.missingOfOthers()); !slices.Equal(all, step.names) {
				t.Errorf("%s, step %d: %v are missing, want %v", whose, i, all, step.names)
			}
		}
	}
}

// what was found out about a wrapper is not known of another one of its name.
func TestA03_AVerdictIsNotAnothers(t *testing.T) {
	t.Parallel()
	board := NewBoard()
	board.Reach("Wrapper", "web", Verdict{UID: "u", Generation: 2})
	known := &hypershiftv1beta1.OpenshiftNodePool{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "u", Generation: 2}}
	another := known.DeepCopy()
	another.UID = "another"
	for wrapper, want := range map[*hypershiftv1beta1.OpenshiftNodePool]bool{known: true, another: false} {
		if v, found := board.lastVerdict("Wrapper", wrapper); found != want || (v.Generation == 2) != want {
			t.Errorf("of the wrapper with UID %s this is known: %t, %+v", wrapper.UID, found, v)
		}
	}
}

// a product stands when it is as policy and wrapper want it: not a pool that is closed, or waits for its
// class, though it is written. What closes it is told before that no policy is applied.
func TestA06_WhatIsClosedOrWaitsDoesNotStand(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{Name: "web", UID: "u", Generation: 1}
	pool := &karpenterv1.NodePool{ObjectMeta: meta}
	s := scene{wrapper: &hypershiftv1beta1.OpenshiftNodePool{ObjectMeta: meta}, reading: readPolicy(7, 1)}
	const unmanaged = conformance.NodeClassUnmanaged
	problems := []merge.Problem{{Reason: hypershiftv1beta1.ReasonNodeClassUnmanaged}}
	for name, c := range map[string]struct {
		made  Made
		state ReadState
		found bool
		cause conformance.Cause
	}{
		"as wanted":               {Made{Product: pool}, StateRead, true, ""},
		"waiting":                 {Made{Product: pool, Missing: "its class"}, StateRead, false, ""},
		"closed":                  {Made{Product: pool, Problems: problems}, StateRead, false, unmanaged},
		"open, under no policy":   {Made{Product: pool}, StatePermissive, true, conformance.PolicyUnreadable},
		"closed, under no policy": {Made{Product: pool, Problems: problems}, StatePermissive, false, unmanaged},
	} {
		s.reading.State = c.state
		v := verdict("NodePool", s, outcome{product: pool, made: &c.made}, Verdict{})
		if v.stands.found != c.found || v.cause != c.cause {
			t.Errorf("%s: it stands: %t, the cause is %q, want %t and %q", name, v.stands.found, v.cause, c.found,
				c.cause)
		}
	}
}
