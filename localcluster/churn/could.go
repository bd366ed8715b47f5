package churn

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	daemonset "k8s.io/kubernetes/pkg/controller/daemon"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/localcluster/oracle"
)

// feasibility says whether a waiting pod could run on a node that a NodePool may launch now. It does not use the
// engine. The catalogue says what can be launched, the DaemonSet controller's code which daemons a node gets, and
// kube-scheduler's filters whether the node takes the pod.
type feasibility struct {
	oracle  *oracle.Oracle
	catalog catalog.Catalog
	view    *view
}

func newFeasibility(ctx context.Context, v *view) (*feasibility, error) {
	o, err := oracle.New(ctx)
	if err != nil {
		return nil, err
	}
	inventory, err := kwok.GenericInventory()
	if err != nil {
		return nil, err
	}
	return &feasibility{oracle: o, catalog: inventory.Catalog(), view: v}, nil
}

// moment is the state of the cluster, for any number of questions.
type moment struct {
	*feasibility
	before     oracle.Cluster
	candidates []candidate
}

// candidate is a node that could be launched, with its daemons.
type candidate struct {
	node    *corev1.Node
	daemons []*corev1.Pod
	what    string
}

func (f *feasibility) now() moment {
	m := moment{feasibility: f, before: oracle.Cluster{Namespaces: f.view.namespaces(), Pods: f.view.pods()}}
	for _, node := range f.view.everyNode() {
		if node.DeletionTimestamp == nil || len(node.Finalizers) > 0 {
			m.before.Nodes = append(m.before.Nodes, node)
		}
	}
	d := daemons{sets: f.view.daemonSets(), pods: m.before.Pods, ranges: f.view.ranges()}
	for _, pool := range f.view.pools() {
		if f.mayLaunch(pool) {
			m.candidates = append(m.candidates, f.candidatesOf(pool, d)...)
		}
	}
	return m
}

// daemons is the input for which DaemonSet pods a new node gets, and what these request.
type daemons struct {
	sets   []*appsv1.DaemonSet
	pods   []*corev1.Pod
	ranges []*corev1.LimitRange
}

// mayLaunch reports whether a pool may launch one more node for pods.
func (f *feasibility) mayLaunch(pool *karpenterv1.NodePool) bool {
	if pool.DeletionTimestamp != nil || pool.Spec.Replicas != nil || !conditionTrue(pool.Status.Conditions, "Ready") {
		return false
	}
	count := 0
	for _, claim := range f.view.claims() {
		if claim.Labels[karpenterv1.NodePoolLabelKey] == pool.Name {
			count++
		}
	}
	for _, limit := range []karpenterv1.Limits{pool.Spec.Limits, pool.Spec.HardLimits} {
		if quantity, limited := limit["nodes"]; limited && int64(count) >= quantity.Value() {
			return false
		}
	}
	return true
}

// candidatesOf returns the offerings of a pool as nodes.
func (f *feasibility) candidatesOf(pool *karpenterv1.NodePool, d daemons) (all []candidate) {
	wanted, _, err := translate.Requirements(pool.Spec.Template.Spec.Requirements)
	if err != nil {
		return nil
	}
	for _, kind := range f.catalog.Types {
		for _, offering := range kind.Offerings {
			labels := kind.Labels.And(offering.Labels).And(requirement.NewSet(
				requirement.OneOf(catalog.LabelInstanceType, kind.Name),
				requirement.OneOf(catalog.LabelZone, offering.Zone),
				requirement.OneOf(catalog.LabelCapacityType, offering.CapacityType),
			))
			if !offering.Available || !within(labels, wanted) {
				continue
			}
			c := candidate{node: nodeOf(pool, kind, labels),
				what: fmt.Sprintf("%s %s %s of %s", kind.Name, offering.Zone, offering.CapacityType, pool.Name)}
			c.daemons = d.on(c.node)
			all = append(all, c)
		}
	}
	return all
}

// within reports whether labels of an offering satisfy what a pool requires. Pools of this package require labels that
// all offerings have.
func within(labels, wanted requirement.Set) bool {
	for r := range wanted.All() {
		if !labels.Holds(r.Key()) || !labels.Get(r.Key()).Intersects(r) {
			return false
		}
	}
	return true
}

func nodeOf(pool *karpenterv1.NodePool, kind catalog.Type, labels requirement.Set) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "could-be-launched", Labels: map[string]string{}}}
	for key, value := range pool.Spec.Template.ObjectMeta.Labels {
		node.Labels[key] = value
	}
	for r := range labels.All() {
		if value, found := r.Example(); found {
			node.Labels[string(r.Key())] = value
		}
	}
	node.Labels[karpenterv1.NodePoolLabelKey], node.Labels[corev1.LabelHostname] = pool.Name, node.Name
	node.Spec.Taints = pool.Spec.Template.Spec.Taints
	node.Status.Capacity, node.Status.Allocatable = corev1.ResourceList{}, corev1.ResourceList{}
	for name, amount := range kind.Capacity {
		node.Status.Capacity[corev1.ResourceName(name)] = translate.Quantity(name, amount)
		node.Status.Allocatable[corev1.ResourceName(name)] = translate.Quantity(name, amount-kind.Overhead[name])
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	return node
}

