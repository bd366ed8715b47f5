package script

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// devices are the devices of a script: a number of each kind on each node. It stands for the allocator of
// kube-scheduler, and passes the same suite (enginetest.Devices).
type devices struct {
	free   map[string]map[string]int64 // by node and kind
	claims map[string]wanted           // by namespace/name
	kinds  map[string]bool             // that some node has, free or taken
}

// wanted is a ResourceClaim: how many of a kind, the node on which it is allocated, and the one on which the allocator
// fails for it; "" for none.
type wanted struct {
	kinds      map[string]int64
	on, breaks string
}

func (p *parser) someDevices() *devices {
	if p.devices == nil {
		p.devices = &devices{free: map[string]map[string]int64{}, claims: map[string]wanted{},
			kinds: map[string]bool{}}
	}
	return p.devices
}

// devicesOn are the devices that a driver publishes on a node, without those of claims that are allocated there.
func (p *parser) devicesOn(node string, a *attributes) {
	d := p.someDevices()
	d.free[node] = a.amounts(a.rest())
	for kind := range d.free[node] {
		d.kinds[kind] = true
	}
}

// resourceClaim is a ResourceClaim. breaks= names a node on which kube-scheduler's allocator fails for it.
func (p *parser) resourceClaim(name string, a *attributes) {
	namespace, on, breaks, d := a.get("ns", "default"), a.get("on", ""), a.get("breaks", ""), p.someDevices()
	kinds := a.amounts(a.rest())
	d.claims[namespace+"/"+name] = wanted{kinds, on, breaks}
	for kind := range kinds {
		d.kinds[kind] = d.kinds[kind] || on != ""
	}
}

// Place implements [cluster.Devices].
func (d *devices) Place(shape *cluster.Shape, node *cluster.Node) (cluster.Devices, string) {
	if code, text := d.Problem(shape); code != "" {
		return nil, text
	}
	left := &devices{free: maps.Clone(d.free), claims: maps.Clone(d.claims), kinds: d.kinds}
	left.free[node.Name] = maps.Clone(d.free[node.Name])
	for _, claim := range shape.Claims {
		key := shape.Namespace + "/" + claim.Object
		want := left.claims[key]
		if want.on != "" && want.on != node.Name {
			return nil, "ResourceClaim " + key + " is allocated, to node " + want.on
		}
		if want.on == node.Name {
			continue
		}
		if want.breaks == node.Name {
			return nil, key + " breaks"
		}
		for kind, n := range want.kinds {
			if left.free[node.Name][kind] < n {
				return nil, ""
			}
			left.free[node.Name][kind] -= n
		}
		left.claims[key] = wanted{want.kinds, node.Name, want.breaks}
	}
	return left, ""
}

// Problem implements [cluster.Devices].
func (d *devices) Problem(shape *cluster.Shape) (cause.Code, string) {
	for _, claim := range shape.Claims {
		key := shape.Namespace + "/" + claim.Object
		want, known := d.claims[key]
		if !known {
			return cause.DeviceClaimMissing, "ResourceClaim " + key + " does not exist"
		}
		for _, kind := range slices.Sorted(maps.Keys(want.kinds)) {
			if want.on == "" && !d.kinds[kind] {
				return cause.DevicesNotFound, "ResourceClaim " + key + ": no driver publishes a " + kind
			}
		}
	}
	return "", ""
}

// Breaks implements [cluster.Devices].
func (d *devices) Breaks(shape *cluster.Shape, nodes iter.Seq[*cluster.Node]) string {
	for _, claim := range shape.Claims {
		key := shape.Namespace + "/" + claim.Object
		for node := range nodes {
			if want := d.claims[key]; want.on == "" && want.breaks == node.Name {
				return "ResourceClaim " + key + ": its devices cannot be looked for on node " + node.Name +
					", and kube-scheduler gives up there"
			}
		}
	}
	return ""
}

// Wanted implements [cluster.Devices].
func (d *devices) Wanted(shape *cluster.Shape) string {
	var parts []string
	for _, claim := range shape.Claims {
		key := shape.Namespace + "/" + claim.Object
		for _, kind := range slices.Sorted(maps.Keys(d.claims[key].kinds)) {
			parts = append(parts, fmt.Sprintf("ResourceClaim %s (%d %s)", key, d.claims[key].kinds[kind], kind))
		}
	}
	return strings.Join(parts, ", ")
}
