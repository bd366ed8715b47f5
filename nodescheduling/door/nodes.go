package door

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// groupIndex is the name of the index of nodes by their groups.
const groupIndex = "node-scheduling-policy-group"

// Nodes gives fast access to the nodes of a cache, however many there are (N68). An index finds the nodes of a group.
// A list of all nodes is rebuilt only when a node is added, is deleted, or changes its labels or taints: copying a
// cache of 5,000 nodes takes longer than the rest of a verdict.
type Nodes struct {
	cache   cache.Indexer
	changes atomic.Int64 // counts changes that outdate the list
	last    atomic.Pointer[nodeList]
}

// nodeList is the content of the cache after this many changes, or a little later.
type nodeList struct {
	changes int64
	nodes   []any
}

// NodesOf prepares an informer of nodes. Call it before the informer starts. It returns an error if a selector of the
// configuration is invalid, or the informer has stopped.
func NodesOf(informer cache.SharedIndexInformer, config *v1alpha1.NodeSchedulingPolicyConfig) (*Nodes, error) {
	index, err := groupIndexOf(config)
	if err != nil {
		return nil, err
	}
	if err := informer.AddIndexers(index); err != nil {
		return nil, fmt.Errorf("nodes by their groups: %w", err)
	}
	n := &Nodes{cache: informer.GetIndexer()}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { n.changes.Add(1) },
		DeleteFunc: func(any) { n.changes.Add(1) },
		UpdateFunc: n.updated,
	})
	return n, err
}

// updated counts changes of labels and taints. Status changes all the time, and decides nothing.
func (n *Nodes) updated(old, now any) {
	before, known := old.(*corev1.Node)
	node, is := now.(*corev1.Node)
	if !known || !is || !maps.Equal(before.Labels, node.Labels) ||
		!slices.Equal(before.Spec.Taints, node.Spec.Taints) {
		n.changes.Add(1)
	}
}

// FixedNodes returns Nodes for a list that does not change. It returns an error if a selector of the configuration is
// invalid.
func FixedNodes(config *v1alpha1.NodeSchedulingPolicyConfig, nodes []*corev1.Node) (*Nodes, error) {
	index, err := groupIndexOf(config)
	if err != nil {
		return nil, err
	}
	n := &Nodes{cache: cache.NewIndexer(cache.MetaNamespaceKeyFunc, index)}
	for _, node := range nodes {
		if err := n.cache.Add(node); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func groupIndexOf(config *v1alpha1.NodeSchedulingPolicyConfig) (cache.Indexers, error) {
	members := map[string]evaluator.Members{}
	if config != nil {
		for i := range config.Groups {
			of, err := evaluator.MembersOf(&config.Groups[i])
			if err != nil {
				return nil, fmt.Errorf("groups[%d].labelSelector: %w", i, err)
			}
			members[string(config.Groups[i].Name)] = of
		}
	}
	return cache.Indexers{groupIndex: func(object any) ([]string, error) {
		var groups []string
		if node, ok := object.(*corev1.Node); ok {
			for name, of := range members {
				if of.Has(node) {
					groups = append(groups, name)
				}
			}
		}
		return groups, nil
	}}, nil
}

// list returns all nodes, as of the last change that the informer reported. The order of the reads matters: after a
// change in between, the next call rebuilds the list.
func (n *Nodes) list() []any {
	changes := n.changes.Load()
	if last := n.last.Load(); last != nil && last.changes == changes {
		return last.nodes
	}
	now := &nodeList{changes: changes, nodes: n.cache.List()}
	n.last.Store(now)
	return now.nodes
}

// members yields the nodes of a group.
func (n *Nodes) members(group string) iter.Seq[*corev1.Node] {
	found, err := n.cache.ByIndex(groupIndex, group)
	if err != nil {
		found = n.list() // does not happen: every such cache has the index
	}
	return each(found)
}

func each(objects []any) iter.Seq[*corev1.Node] {
	return func(yield func(*corev1.Node) bool) {
		for _, object := range objects {
			if node, ok := object.(*corev1.Node); ok && !yield(node) {
				return
			}
		}
	}
}
