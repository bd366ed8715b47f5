package world

import "github.com/joiner-autoscaler/joiner/internal/engine/cluster"

// running is what runs where, by shape. Changes that concern some pods find the nodes of these, and headroom finds the
// counts of its pool, without a look at every pod of the cluster. Shapes that no node runs are not in it.
type running struct {
	shapes map[string]map[*cluster.Shape]*shapeUse // by namespace
	// movable is how many pods on the nodes of a pool need another node if theirs goes. It leaves out pods with
	// devices: no room can be kept for them.
	movable map[string]map[*cluster.Shape]int // by pool
}

// shapeUse is what is known of the pods of a shape that are on nodes.
type shapeUse struct {
	nodes map[string]int // how many pods of the shape are on each node
	// hold is what holds them, if known: a budget looks only at their namespace and labels.
	hold  hold
	known bool
}

func newRunning() running {
	return running{shapes: map[string]map[*cluster.Shape]*shapeUse{}, movable: map[string]map[*cluster.Shape]int{}}
}

// use returns what is known of a shape, nil if no node runs it.
func (r *running) use(shape *cluster.Shape) *shapeUse { return r.shapes[shape.Namespace][shape] }

func (r *running) add(pod *cluster.Pod) {
	shape := pod.Shape
	in := r.shapes[shape.Namespace]
	if in == nil {
		in = map[*cluster.Shape]*shapeUse{}
		r.shapes[shape.Namespace] = in
	}
	if in[shape] == nil {
		in[shape] = &shapeUse{nodes: map[string]int{}}
	}
	in[shape].nodes[pod.Node]++
}

func (r *running) remove(pod *cluster.Pod) {
	shape := pod.Shape
	use, in := r.use(shape), r.shapes[shape.Namespace]
	if use == nil {
		return
	}
	nodes := use.nodes
	if nodes[pod.Node]--; nodes[pod.Node] > 0 {
		return
	}
	if delete(nodes, pod.Node); len(nodes) > 0 {
		return
	}
	if delete(in, shape); len(in) == 0 {
		delete(r.shapes, shape.Namespace)
	}
}

// countMovable adds so many pods like this one to those of its pool, "" for none.
func (r *running) countMovable(pool string, pod *cluster.Pod, more int) {
	if pool == "" || pod.Fixed || pod.Terminating || len(pod.Shape.Claims) > 0 || pod.Shape.Blocked != "" {
		return
	}
	counts := r.movable[pool]
	if counts == nil {
		counts = map[*cluster.Shape]int{}
		r.movable[pool] = counts
	}
	if counts[pod.Shape] += more; counts[pod.Shape] > 0 {
		return
	}
	if delete(counts, pod.Shape); len(counts) == 0 {
		delete(r.movable, pool)
	}
}

// moveRunning counts a changed pod: old is gone, fresh has come; either may be nil or without a node.
func (s *Store) moveRunning(old, fresh *cluster.Pod) {
	if fresh != nil && fresh.Node != "" { // first, so that a shape whose only pod changes stays known
		s.running.add(fresh)
		s.running.countMovable(s.poolOfNode(fresh.Node), fresh, 1)
	}
	if old != nil && old.Node != "" {
		s.running.remove(old)
		s.running.countMovable(s.poolOfNode(old.Node), old, -1)
	}
}

func (s *Store) poolOfNode(name string) string {
	if e := s.nodes[name]; e != nil && e.value != nil {
		return e.value.Pool
	}
	return ""
}

// moveNodeRunning counts the pods of a node with those of its pool, once the node has come, gone or changed its pool.
// Either may be nil.
func (s *Store) moveNodeRunning(old, fresh *cluster.Node) {
	was, is, name := "", "", ""
	if old != nil {
		was, name = old.Pool, old.Name
	}
	if fresh != nil {
		is, name = fresh.Pool, fresh.Name
	}
	if was == is {
		return
	}
	for _, pod := range s.loadOf(name).pods {
		s.running.countMovable(was, pod, -1)
		s.running.countMovable(is, pod, 1)
	}
}
