package joiner

import (
	"fmt"

	"github.com/joiner-autoscaler/joiner/internal/settings"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// Gates are the switches of --feature-gates. The flag takes Karpenter's text, so that a Karpenter deployment applies
// unchanged.
type Gates struct {
	// SpotToSpotConsolidation lets spot nodes be replaced by cheaper spot nodes (D-05).
	SpotToSpotConsolidation bool
	// NodeRepair lets nodes that stay unhealthy be replaced (D-13).
	NodeRepair bool
	// ReservedCapacity allows launches in reservations (P-11). NodeOverlay makes NodeOverlays take effect (P-11).
	// StaticCapacity acts on spec.replicas (D-12). CapacityBuffer keeps room for CapacityBuffers (K-35).
	ReservedCapacity, NodeOverlay, StaticCapacity, CapacityBuffer bool
	// TerminateFirstDrift lets a drifted node go before its replacement is there (K-48). That happens where its static
	// pool is at its limit, or where the replacement only fits in the reservation that the node holds.
	TerminateFirstDrift bool
}

// Notice is a message about a setting that is logged at the start.
type Notice = settings.Notice

// ParseGates reads the text of --feature-gates, see [settings.ParseGates].
func ParseGates(text string) (Gates, []Notice, error) {
	on, notices, err := settings.ParseGates(text)
	return Gates{
		SpotToSpotConsolidation: on["SpotToSpotConsolidation"], NodeRepair: on["NodeRepair"],
		ReservedCapacity: on["ReservedCapacity"], NodeOverlay: on["NodeOverlay"], StaticCapacity: on["StaticCapacity"],
		CapacityBuffer: on["CapacityBuffer"], TerminateFirstDrift: on["TerminateFirstDrift"],
	}, notices, err
}

// off returns which parts of the snapshot are left out.
func (g Gates) off() world.Off {
	return world.Off{Overlays: !g.NodeOverlay, Static: !g.StaticCapacity, Reserved: !g.ReservedCapacity,
		Buffers: !g.CapacityBuffer, First: !g.TerminateFirstDrift}
}

// Notices returns messages about settings that have no effect, or another one than users may expect.
func (c Config) Notices() []Notice {
	_, notices, _ := ParseGates(c.FeatureGates)
	if !c.IgnoreDRARequests {
		notices = append(notices, Notice{Setting: "ignore-dra-requests",
			Text: "--ignore-dra-requests (IGNORE_DRA_REQUESTS) is false: pods that ask for devices by ResourceClaims are expected on" +
				" nodes that are there and have these; no node is launched for them"})
	}
	if c.BatchIdleDuration > c.BatchMaxDuration {
		notices = append(notices, Notice{Setting: "batch-idle-duration",
			Text: fmt.Sprintf("--batch-idle-duration is %s and --batch-max-duration %s:"+
				" a batch ends after %[2]s, however many pods still come", c.BatchIdleDuration, c.BatchMaxDuration)})
	}
	return notices
}
