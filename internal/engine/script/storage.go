package script

import (
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// volumes is the resource that counts volumes in scripts. statedPrefix begins the resources in which types state how
// much a node has for volumes of a class.
const (
	volumes      = "volumes"
	statedPrefix = "storage."
)

// capacity is a CSIStorageCapacity: what is left of a class on the nodes that nodes= selects, or on all of them.
func (p *parser) capacity(name string, a *attributes) {
	c := cluster.StorageCapacity{Name: name, Class: a.get("class", ""), Capacity: a.size("left"), Most: a.size("most"),
		Nodes: cluster.Selector{Enabled: !a.has("none"), Labels: a.requirements(a.get("nodes", ""))}}
	p.parts.Capacities = append(p.parts.Capacities, c)
}

// size reads a size, -1 where nobody says.
func (a *attributes) size(name string) int64 {
	if text := a.get(name, ""); text != "" {
		return a.bytes(text)
	}
	return -1
}

// freeVolume is a PersistentVolume that no claim has.
func (p *parser) freeVolume(name string, a *attributes) {
	v := cluster.FreeVolume{Name: name, Class: a.get("class", ""), Size: a.bytes(a.get("size", "1Gi")),
		Block: a.has("block"), Modes: list(a.get("modes", "RWO")), Labels: a.labels(a.get("labels", ""))}
	if len(v.Labels) == 0 {
		v.Labels = nil
	}
	for _, text := range a.all("on") {
		v.Places = append(v.Places,
			cluster.Alternative{Labels: a.requirements(text), Names: requirement.Any("metadata.name")})
	}
	p.parts.FreeVolumes = append(p.parts.FreeVolumes, v)
}

// volumesOf reads what a pod says of volumes.
func (p *parser) volumesOf(s *cluster.Shape, a *attributes) {
	for _, name := range list(a.get("shares", "")) {
		s.Volumes = append(s.Volumes, cluster.VolumeRef{Name: name, Takes: p.oneVolume()})
	}
	for _, text := range a.all("find") {
		s.NewVolumes = append(s.NewVolumes, p.newVolume(text, a))
	}
	for _, text := range a.all("make") {
		v := p.newVolume(text, a)
		v.Made = true
		s.NewVolumes = append(s.NewVolumes, v)
	}
	slices.SortStableFunc(s.NewVolumes, func(a, b cluster.NewVolume) int { return int(a.Size>>20 - b.Size>>20) })
	s.Drivers = list(a.get("drivers", ""))
}

// newVolume reads class:size[/stated][/block][/modes=RWX,...][/of=claim][/requirements on the volume's labels].
func (p *parser) newVolume(text string, a *attributes) cluster.NewVolume {
	parts := strings.Split(text, "/")
	class, size, found := strings.Cut(parts[0], ":")
	if !found {
		a.fail("%s: want class:size", text)
	}
	v := cluster.NewVolume{Class: class, Size: a.bytes(size), Modes: []string{"RWO"}}
	for _, option := range parts[1:] {
		name, value, _ := strings.Cut(option, "=")
		switch name {
		case "stated":
			v.Stated = resources.Vector(nil).With(p.space.Index(statedPrefix+class), v.Size)
		case "block":
			v.Block = true
		case "modes":
			v.Modes = strings.Split(value, ",")
		case "of":
			v.Claim = value
		default:
			v.Labels = cluster.Selector{Enabled: true, Labels: a.requirements(option)}
		}
	}
	return v
}

// attach counts the volumes that a node has: those attached, and those of its pods that may be shared, each once.
func (p *parser) attach(node *cluster.Node) {
	for _, pod := range node.Pods {
		for _, v := range pod.Shape.Volumes {
			node.Attached = append(node.Attached, v.Name)
		}
	}
	slices.Sort(node.Attached)
	if node.Attached = slices.Compact(node.Attached); len(node.Attached) > 0 {
		node.Used = node.Used.Plus(p.oneVolume().Times(len(node.Attached)))
	}
}

func (p *parser) oneVolume() resources.Vector {
	return resources.Vector(nil).With(p.space.Index(volumes), 1)
}
