package cluster

import (
	"fmt"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// VolumeRef is a volume of a CSI driver with limits that some node may have already, or that other pods use too: it
// counts once on a node (K-59). Volumes that are neither are in Shape.Requests.
type VolumeRef struct {
	// tells it from others: driver/volume, or driver/namespace/claim while the claim is not bound
	Name  string
	Takes resources.Vector // 1 of the resource that counts volumes of the driver
}

// Is reports whether both are one volume.
func (v VolumeRef) Is(other VolumeRef) bool { return v.Name == other.Name }

// NewVolume is a volume that a claim of the pod does not have yet. The pod's node decides where it is made, or which
// of the existing ones is taken (K-58, K-59).
type NewVolume struct {
	Class string // the StorageClass
	Size  int64  // in bytes
	// Made is set where a driver makes volumes of the class and says how much it has left; else nothing makes any.
	Made bool
	// Stated is Size in the component in which instance types state how much their nodes have; nil when none does.
	Stated resources.Vector
	Block  bool     // volumeMode
	Modes  []string // access modes, sorted
	Labels Selector // of the volume; not enabled: any
	// Claim is the namespace/name of the claim where other pods use it too; else "", so that pods that are alike share
	// a shape.
	Claim string
}

// StorageCapacity says how much a driver has left for volumes of a class, for some nodes (CSIStorageCapacity).
type StorageCapacity struct {
	Name  string // namespace/name
	Class string
	Nodes Selector // the nodes that reach it; not enabled: none
	// Capacity is what is left, and Most the largest volume that can be made, in bytes; -1 where nobody says.
	Capacity, Most int64
}

// Sufficient reports whether a volume of a size can be made while taken of the capacity is given away. The first
// volume is judged as kube-scheduler does: by Most if that is known, else by Capacity.
func (c *StorageCapacity) Sufficient(size, taken int64) bool {
	limit := c.Capacity
	if c.Most >= 0 {
		limit = c.Most
	}
	return limit >= size && (taken == 0 || c.Capacity < 0 || resources.Sum(taken, size) <= c.Capacity)
}

// FreeVolume is a PersistentVolume that no claim has.
type FreeVolume struct {
	Name   string
	Class  string
	Size   int64
	Block  bool
	Modes  []string // sorted
	Labels map[string]string
	Places []Alternative // where it can be used: an OR; none for anywhere
}

// Serves reports whether a claim may take the volume, wherever that is.
func (v *FreeVolume) Serves(want *NewVolume) bool {
	if v.Class != want.Class || v.Block != want.Block || v.Size < want.Size {
		return false
	}
	for _, mode := range want.Modes {
		if !slices.Contains(v.Modes, mode) {
			return false
		}
	}
	return !want.Labels.Enabled || want.Labels.Matches(v.Labels)
}

// ReachedFrom reports whether the volume can be used on a node.
func (v *FreeVolume) ReachedFrom(n *Node) bool { return n.Admits(&Shape{Alternatives: v.Places}) }

// StorageAsk returns a further ask for which a node was launched, beside what the pods ask for (Shape.Ask): volumes of
// the class are made there, and nobody knows how much it will have for them.
func StorageAsk(class string) string { return storageAsk + class }

const storageAsk = "storage-class/"

// IsStorageAsk reports whether an ask is one of StorageAsk, and of which class.
func IsStorageAsk(ask string) (class string, is bool) { return strings.CutPrefix(ask, storageAsk) }

// Asks returns what pods of the shape ask for: Ask, and one for each class whose volumes are made on the pod's node.
func (s *Shape) Asks() []string {
	asks := []string{s.Ask()}
	for i := range s.NewVolumes {
		if ask := StorageAsk(s.NewVolumes[i].Class); s.NewVolumes[i].Made && !slices.Contains(asks, ask) {
			asks = append(asks, ask)
		}
	}
	return asks
}

// writeVolumes writes what decides of volumes.
func (s *Shape) writeVolumes(b *strings.Builder) {
	for _, v := range s.Volumes {
		fmt.Fprintf(b, "|attached %q %v", v.Name, v.Takes)
	}
	for _, v := range s.NewVolumes {
		fmt.Fprintf(b, "|volume %q %d %t %v %t %q %s %q", v.Class, v.Size, v.Made, v.Stated, v.Block, v.Modes,
			v.Labels, v.Claim)
	}
	if len(s.Drivers) > 0 {
		fmt.Fprintf(b, "|drivers %q", s.Drivers)
	}
}

// Reaches reports whether the node is one of those that a capacity is for.
func (n *Node) Reaches(c *StorageCapacity) bool {
	return c.Nodes.Enabled && n.Satisfies(c.Nodes.Labels)
}
