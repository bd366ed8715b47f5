package joiner

import (
	"fmt"

	"github.com/joiner-autoscaler/joiner/internal/settings"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// Gates are what --feature-gates switches. It takes Karpenter's text, so that a deployment made for that applies as it
// is.
type Gates struct {
	// SpotToSpotConsolidation lets spot nodes be replaced by cheaper spot nodes (D-05).
	SpotToSpotConsolidation bool
	// NodeRepair lets nodes that stay unhealthy be replaced (D-13).
	NodeRepair bool
	// ReservedCapacity lets nodes be launched in reservations (P-11), NodeOverlay lets NodeOverlays take effect (P-11),
	// StaticCapacity lets spec.replicas be acted on (D-12), and CapacityBuffer lets room be kept for CapacityBuffers (K-35).
	ReservedCapacity, NodeOverlay, StaticCapacity, CapacityBuffer bool
	// TerminateFirstDrift lets a node that is to be replaced go first, where its static pool is at its limit, or what replaces
	// it only fits in the reservation that it holds (K-48).
	TerminateFirstDrift bool
}

// Notice is something that the log is told of a setting at the start.
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

// off says which parts of the picture are left out.
func (g Gates) off() world.Off {
	return world.Off{Overlays: !g.NodeOverlay, Static: !g.StaticCapacity, Reserved: !g.ReservedCapacity, Buffers: !g.CapacityBuffer,
		First: !g.TerminateFirstDrift}
}

// Notices names the settings that were given and have no effect, or another one than may be thought.
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
