package dump

import (
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// The records of storage (K-58, K-59).

type volumeRefRecord struct {
	Name  string  `json:"name"`
	Takes []int64 `json:"takes"`
}

type newVolumeRecord struct {
	Class  string         `json:"class"`
	Size   int64          `json:"size"`
	Made   bool           `json:"made,omitempty"`
	Stated []int64        `json:"stated,omitempty"`
	Block  bool           `json:"block,omitempty"`
	Modes  []string       `json:"modes,omitempty"`
	Labels selectorRecord `json:"labels"`
	Claim  string         `json:"claim,omitempty"` // namespace/name
}

type capacityRecord struct {
	Name     string         `json:"name"` // namespace/name
	Class    string         `json:"class"`
	Nodes    selectorRecord `json:"nodes"`
	Capacity int64          `json:"capacity"` // -1 when unknown
	Most     int64          `json:"most"`     // the same
}

type freeVolumeRecord struct {
	Name   string              `json:"name"`
	Class  string              `json:"class"`
	Size   int64               `json:"size"`
	Block  bool                `json:"block,omitempty"`
	Modes  []string            `json:"modes,omitempty"`
	Labels map[string]string   `json:"labels,omitempty"`
	Places []alternativeRecord `json:"places,omitempty"`
}

func volumeRef(v cluster.VolumeRef) volumeRefRecord { return volumeRefRecord{v.Name, v.Takes} }

func newVolume(v cluster.NewVolume) newVolumeRecord {
	return newVolumeRecord{v.Class, v.Size, v.Made, v.Stated, v.Block, v.Modes, selector(v.Labels), v.Claim}
}

func capacity(c cluster.StorageCapacity) capacityRecord {
	return capacityRecord{c.Name, c.Class, selector(c.Nodes), c.Capacity, c.Most}
}

func freeVolume(v cluster.FreeVolume) freeVolumeRecord {
	return freeVolumeRecord{v.Name, v.Class, v.Size, v.Block, v.Modes, some(v.Labels), each(v.Places, alternative)}
}

func (r *reader) volumeRef(v volumeRefRecord) cluster.VolumeRef {
	return cluster.VolumeRef{Name: v.Name, Takes: r.positive("volumes: takes", v.Takes)}
}

func (r *reader) newVolume(v newVolumeRecord) cluster.NewVolume {
	r.need(v.Size >= 0, "newVolumes: size is %d; want 0 or more", v.Size)
	return cluster.NewVolume{Class: v.Class, Size: v.Size, Made: v.Made,
		Stated: r.positive("newVolumes: stated", v.Stated), Block: v.Block, Modes: v.Modes,
		Labels: r.selector(v.Labels), Claim: v.Claim}
}

func (r *reader) capacity(c capacityRecord) cluster.StorageCapacity {
	r.need(c.Capacity >= -1 && c.Most >= -1,
		"capacities: capacity is %d and most %d; want 0 or more, or -1 where nobody says", c.Capacity, c.Most)
	return cluster.StorageCapacity{Name: c.Name, Class: c.Class, Nodes: r.selector(c.Nodes), Capacity: c.Capacity,
		Most: c.Most}
}

func (r *reader) freeVolume(v freeVolumeRecord) cluster.FreeVolume {
	r.need(v.Size >= 0, "freeVolumes: size is %d; want 0 or more", v.Size)
	return cluster.FreeVolume{Name: v.Name, Class: v.Class, Size: v.Size, Block: v.Block, Modes: v.Modes,
		Labels: v.Labels, Places: each(v.Places, r.alternative)}
}

// Kinds of names of storage.
const (
	kindVolume = "volume"
	kindClass  = "class"
	kindDriver = "driver"
)

// drivers visits names of CSI drivers, which reveal whose storage it is.
func (w *walk) drivers(names []string) {
	if w.how == RedactAll {
		w.names(kindDriver, names)
	}
}

func (w *walk) volumesOf(s *shapeRecord) {
	for i := range s.Volumes {
		w.name(kindVolume, &s.Volumes[i].Name)
	}
	for i := range s.NewVolumes {
		v := &s.NewVolumes[i]
		w.name(kindClass, &v.Class)
		w.selector(&v.Labels)
		w.name(kindVolume, &v.Claim)
	}
	w.drivers(s.Drivers)
}

func (w *walk) storage(p *pictureRecord) {
	for i := range p.Capacities {
		c := &p.Capacities[i]
		w.name(kindVolume, &c.Name)
		w.name(kindClass, &c.Class)
		w.selector(&c.Nodes)
	}
	for i := range p.FreeVolumes {
		v := &p.FreeVolumes[i]
		w.name(kindVolume, &v.Name)
		w.name(kindClass, &v.Class)
		w.labels(&v.Labels)
		for j := range v.Places {
			w.requirements(v.Places[j].Labels)
			w.requirement(&v.Places[j].Names)
		}
	}
}
