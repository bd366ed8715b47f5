package cluster

import (
	"slices"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// Daemon is a DaemonSet: a pod of this shape will run on every node that it fits.
type Daemon struct {
	Name  string // namespace/name
	Shape *Shape
	// Seen is what its pods ask for on nodes, where they differ (K-33): because of a vertical autoscaler, a resize in
	// place, or a webhook that looks at the node. It is ordered by pool and type, and begins with what they ask for
	// anywhere. Nil when all ask for what Shape does.
	Seen []Seen
	// Learnt is what its pods were found to ask for on new nodes of pools where planning had counted on less, or on
	// none at all (K-34); ordered by pool.
	Learnt []Seen
}

// Seen is the most that the last pods of a DaemonSet ask for on some nodes.
type Seen struct {
	Pool, Type string // "" for any
	Requests   resources.Vector
}

// find returns the entry for nodes of exactly this pool and type, nil for none.
func find(list []Seen, pool, instanceType string) *Seen {
	at := slices.IndexFunc(list, func(s Seen) bool { return s.Pool == pool && s.Type == instanceType })
	if at < 0 {
		return nil
	}
	return &list[at]
}

// On returns what the daemon's pod will ask for on a new node of a pool and an instance type: the most that its last
// pods ask for on such nodes, else on nodes of the pool, else on any.
func (d *Daemon) On(pool, instanceType string) resources.Vector {
	want := d.Shape.Requests
	for _, key := range [][2]string{{pool, instanceType}, {pool, ""}, {"", ""}} {
		if seen := find(d.Seen, key[0], key[1]); seen != nil {
			want = seen.Requests
			break
		}
	}
	if learnt := find(d.Learnt, pool, ""); learnt != nil {
		want = want.Max(learnt.Requests)
	}
	return want
}

// Varies reports whether the daemon asks for other amounts on other instance types of the pool.
func (d *Daemon) Varies(pool string) bool {
	return slices.ContainsFunc(d.Seen, func(s Seen) bool { return s.Pool == pool && s.Type != "" })
}

// Comes reports whether the daemon was found to run on new nodes of the pool, whatever its selection says.
func (d *Daemon) Comes(pool string) bool { return find(d.Learnt, pool, "") != nil }

// OnNode returns what the daemon's pod asks for on a node that is there or on its way; while the instance type is
// open, the most that may come.
func (d *Daemon) OnNode(n *Node) resources.Vector {
	if d.Seen == nil && d.Learnt == nil {
		return d.Shape.Requests
	}
	if t, known := n.Labels[string(catalog.LabelInstanceType)]; known || !n.Open.Holds(catalog.LabelInstanceType) {
		return d.On(n.Pool, t)
	}
	want := d.On(n.Pool, "")
	types, finite := n.Open.Get(catalog.LabelInstanceType).Values()
	if !finite {
		return want
	}
	want = nil
	for _, t := range types {
		want = want.Max(d.On(n.Pool, t))
	}
	return want
}

// Awaits reports whether a pod of the DaemonSet is still to come to the node (P-06).
func (n *Node) Awaits(d *Daemon) bool {
	if slices.ContainsFunc(n.Pods, func(p *Pod) bool { return p.Daemon == d.Name }) {
		return false
	}
	if !n.Initialized && d.Comes(n.Pool) {
		return true
	}
	_, bad := Untolerated(n.Taints, d.Shape.Tolerations)
	return !bad && n.MightAdmit(d.Shape)
}
