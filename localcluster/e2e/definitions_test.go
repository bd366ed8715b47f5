package e2e

import (
	"context"
	"fmt"
	"testing"
)

// Uninstalling a chart of definitions by mistake deletes them, with all their objects. The nodes are drained and go
// (experience.md, U-11). When definitions and pools are back, the pods get nodes again, and nobody has to restart
// Joiner.
func TestDefinitionsThatAreDeletedAndInstalledAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	pool := kwokPool("default", amd64Linux, quick)
	r.apply(pool + deployment("web", 3, `{cpu: "1500m"}`, ""))
	r.allRunning(3, soon)
	pid := r.JoinerPID()
	for _, name := range []string{"nodeclaims.karpenter.sh", "nodepools.karpenter.sh"} {
		before, err := r.claims(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := r.ReinstallDefinition(t.Context(), r.Client, name, later); err != nil {
			t.Fatal(err)
		}
		r.apply(pool)
		r.allRunning(3, later)
		r.eventually(later, "new NodeClaims instead of the old ones", func(ctx context.Context) (bool, string, error) {
			now, err := r.claims(ctx)
			old := 0
			for _, a := range before {
				for _, b := range now {
					if a.UID == b.UID {
						old++
					}
				}
			}
			return old == 0 && len(now) > 0, fmt.Sprintf("%d NodeClaims, %d of them old", len(now), old), err
		})
		r.oneNodePerClaim()
	}
	r.run("delete", "deployment", "web")
	r.nothingLeft(later)
	if r.JoinerPID() != pid {
		t.Error("Joiner was restarted")
	}
}