// on returns the DaemonSet pods that a node would get, with their requests: those of a running pod of the set, or else
// of the template with the defaults of the API server and of LimitRanges.
func (d daemons) on(node *corev1.Node) (list []*corev1.Pod) {
	for _, set := range d.sets {
		if runs, _ := daemonset.NodeShouldRunDaemonPod(logr.Discard(), node, set); !runs ||
			set.DeletionTimestamp != nil {
			continue
		}
		pod := daemonset.NewPod(set, node.Name)
		pod.Name = set.Name
		d.giveDefaults(pod)
		for _, other := range d.pods {
			if metav1.IsControlledBy(other, set) {
				for i := range min(len(other.Spec.Containers), len(pod.Spec.Containers)) {
					pod.Spec.Containers[i].Resources = other.Spec.Containers[i].Resources
				}
			}
		}
		list = append(list, pod)
	}
	return list
}

// giveDefaults adds the requests that containers get when the pod is created.
func (d daemons) giveDefaults(pod *corev1.Pod) {
	for i := range pod.Spec.Containers {
		resources := pod.Spec.Containers[i].Resources.DeepCopy()
		if resources.Requests == nil {
			resources.Requests = corev1.ResourceList{}
		}
		for name, amount := range resources.Limits {
			if _, given := resources.Requests[name]; !given {
				resources.Requests[name] = amount
			}
		}
		for _, limits := range d.ranges {
			for _, item := range limits.Spec.Limits {
				for name, amount := range item.DefaultRequest {
					if _, given := resources.Requests[name]; !given && limits.Namespace == pod.Namespace &&
						item.Type == corev1.LimitTypeContainer {
						resources.Requests[name] = amount
					}
				}
			}
		}
		pod.Spec.Containers[i].Resources = *resources
	}
}

// launchable returns what could be launched to hold the pod. If nothing could, could is empty and why is the last
// candidate's reason. It tries the largest type of each pool, zone and capacity type.
func (m moment) launchable(ctx context.Context, pod *corev1.Pod) (could, why string, err error) {
	why = "no NodePool may launch a node that its node selection allows"
	for _, c := range largest(pod, m.candidates) {
		before := m.before
		before.Pods = slices.Concat(before.Pods, c.daemons)
		refused, err := m.ask(ctx, before, oracle.Plan{Launched: []*corev1.Node{c.node}}, pod, c.node.Name)
		if err != nil {
			return "", "", err
		}
		if refused == "" {
			return c.what, "", nil
		}
		why = c.what + ": " + refused
	}
	return "", why, nil
}

// taken returns an existing node that would take the pod, or "".
func (m moment) taken(ctx context.Context, pod *corev1.Pod) (string, error) {
	for _, node := range m.before.Nodes {
		if node.DeletionTimestamp != nil {
			continue
		}
		refused, err := m.ask(ctx, m.before, oracle.Plan{}, pod, node.Name)
		if err != nil {
			return "", err
		}
		if refused == "" {
			return node.Name, nil
		}
	}
	return "", nil
}

func (m moment) ask(ctx context.Context, before oracle.Cluster, plan oracle.Plan, pod *corev1.Pod,
	node string) (refused string, err error) {
	plan.Placed = map[types.NamespacedName]string{{Namespace: pod.Namespace, Name: pod.Name}: node}
	violations, err := m.oracle.Check(ctx, before, plan)
	if err != nil || len(violations) == 0 {
		return "", err
	}
	return violations[0].Plugin + ": " + violations[0].Reason, nil
}

// largest returns the largest candidate of each pool, zone and capacity type, among those that the pod's node
// selection and tolerations allow.
func largest(pod *corev1.Pod, candidates []candidate) []candidate {
	required := nodeaffinity.GetRequiredNodeAffinity(pod)
	best := map[string]candidate{}
	for _, c := range candidates {
		if match, err := required.Match(c.node); err != nil || !match {
			continue
		}
		key := c.node.Labels[karpenterv1.NodePoolLabelKey] + c.node.Labels[corev1.LabelTopologyZone] +
			c.node.Labels[karpenterv1.CapacityTypeLabelKey]
		if before, found := best[key]; !found || size(c) > size(before) {
			best[key] = c
		}
	}
	var list []candidate
	for _, c := range best {
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b candidate) int { return cmp.Compare(a.what, b.what) })
	return list
}

// size orders types by size; all have memory in proportion to their cores.
func size(c candidate) int64 {
	return c.node.Status.Capacity.Cpu().MilliValue()*16 + c.node.Status.Capacity.Memory().Value()>>30
}
