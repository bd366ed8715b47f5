package enginetest

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// volumes judges by the volumes that pods on one node bring (K-58, K-59): each that may be shared counts once, no free
// one is taken twice, and no more is made than is left. Nodes that are still to come are not judged: nobody knows what
// they will have.
func (c *checker) volumes(node *cluster.Node, pod *cluster.Pod) {
	pods := append(slices.Clone(c.bound[node]), pod)
	if len(pod.Shape.Volumes) > 0 {
		c.attached(node, pods, pod.Shape.Volumes[0].Takes)
	}
	if !node.Initialized || !c.there[node.ID()] {
		return
	}
	for _, driver := range pod.Shape.Drivers {
		if !slices.Contains(node.Drivers, driver) {
			c.fail("%s: CSI driver %s is not on %s", pod.Ref(), driver, node.ID())
		}
	}
	if len(pod.Shape.NewVolumes) == 0 || node.Fresh {
		return
	}
	var taken []string
	made := map[string]int64{} // by class
	for _, each := range pods {
		for i := range each.Shape.NewVolumes {
			want := &each.Shape.NewVolumes[i]
			volume := c.smallest(node, want, taken)
			switch {
			case volume != "":
				taken = append(taken, volume)
			case want.Made:
				made[want.Class] += want.Size
			default:
				c.fail("%s: no volume of class %s on %s is left", each.Ref(), want.Class, node.ID())
			}
		}
	}
	for class, size := range made {
		left := int64(0)
		for i := range c.after.Capacities {
			if one := &c.after.Capacities[i]; one.Class == class && node.Reaches(one) {
				left += max(one.Capacity, one.Most)
			}
		}
		if size > left {
			c.fail("%s: %d of class %s are left on %s, and %d would be made", pod.Ref(), left, class, node.ID(), size)
		}
	}
}

// attached counts the volumes of a node that may be shared, each once, beside those that are requested.
func (c *checker) attached(node *cluster.Node, pods []*cluster.Pod, takes []int64) {
	names, component := slices.Clone(node.Attached), len(takes)-1
	requested := int64(0)
	for _, pod := range pods {
		requested += pod.Shape.Requests.At(component)
		for _, v := range pod.Shape.Volumes {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	if all := int64(len(slices.Compact(names))) + requested; all > node.Allocatable.At(component) {
		c.fail("%s: %d volumes on a node that attaches %d", node.ID(), all, node.Allocatable.At(component))
	}
}

// smallest returns the name of the smallest volume that is left for a claim on a node, "" for none.
func (c *checker) smallest(node *cluster.Node, want *cluster.NewVolume, taken []string) string {
	best := -1
	for i := range c.after.FreeVolumes {
		v := &c.after.FreeVolumes[i]
		if slices.Contains(taken, v.Name) || !v.Serves(want) || !v.ReachedFrom(node) {
			continue
		}
		if best < 0 || v.Size < c.after.FreeVolumes[best].Size {
			best = i
		}
	}
	if best < 0 {
		return ""
	}
	return c.after.FreeVolumes[best].Name
}
