package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// K-48: a roll of a pool in a used-up reservation. With the gate TerminateFirstDrift off it waits, and the pool says
// why. With the gate on, nodes go one at a time before their replacements come, no claim fails, and none is outside of
// the reservation.
func TestK48_ARollInAFullReservation(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "types.json")
	two := strings.ReplaceAll(reservedFile, `"ReservationCapacity": 1`, `"ReservationCapacity": 2`)
	if err := os.WriteFile(file, []byte(two), 0o600); err != nil {
		t.Fatal(err)
	}
	const gates = "--feature-gates=ReservedCapacity=true,TerminateFirstDrift="
	r := newRig(t, func(o *rig.Options) { o.Args = append(o.Args, "--instance-types-file-path", file, gates+"false") })
	r.apply(kwokPool("default", "requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [reserved]}]",
		"disruption:\n  consolidateAfter: 1h\n  budgets: [{nodes: \"2\"}]"))
	r.apply(deployment("web", 2, "{cpu: '3'}", ""))
	r.allRunning(2, soon)
	r.run("patch", "nodepool", "default", "--type=merge", "-p",
		`{"spec":{"template":{"metadata":{"labels":{"generation":"two"}}}}}`)
	says := func() string {
		return r.run("get", "nodepool", "default", "-o",
			`jsonpath={.status.conditions[?(@.type=="RollBlocked")]['status','reason','message']}`)
	}
	r.eventually(later, "the pool to say that its roll waits", func(context.Context) (bool, string, error) {
		said := says()
		return strings.Contains(said, "True ReservationUsedUp 2 nodes are due to be replaced (Drifted)") &&
			strings.Contains(said, "TerminateFirstDrift"), said, nil
	})
	if old, all, err := r.old(t.Context(), 2); err != nil || old != 2 || all != 2 {
		t.Fatalf("%d nodes, %d of the old template, want 2 and 2: nothing may go yet (%v)", all, old, err)
	}
	if err := r.KillJoiner(); err != nil {
		t.Fatal(err)
	}
	// if a flag is given twice, the last one counts
	if err := r.StartJoiner(t.Context(), gates+"true"); err != nil {
		t.Fatal(err)
	}
	r.eventually(later, "two nodes of the new template", func(ctx context.Context) (bool, string, error) {
		claims, err := r.claims(ctx)
		going := 0
		for _, c := range claims {
			if c.DeletionTimestamp != nil {
				going++
			}
			if kind := c.Labels[karpenterv1.CapacityTypeLabelKey]; kind != "" && kind != "reserved" {
				t.Errorf("claim %s is %s", c.Name, kind)
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
		return says() == "", says(), nil
	})
}
