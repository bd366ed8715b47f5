package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// rollable makes two nodes with a pod each; they are quiet for an hour, and roll one at a time.
func rollable(r *testRig, limits string) {
	r.apply(kwokPool("default", amd64Linux, "disruption:\n  consolidateAfter: 1h\n  budgets: [{nodes: \"1\"}]\n"+
		limits))
	r.apply(deployment("web", 2, "{cpu: '1'}", oneEach("web")))
	r.allRunning(2, soon)
	r.count(2)
	r.run("patch", "nodepool", "default", "--type=merge", "-p",
		`{"spec":{"template":{"metadata":{"labels":{"generation":"two"}}}}}`)
}

// old counts the claims of the first template; most fails the test when there are more claims than that.
func (r *testRig) old(ctx context.Context, most int) (old, all int, err error) {
	r.t.Helper()
	claims, err := r.claims(ctx)
	for _, c := range claims {
		if c.Labels["generation"] != "two" {
			old++
		}
	}
	if len(claims) > most {
		r.t.Errorf("%d claims, want %d at most", len(claims), most)
	}
	return old, len(claims), err
}

// L-30, L-34, L-35: at the hard limit nothing is replaced, and an event of its own says so. A deleted claim still
// goes, and what its pod needs is launched in its place. With room for one more the roll goes on.
func TestNoRollAtTheHardLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	rollable(r, "hardLimits: {nodes: 2}")
	r.told("NodePool", "default", "DisruptionBlocked",
		"No allowed disruptions for disruption reason Drifted due to node hard limit")
	for range 20 {
		if old, _, err := r.old(t.Context(), 2); err != nil || old != 2 {
			t.Fatalf("%d nodes of the old template, want 2: nothing may be replaced (%v)", old, err)
		}
		time.Sleep(500 * time.Millisecond)
	}
	r.run("delete", "nodeclaim", r.names()[0], "--wait=false")
	r.eventually(later, "one node of each template", func(ctx context.Context) (bool, string, error) {
		old, all, err := r.old(ctx, 2)
		return old == 1 && all == 2, fmt.Sprintf("%d claims, %d of the old template", all, old), err
	})
	r.allRunning(2, soon)
	r.run("patch", "nodepool", "default", "--type=merge", "-p", `{"spec":{"hardLimits":{"nodes":3}}}`)
	r.eventually(later, "two nodes of the new template", func(ctx context.Context) (bool, string, error) {
		old, all, err := r.old(ctx, 3)
		return old == 0 && all == 2, fmt.Sprintf("%d claims, %d of the old template", all, old), err
	})
	r.allRunning(2, soon)
	r.oneNodePerClaim()
}

// L-31: at the soft limit a roll goes on. For a while the replacement may be one node too many; nothing is trimmed for
// that. In the end exactly two nodes have been replaced.
func TestARollAtTheSoftLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	rollable(r, "limits: {nodes: 2}")
	seen := map[string]bool{}
	r.eventually(later, "two nodes of the new template", func(ctx context.Context) (bool, string, error) {
		claims, err := r.claims(ctx)
		for _, c := range claims {
			seen[c.Name] = true
		}
		old, all, oldErr := r.old(ctx, 3)
		if err == nil {
			err = oldErr
		}
		return old == 0 && all == 2, fmt.Sprintf("%d claims, %d of the old template", all, old), err
	})
	r.allRunning(2, soon)
	if len(seen) != 4 {
		t.Errorf("%d claims in all, want 4: two nodes and two replacements", len(seen))
	}
	r.oneNodePerClaim()
}
