package script_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/script"
)

// K-42. The devices of scripts are to planning what those of a cluster are.
func TestK42_DevicesOfScripts(t *testing.T) {
	t.Parallel()
	enginetest.Devices(t, func(t *testing.T, inventory enginetest.Inventory) cluster.Devices {
		t.Helper()
		var lines []string
		line := func(head string, kinds map[string]int64) {
			for kind, n := range kinds {
				head += fmt.Sprintf(" %s=%d", kind, n)
			}
			lines = append(lines, head)
		}
		for name, kinds := range inventory.Nodes {
			line("devices "+name, kinds)
		}
		for name, claim := range inventory.Claims {
			head := "resourceclaim " + name
			if claim.On != "" {
				head += " on=" + claim.On
			}
			line(head, claim.Kinds)
		}
		snapshot, err := script.Parse(strings.Join(lines, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		return snapshot.Devices
	})
}
