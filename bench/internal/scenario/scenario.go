// Package scenario describes what is planned, for both sides alike: pods as Kubernetes objects, instance types as a
// catalogue, nodes with the pods that they run, one node pool. A scenario is a function of its name and a seed.
//
// Nothing here knows either side's state or algorithm. Start at [Make].
package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
)

// Scenario is an input of the benchmark.
type Scenario struct {
	Name string
	// Catalog is what the pool's node class offers.
	Catalog catalog.Catalog
	// Nodes exist when planning begins, initialized and ready.
	Nodes []Node
	// Pending pods are to be planned together, or one at a time when OneByOne is set.
	Pending  []*corev1.Pod
	OneByOne bool
	// NodeLimit is the pool's spec.limits.nodes; 0: it has none.
	NodeLimit int64
	// Disrupt is what is planned instead of places for pending pods: Consolidate or Drift; "" for neither.
	Disrupt string
	// OnDemandOnly is the pool's only requirement.
	OnDemandOnly bool
}

// Pool is the name of a scenario's only node pool, which limits at most the number of nodes.
const Pool = "default"

// Node is a node of the pool and the pods bound to it.
type Node struct {
	Name, Type, Zone, CapacityType string
	Pods                           []*corev1.Pod
}

// family is a kind of scenario: its size and the seed make one.
type family struct {
	prefix string
	make   func(source, int) (Scenario, error)
}

func families() []family {
	return []family{
		{"diverse-", diverse}, {"preferences-", preferences}, {"plain-", plain}, {"one-more-pod-", oneMorePod},
		{"limit-", limited}, {"waves-", waves}, {"mixed-", mixed}, {"hosts-", hosts}, {"apps-", apps},
		{"shops-", shops}, {"consolidate-", consolidate}, {"thinned-", thinned}, {"drift-", drift},
	}
}

// Make returns the scenario of that name. N is a number of pods (100k is 100000) or, where this says so, of nodes:
//
//   - diverse-N, preferences-N, plain-N, one-more-pod-N (nodes), consolidate-N (nodes) and drift-N (nodes) are B-01 to
//     B-06 of docs/spec/performance.md.
//   - limit-N is L-11 of docs/spec/node-limits.md.
//   - waves-N has the pods of system-N (B-16), mixed-N drawn workloads, and hosts-N some that are spread over
//     hostnames.
//   - apps-N and shops-N have workloads with one constraint each, and thinned-N (nodes) is what is left of such a
//     cluster.
func Make(name string, seed uint64) (Scenario, error) {
	for _, f := range families() {
		rest, found := strings.CutPrefix(name, f.prefix)
		if !found {
			continue
		}
		size, err := strconv.Atoi(strings.Replace(rest, "k", "000", 1))
		if err != nil || size < 1 || size > maxSize {
			return Scenario{}, fmt.Errorf("scenario %q: size %q; want a number from 1 to %d", name, rest, maxSize)
		}
		s, err := f.make(newSource(seed, name), size)
		s.Name = name
		return s, err
	}
	return Scenario{}, fmt.Errorf("scenario %q; want diverse-N, preferences-N, plain-N, one-more-pod-N, "+
		"consolidate-N, thinned-N, drift-N, limit-N, waves-N, mixed-N, hosts-N, apps-N or shops-N", name)
}

// Offered returns the part of the catalogue that the pool allows.
func (s Scenario) Offered() catalog.Catalog {
	if !s.OnDemandOnly {
		return s.Catalog
	}
	c := s.Catalog
	c.Types = slices.Clone(c.Types)
	for i := range c.Types {
		c.Types[i].Offerings = slices.DeleteFunc(slices.Clone(c.Types[i].Offerings), func(o catalog.Offering) bool {
			return o.CapacityType != catalog.OnDemand
		})
	}
	return c
}

// maxSize keeps a typing error from filling the machine's memory.
const maxSize = 1_000_000
