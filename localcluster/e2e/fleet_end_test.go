package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// room is an amount of the fleet's resources: milli-cores, bytes, and places for pods.
type room [3]float64

func (r room) plus(other room, times float64) room {
	for i := range r {
		r[i] += times * other[i]
	}
	return r
}

// standing is a node with what runs on it.
type standing struct {
	free, used, largest room // largest: of each resource, the largest request of a single pod
	pods                int
	apart               bool // holds a pod that keeps apart from its like
}

// needless returns a node whose pods the other nodes could take, in whatever order one tries, or "". Consolidation
// must remove such a node, at any saving, and no way of packing could miss it.
//
// Say its pods are put one after another onto the first other node with room. A node is full when it has less free of
// some resource than a single pod may ask for. By then it has taken at least its free amount less that request. We sum
// these amounts over all nodes, as shares of what the pods need. If the sum is as large as the number of resources, or
// larger, not all nodes can be full.
func needless(nodes map[string]*standing) string {
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		node := nodes[name]
		if node.pods == 0 {
			return fmt.Sprintf("node %s is empty", name)
		}
		if node.apart {
			continue
		}
		shares := 0.0
		for other, o := range nodes {
			if other == name {
				continue
			}
			share := 1.0 // if the pods need nothing of a resource, it never runs out
			for i := range node.used {
				if node.used[i] > 0 {
					share = min(share, (o.free[i]-node.largest[i])/node.used[i])
				}
			}
			shares += max(0, share)
		}
		if shares >= float64(len(node.used)) {
			return fmt.Sprintf("node %s is not needed: others have room for its %d pods, whatever the order", name,
				node.pods)
		}
	}
	return ""
}

// needless applies the function of that name to the present fleet.
func (f *fleet) needless(ctx context.Context) (string, error) {
	nodes, err := f.nodes(ctx)
	if err != nil {
		return "", err
	}
	pods, err := f.pods(ctx)
	if err != nil {
		return "", err
	}
	list := map[string]*standing{}
	for name, node := range nodes {
		list[name] = &standing{free: amountsOf(node.Status.Allocatable)}
	}
	for _, pod := range pods {
		node := list[pod.Spec.NodeName]
		if node == nil {
			return "", fmt.Errorf("pod %s has no node", pod.Name)
		}
		asked := room{2: 1}
		for _, c := range pod.Spec.Containers {
			asked = asked.plus(amountsOf(c.Resources.Requests), 1)
		}
		node.pods, node.apart = node.pods+1, node.apart || pod.Labels["app"] == "apart"
		node.free, node.used = node.free.plus(asked, -1), node.used.plus(asked, 1)
		for i := range asked {
			node.largest[i] = max(node.largest[i], asked[i])
		}
	}
	return needless(list), nil
}

func amountsOf(list corev1.ResourceList) room {
	return room{float64(list.Cpu().MilliValue()), float64(list.Memory().Value()), float64(list.Pods().Value())}
}

// A node is needless if others could take its pods in any order, and not if that takes luck.
func TestNeedlessNodes(t *testing.T) {
	t.Parallel()
	one := func(free float64) *standing {
		return &standing{free: room{free, free, free}, used: room{1, 1, 1}, largest: room{1, 1, 1}, pods: 1}
	}
	apart := one(5)
	apart.apart = true
	for _, c := range []struct {
		name  string
		nodes map[string]*standing
		want  string
	}{
		{"an empty one", map[string]*standing{"a": {pods: 0}}, "node a is empty"},
		{"no room elsewhere", map[string]*standing{"a": one(0), "b": one(0)}, ""},
		{"room on several others", map[string]*standing{"a": one(0), "b": one(4), "c": one(4), "d": one(4)},
			"node a is not needed: others have room for its 1 pods, whatever the order"},
		{"room for a part", map[string]*standing{"a": {used: room{4, 4, 4}, largest: room{2, 2, 2}, pods: 2},
			"b": one(3), "c": one(2)}, ""},
		{"its pods keep apart", map[string]*standing{"a": apart, "b": one(0)}, ""},
	} {
		if got := needless(c.nodes); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
