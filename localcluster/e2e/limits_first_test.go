package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// K-48, L-14: a roll at the hard limit waits, and the pool says why and what can be done. An invalid value of the
// annotation is reported. With a valid one, nodes go one at a time before their replacements come, and there are never
// three claims.
func TestK48_ARollAtTheHardLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	rollable(r, "hardLimits: {nodes: 2}")
	says := func(what, condition string, parts ...string) {
		t.Helper()
		r.eventually(later, what, func(context.Context) (bool, string, error) {
			said := r.run("get", "nodepool", "default", "-o",
				fmt.Sprintf(`jsonpath={.status.conditions[?(@.type==%q)]['status','reason','message']}`, condition))
			for _, part := range parts {
				if !strings.Contains(said, part) {
					return false, said, nil
				}
			}
			return true, said, nil
		})
	}
	says("the pool to say that its roll waits", "RollBlocked", "True HardLimit",
		"2 nodes are due to be replaced (Drifted)", `annotation joiner.sh/terminate-first: "true"`)
	r.run("annotate", "nodepool", "default", "joiner.sh/terminate-first=yes")
	says("the pool to say what is allowed", "TerminateFirst", "False ValueUnknown", `is "yes": want "true" or "false"`)
	r.show("A roll that waits:", "get", "nodepool", "default", "-o",
		`custom-columns=NAME:.metadata.name,ROLL:.status.conditions[?(@.type=="RollBlocked")].message`)
	if old, _, err := r.old(t.Context(), 2); err != nil || old != 2 {
		t.Fatalf("%d nodes of the old template, want 2: nothing may go yet (%v)", old, err)
	}
	r.run("annotate", "--overwrite", "nodepool", "default", "joiner.sh/terminate-first=true")
	r.eventually(later, "two nodes of the new template", func(ctx context.Context) (bool, string, error) {
		claims, err := r.claims(ctx)
		going := 0
		for _, c := range claims {
			if c.DeletionTimestamp != nil {
				going++
			}
		}
		if going > 1 {
			t.Errorf("%d nodes go at a time, want 1", going)
		}
		old, all, oldErr := r.old(ctx, 2)
		if err == nil {
			err = oldErr
		}
		return old == 0 && all == 2, fmt.Sprintf("%d claims, %d of the old template", all, old), err
	})
	r.allRunning(2, soon)
	r.oneNodePerClaim()
	r.eventually(later, "the pool to say no more that its roll waits", func(context.Context) (bool, string, error) {
		said := r.run("get", "nodepool", "default", "-o",
			`jsonpath={.status.conditions[?(@.type=="RollBlocked")].message}`)
		return said == "", said, nil
	})
}
