package devices_test

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/joiner-autoscaler/joiner/internal/devices"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

const driver = "dra.example.com"

// kindIs selects devices by their attribute "kind".
func kindIs(kind string) []resourcev1.DeviceSelector {
	return cel(fmt.Sprintf("device.driver == %q && device.attributes[%q].kind == %q", driver, driver, kind))
}

func cel(expressions ...string) (list []resourcev1.DeviceSelector) {
	for _, e := range expressions {
		list = append(list, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: e}})
	}
	return list
}

func class(name string, selectors ...resourcev1.DeviceSelector) *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.DeviceClassSpec{
		Selectors: selectors,
	}}
}

// classOf returns a class for devices of a kind, with the name of the kind.
func classOf(kind string) *resourcev1.DeviceClass { return class(kind, kindIs(kind)...) }

func device(name string, attributes ...string) resourcev1.Device {
	d := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{}}
	for i := 0; i < len(attributes); i += 2 {
		d.Attributes[resourcev1.QualifiedName(attributes[i])] = resourcev1.DeviceAttribute{
			StringValue: &attributes[i+1],
		}
	}
	return d
}

// sliceOn returns everything that a driver publishes for a node.
func sliceOn(node string, list ...resourcev1.Device) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "slice-" + node},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node, Pool: resourcev1.ResourcePool{Name: node, Generation: 1,
				ResourceSliceCount: 1}, Devices: list}}
}

func claim(name string, requests ...resourcev1.DeviceRequest) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
		UID: types.UID("uid-" + name)},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: requests}}}
}

func exactly(name, class string, count int64, selectors ...resourcev1.DeviceSelector) resourcev1.DeviceRequest {
	return resourcev1.DeviceRequest{Name: name, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class,
		Count: count, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Selectors: selectors}}
}

func allOf(name, class string) resourcev1.DeviceRequest {
	return resourcev1.DeviceRequest{Name: name, Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class,
		AllocationMode: resourcev1.DeviceAllocationModeAll}}
}

func first(name string, classes ...string) resourcev1.DeviceRequest {
	request := resourcev1.DeviceRequest{Name: name}
	for i, class := range classes {
		request.FirstAvailable = append(request.FirstAvailable,
			resourcev1.DeviceSubRequest{Name: fmt.Sprintf("way-%d", i),
				DeviceClassName: class, Count: 1, AllocationMode: resourcev1.DeviceAllocationModeExactCount})
	}
	return request
}

// allocated gives a claim some devices of a node, as kube-scheduler would.
func allocated(c *resourcev1.ResourceClaim, node string, names ...string) *resourcev1.ResourceClaim {
	c.Status.Allocation = &resourcev1.AllocationResult{
		NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{
				{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{node}},
			}}}}}
	for _, name := range names {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
			resourcev1.DeviceRequestAllocationResult{Request: "any", Driver: driver, Pool: node, Device: name})
	}
	return c
}

func quantity(text string) resource.Quantity { return resource.MustParse(text) }

// with returns the State of these objects.
func with(objects ...any) *devices.State {
	var all devices.Objects
	for _, o := range objects {
		switch o := o.(type) {
		case *resourcev1.ResourceClaim:
			all.Claims = append(all.Claims, o)
		case *resourcev1.DeviceClass:
			all.Classes = append(all.Classes, o)
		case *resourcev1.ResourceSlice:
			all.Slices = append(all.Slices, o)
		default:
			panic(fmt.Sprintf("%T", o))
		}
	}
	return devices.New(all, devices.NewSelectors())
}

// published returns the objects of an inventory: each allocated claim has its own device, in addition to the free
// ones.
func published(inventory enginetest.Inventory) cluster.Devices {
	var objects []any
	kinds, on := map[string]bool{}, map[string][]resourcev1.Device{}
	for node, have := range inventory.Nodes {
		for kind, n := range have {
			kinds[kind] = true
			for i := range n {
				on[node] = append(on[node], device(fmt.Sprintf("%s-%d", kind, i), "kind", kind))
			}
		}
	}
	for name, of := range inventory.Claims {
		var requests []resourcev1.DeviceRequest
		for _, kind := range slices.Sorted(maps.Keys(of.Kinds)) {
			kinds[kind] = true
			requests = append(requests, exactly(kind, kind, of.Kinds[kind]))
		}
		object := claim(name, requests...)
		if of.On != "" {
			var own []string
			for kind, n := range of.Kinds {
				for i := range n {
					own = append(own, fmt.Sprintf("%s-of-%s-%d", kind, name, i))
					on[of.On] = append(on[of.On], device(own[len(own)-1], "kind", kind))
				}
			}
			allocated(object, of.On, own...)
		}
		objects = append(objects, object)
	}
	for kind := range kinds {
		objects = append(objects, classOf(kind))
	}
	for node, list := range on {
		objects = append(objects, sliceOn(node, list...))
	}
	return with(objects...)
}
