package oracle

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// Cluster is the cluster before a plan is executed. The oracle does not change it. Objects must be as the API server
// stores them, with defaults filled in.
type Cluster struct {
	Namespaces []*corev1.Namespace
	Nodes      []*corev1.Node
	// Pods run where spec.nodeName says; those without it wait. Finished pods are ignored, and so are bound pods whose
	// node is not in Nodes.
	Pods []*corev1.Pod
}

// Plan is a plan for a cluster.
type Plan struct {
	// Launched are new nodes in the state in which they are ready for pods. Their names must not be in use.
	Launched []*corev1.Node
	// Gone are the names of nodes that go. Their pods go too, except those that Placed moves. Pods that wait from the
	// start are bound first; until then the pods on Gone nodes still count (see stages.go).
	Gone []string
	// Placed has the node name of every pod that the plan places: waiting pods, and pods of nodes that go.
	Placed map[types.NamespacedName]string
	// Order, if given, is the first binding order to try: some or all of the pods in Placed.
	Order []types.NamespacedName
}

// Violation is a planned pod that kube-scheduler would not bind to its planned node, in any order.
type Violation struct {
	Pod    types.NamespacedName
	Node   string
	Plugin string // of kube-scheduler, by its name there, such as PodTopologySpread
	Reason string // the plugin's own words
}

// String prints the violation on one line.
func (v Violation) String() string {
	return fmt.Sprintf("%s: pod %s on node %s: %s", v.Plugin, v.Pod, v.Node, v.Reason)
}

// Oracle holds the scheduler's plugins, which are expensive to set up and are reused for every case. It is not safe
// for concurrent use: make one for each goroutine. Use [New].
type Oracle struct {
	framework  framework.Framework
	state      *state
	namespaces cache.Indexer
}

// New sets up the plugins with the arguments of kube-scheduler's default profile. Their background work ends with ctx.
func New(ctx context.Context) (*Oracle, error) {
	s := newState()
	f, namespaces, err := newFramework(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("setting up kube-scheduler's plugins: %w", err)
	}
	return &Oracle{framework: f, state: s, namespaces: namespaces}, nil
}

// Check returns the pods of the plan that cannot be bound, in the best order that it tried: none for a valid plan.
// Each has the first plugin that refuses it when all others of that order are bound. An error means that the question
// makes no sense, for example because the plan names an unknown pod or node.
func (o *Oracle) Check(ctx context.Context, before Cluster, p Plan) ([]Violation, error) {
	if err := o.setNamespaces(before.Namespaces); err != nil {
		return nil, err
	}
	first, second, then, staged := stages(before, p)
	if !staged {
		return o.judge(ctx, before, p)
	}
	violations, err := o.judge(ctx, before, first)
	if err != nil {
		return nil, err
	}
	later, err := o.judge(ctx, then, second)
	return append(violations, later...), err
}

// judge is Check for a plan of one stage.
func (o *Oracle) judge(ctx context.Context, before Cluster, p Plan) ([]Violation, error) {
	waiting, err := o.setUp(before, p)
	if err != nil {
		return nil, err
	}
	return o.bindAll(ctx, waiting, p.Order)
}

func (o *Oracle) setNamespaces(list []*corev1.Namespace) error {
	objects := make([]any, len(list))
	for i, namespace := range list {
		objects[i] = namespace
	}
	return o.namespaces.Replace(objects, "")
}

// setUp fills the state with nodes and running pods, and returns the pods to bind.
func (o *Oracle) setUp(before Cluster, p Plan) ([]placement, error) {
	gone := map[string]bool{}
	for _, name := range p.Gone {
		gone[name] = true
	}
	o.state.clear()
	for _, node := range before.Nodes {
		if !gone[node.Name] {
			if err := o.state.addNode(node); err != nil {
				return nil, err
			}
		}
	}
	for _, node := range p.Launched {
		if err := o.state.addNode(node); err != nil {
			return nil, err
		}
	}
	var waiting []placement
	for _, pod := range before.Pods {
		target, planned := p.Placed[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}]
		if !planned {
			if err := o.state.addRunning(pod); err != nil {
				return nil, err
			}
			continue
		}
		if at := pod.Spec.NodeName; at != "" && !gone[at] {
			return nil, fmt.Errorf("pod %s/%s is planned for node %s, but runs on %s, which stays", pod.Namespace,
				pod.Name, target, at)
		}
		placed, err := o.state.placement(pod, target)
		if err != nil {
			return nil, err
		}
		waiting = append(waiting, placed)
	}
	if len(waiting) != len(p.Placed) {
		return nil, fmt.Errorf("the plan places %d pods, of which the cluster has %d: %s", len(p.Placed), len(waiting),
			missing(p, waiting))
	}
	return waiting, nil
}

func missing(p Plan, found []placement) string {
	known := map[types.NamespacedName]bool{}
	for _, f := range found {
		known[f.name()] = true
	}
	var names []string
	for name := range p.Placed {
		if !known[name] {
			names = append(names, name.String())
		}
	}
	return strings.Join(names, ", ") + " missing"
}
