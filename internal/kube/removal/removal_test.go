package removal_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/kube/removal"
)

// P-41, P-43: the earlier of two deadlines of a drain counts, and it is written onto a deleted claim.
func TestTheSoonerEndOfADrainCounts(t *testing.T) {
	t.Parallel()
	now := controllertest.Start()
	for name, test := range map[string]struct {
		grace   time.Duration // 0: none
		written string
		latest  time.Time
		want    string
	}{
		"no end of its own": {latest: now.Add(2 * time.Minute), want: "2026-01-02T03:06:05Z"},
		"a later one":       {grace: time.Hour, latest: now.Add(2 * time.Minute), want: "2026-01-02T03:06:05Z"},
		"a sooner one":      {grace: time.Minute, latest: now.Add(2 * time.Minute)},
		"a sooner one, written": {written: "2026-01-02T03:05:05Z", latest: now.Add(2 * time.Minute),
			want: "2026-01-02T03:05:05Z"},
		"nothing to be bound by":  {grace: time.Minute},
		"at once, for a dead one": {grace: time.Minute, latest: now, want: "2026-01-02T03:04:05Z"},
	} {
		claim := &karpenterv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u", Finalizers: []string{karpenterv1.TerminationFinalizer}},
		}
		if test.grace > 0 {
			claim.Spec.TerminationGracePeriod = &karpenterv1.Duration{Duration: test.grace}
		}
		if test.written != "" {
			claim.Annotations = map[string]string{karpenterv1.NodeClaimTerminationTimestampAnnotationKey: test.written}
		}
		server := controllertest.NewServer(t, claim.DeepCopy()).Build()
		for range 2 { // again is no harm
			if err := removal.Delete(t.Context(), server, claim); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if err := removal.Bound(t.Context(), server, claim, test.latest, now); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		var stored karpenterv1.NodeClaim
		if err := server.Get(t.Context(), client.ObjectKeyFromObject(claim), &stored); err != nil {
			t.Fatal(err)
		}
		if got := stored.Annotations[karpenterv1.NodeClaimTerminationTimestampAnnotationKey]; got != test.want ||
			stored.DeletionTimestamp == nil {
			t.Errorf("%s: deleted %v, ends at %q; want %q", name, stored.DeletionTimestamp, got, test.want)
		}
	}
	gone := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "gone", UID: "g",
		Finalizers: []string{karpenterv1.TerminationFinalizer}}}
	server := controllertest.NewServer(t).Build()
	if err := removal.Delete(t.Context(), server, gone); err != nil {
		t.Errorf("what is gone: %v", err)
	}
	if err := removal.Bound(t.Context(), server, gone, now, now); err != nil {
		t.Errorf("what is gone: %v", err)
	}
}

// P-40: a claim from which somebody took our finalizer is not deleted: it would be gone at once, and leave a machine.
func TestAClaimWithoutItsFinalizerStays(t *testing.T) {
	t.Parallel()
	claim := &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u"}}
	server := controllertest.NewServer(t, claim.DeepCopy()).Build()
	err := removal.Delete(t.Context(), server, claim)
	if err == nil || !strings.Contains(err.Error(), "NodeClaim c: somebody took its finalizer karpenter.sh/") {
		t.Errorf("error %v, want one that names claim and finalizer", err)
	}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
		t.Errorf("the claim is gone: %v", err)
	}
}
