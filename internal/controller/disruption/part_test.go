package disruption_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// halved returns a rig whose command replaces two large nodes by two small ones, since their pods keep apart. One
// small one did not come; halved returns the other one.
func halved(t *testing.T) (*rig, string) {
	t.Helper()
	r := clusterOf(t, "100%", map[string]string{"a": "large", "b": "large"}, "1500m")
	for _, name := range []string{"on-a", "on-b"} {
		var pod corev1.Pod
		if err := r.server.Get(t.Context(), types.NamespacedName{Namespace: podOn("a").Namespace, Name: name},
			&pod); err != nil {
			t.Fatal(err)
		}
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: corev1.LabelHostname,
					LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels}}}}}
		if err := r.server.Update(t.Context(), &pod); err != nil {
			t.Fatal(err)
		}
	}
	r.turn(t)
	replacements := r.replacements(t)
	if marked, _ := r.state(t); len(marked) != 2 || len(replacements) != 2 {
		t.Fatalf("marked %v, replacements %v, the test wants two replaced by two", marked, replacements)
	}
	r.lose(t, replacements[0])
	return r, replacements[1]
}

func (r *rig) annotations(t *testing.T, name string) map[string]string {
	t.Helper()
	var claim karpenterv1.NodeClaim
	if err := r.server.Get(t.Context(), types.NamespacedName{Name: name}, &claim); err != nil {
		t.Fatal(err)
	}
	return claim.Annotations
}

// D-10: a command with one failed launch keeps what came, if that alone saves money. While that is not known yet the
// command waits. Then it replaces one node, the other stays, and the pool is left alone for a while. A restart changes
// nothing.
func TestWhatCameOfACommandIsKept(t *testing.T) {
	t.Parallel()
	for _, restarts := range []bool{false, true} {
		r, came := halved(t)
		again := func() {
			if restarts {
				r.reborn(t)
			}
			r.turn(t)
		}
		again()
		if marked, deleting := r.state(t); len(marked) != 2 || len(deleting) != 0 {
			t.Fatalf("restarts %v: marked %v, deleting %v: want it to wait for the launch", restarts, marked, deleting)
		}
		r.join(t, came, "small")
		again()
		marked, deleting := r.state(t)
		if len(marked) != 1 || len(deleting) != 0 {
			t.Fatalf("restarts %v: marked %v, deleting %v: want one of both", restarts, marked, deleting)
		}
		stays := map[string]string{"a": "b", "b": "a"}[marked[0]]
		if of := r.annotations(t, came); of[karpenterv1.ReplacesAnnotationKey] != marked[0] ||
			of[karpenterv1.ReplacementsAnnotationKey] != "1" {
			t.Errorf("restarts %v: what came has %v, want it to replace %s alone", restarts, of, marked[0])
		}
		if r.tainted(t, stays) || !r.tainted(t, marked[0]) {
			t.Errorf("restarts %v: want a taint on %s and none on %s", restarts, marked[0], stays)
		}
		said := "1 of 2 replacements failed; of the 2 nodes of the command 1 go, for what came"
		said = stays + " DisruptionCancelled: The node stays: " + said
		if all := strings.Join(r.tape.Said(), "\n"); !restarts && !strings.Contains(all, said) {
			t.Errorf("want %s in\n%s", said, all)
		}
		again()
		again()
		if _, deleting := r.state(t); !slices.Equal(deleting, marked) {
			t.Fatalf("restarts %v: deleting %v, want %v", restarts, deleting, marked)
		}
	}
}

// D-10: if what came is not enough or saves too little, everything is taken back at once.
func TestWhatCameAndSavesNothingIsNotKept(t *testing.T) {
	t.Parallel()
	r, came := halved(t)
	r.join(t, came, "large") // not what was planned
	r.clock.Advance(time.Second)
	r.turn(t)
	if marked, deleting := r.state(t); len(marked) != 0 || len(deleting) != 0 || r.tainted(t, "a") ||
		r.tainted(t, "b") {
		t.Fatalf("marked %v, deleting %v: want all taken back", marked, deleting)
	}
}
