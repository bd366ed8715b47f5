package world

import (
	"maps"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/devices"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// This file keeps what decides on devices (K-42): claims, classes and what drivers publish. It stays empty if pods
// that ask for devices are left alone.

// deviceObjects is what is known of them.
type deviceObjects struct {
	seen      map[string]*sighting // by kind, namespace and name
	claims    map[string]*resourcev1.ResourceClaim
	classes   map[string]*resourcev1.DeviceClass
	slices    map[string]*resourcev1.ResourceSlice
	selectors *devices.Selectors
	state     *devices.State // of these objects; nil while it has to be made
}

func newDeviceObjects(watched bool) deviceObjects {
	d := deviceObjects{seen: map[string]*sighting{}, claims: map[string]*resourcev1.ResourceClaim{},
		classes: map[string]*resourcev1.DeviceClass{}, slices: map[string]*resourcev1.ResourceSlice{}}
	if watched {
		d.selectors = devices.NewSelectors()
	}
	return d
}

// DeviceKinds returns one empty object of each kind that the Store must watch for devices; none if pods that ask for
// devices are left alone.
func (s *Store) DeviceKinds() []client.Object {
	if !s.config.Devices {
		return nil
	}
	return []client.Object{&resourcev1.DeviceClass{}, &resourcev1.ResourceSlice{}, &resourcev1.ResourceClaim{}}
}

// tellDevice stores the state, or the deletion, of an object that decides on devices, and reports whether obj is one.
func (s *Store) tellDevice(obj client.Object, gone bool) bool {
	d := &s.devices
	switch obj := obj.(type) {
	case *resourcev1.ResourceClaim:
		putDevice(s, "ResourceClaim", d.claims, obj, gone)
	case *resourcev1.DeviceClass:
		putDevice(s, "DeviceClass", d.classes, obj, gone)
	case *resourcev1.ResourceSlice:
		putDevice(s, "ResourceSlice", d.slices, obj, gone)
	default:
		return false
	}
	return true
}

func putDevice[T client.Object](s *Store, kind string, known map[string]T, obj T, gone bool) {
	key := objectKey(obj)
	if !s.config.Devices || !s.counts(s.devices.seen, kind+" "+key, obj, gone) {
		return
	}
	before, there := known[key]
	if gone {
		delete(known, key)
	} else {
		known[key] = obj
	}
	if there && !gone && sameClaim(before, obj) {
		return
	}
	s.devices.state = nil
	s.changed()
}

// sameClaim reports whether both are states of one claim that differ only in its users. Most changes of claims are
// like that.
func sameClaim(before, after client.Object) bool {
	a, isClaim := before.(*resourcev1.ResourceClaim)
	if !isClaim {
		return false
	}
	b := after.(*resourcev1.ResourceClaim)
	full := func(c *resourcev1.ResourceClaim) bool {
		return len(c.Status.ReservedFor) >= resourcev1.ResourceClaimReservedForMaxSize
	}
	return a.UID == b.UID && a.Generation == b.Generation &&
		(a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		full(a) == full(b) && equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences) &&
		equality.Semantic.DeepEqual(a.Status.Allocation, b.Status.Allocation)
}

// deviceState returns the devices of a snapshot; nil if they are not watched.
func (s *Store) deviceState() cluster.Devices {
	d := &s.devices
	if !s.config.Devices {
		return nil
	}
	if d.state == nil {
		d.state = devices.New(devices.Objects{Claims: slices.Collect(maps.Values(d.claims)),
			Classes: slices.Collect(maps.Values(d.classes)), Slices: slices.Collect(maps.Values(d.slices))},
			d.selectors)
	}
	return d.state.Afresh()
}
