package cases

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/controller/daemon"
	daemonutil "k8s.io/kubernetes/pkg/controller/daemon/util"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/world"
	"github.com/joiner-autoscaler/joiner/localcluster/oracle"
)

// Judge runs cases. It is not safe for concurrent use: make one for each goroutine.
type Judge struct {
	oracle *oracle.Oracle
	// Spoil, if set, changes a plan before it is judged. It is for tests which verify that bad plans are caught.
	Spoil func(*oracle.Cluster, *oracle.Plan)
}

// NewJudge returns a Judge that asks o.
func NewJudge(o *oracle.Oracle) *Judge { return &Judge{oracle: o} }

// choices is the number of ways to turn claims into nodes for each plan: 0 always takes the cheapest offering, the
// others choose at random.
const choices = 2

// Outcome is the result of a case.
type Outcome struct {
	Snapshot *cluster.Snapshot
	Plan     plan.Plan
	Placed   int // pods that the plan places
	// Violations are those of the first choice of offerings that has any.
	Violations []oracle.Violation
}

// Values of Violation.Plugin for faults that are not the scheduler's to find.
const (
	ByAccounting = "accounting" // a pod is not in the plan exactly once
	ByProvider   = "provider"   // no offering satisfies a planned claim
)

// Run plans for the case and judges the plan. An error means that the case itself is unsound.
func (j *Judge) Run(ctx context.Context, c *Case) (Outcome, error) {
	before, err := c.cluster(ctx)
	if err != nil {
		return Outcome{}, err
	}
	snapshot, err := c.snapshot(before.Pods)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Snapshot: snapshot, Plan: engine.Provision(snapshot)}
	out.Placed = len(out.Plan.Nominations)
	for _, launch := range out.Plan.Launches {
		out.Placed += len(launch.Pods)
	}
	if out.Violations = accounting(snapshot, out.Plan); out.Violations != nil {
		return out, nil
	}
	for choice := range uint64(choices) {
		out.Violations, err = j.judge(ctx, c, before, out.Plan, choice)
		if err != nil || out.Violations != nil {
			break
		}
	}
	return out, err
}

// cluster returns the objects as kube-scheduler sees them once machines on their way have come.
func (c *Case) cluster(ctx context.Context) (oracle.Cluster, error) {
	result := oracle.Cluster{Namespaces: c.Namespaces}
	for _, m := range c.Machines {
		if m.Becomes != nil {
			result.Nodes = append(result.Nodes, m.Becomes)
		} else {
			result.Nodes = append(result.Nodes, m.Node)
		}
	}
	for _, pod := range c.Pods {
		stored, err := admit(ctx, pod)
		if err != nil {
			return result, err
		}
		result.Pods = append(result.Pods, stored)
	}
	return result, nil
}

// snapshot feeds the case to a Store and returns its snapshot.
func (c *Case) snapshot(pods []*corev1.Pod) (*cluster.Snapshot, error) {
	store := world.New(world.Config{Now: func() time.Time { return time.Unix(1_700_000_100, 0) }})
	class := world.ClassRef{Group: classRef().Group, Kind: classRef().Kind, Name: classRef().Name}
	if err := store.SetCatalog(class, c.catalog()); err != nil {
		return nil, err
	}
	for _, namespace := range c.Namespaces {
		_ = store.Apply(namespace) // only pods, claims, pools and daemons can be invalid
	}
	for _, pool := range c.Pools {
		if err := store.Apply(pool); err != nil {
			return nil, err
		}
	}
	for _, m := range c.Machines {
		if m.Claim != nil {
			if err := store.Apply(m.Claim); err != nil {
				return nil, err
			}
		}
		if m.Node != nil {
			_ = store.Apply(m.Node)
		}
	}
	for _, set := range c.Daemons {
		if err := store.Apply(admitDaemon(set)); err != nil {
			return nil, err
		}
	}
	for _, pod := range pods {
		if err := store.Apply(pod); err != nil {
			return nil, err
		}
	}
	return store.Snapshot(), nil
}

// accounting checks that every pending pod is exactly once nominated, launched for, or unplaced.
func accounting(s *cluster.Snapshot, p plan.Plan) []oracle.Violation {
	count := map[string]int{}
	for _, n := range p.Nominations {
		count[n.Pod.UID]++
	}
	for _, l := range p.Launches {
		for _, pod := range l.Pods {
			count[pod.UID]++
		}
	}
	for _, u := range p.Unplaced {
		count[u.Pod.UID]++
	}
	var broken []oracle.Violation
	for _, pod := range s.Pending {
		if count[pod.UID] != 1 {
			name := types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
			broken = append(broken, oracle.Violation{Pod: name, Plugin: ByAccounting,
				Reason: fmt.Sprintf("%d times in the plan", count[pod.UID])})
		}
	}
	return broken
}

// judge translates the plan for the oracle with one choice of offerings, adds the daemons that will come, and asks.
// Daemons run before the plan's pods are bound: they tolerate a node that is not ready yet, and other pods do not.
func (j *Judge) judge(ctx context.Context, c *Case, before oracle.Cluster, p plan.Plan,
	choice uint64) ([]oracle.Violation, error) {
	translated, broken := c.carryOut(p, choice)
	if broken != nil {
		return broken, nil
	}
	if j.Spoil != nil {
		j.Spoil(&before, &translated)
	}
	daemons, err := j.daemons(ctx, c, before, translated)
	if err != nil {
		return nil, err
	}
	for _, pod := range daemons {
		pod.Spec.NodeName = pod.Annotations[daemonNode]
		before.Pods = append(before.Pods[:len(before.Pods):len(before.Pods)], pod)
	}
	return j.oracle.Check(ctx, before, translated)
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// carryOut creates the planned nodes.
func (c *Case) carryOut(p plan.Plan, choice uint64) (oracle.Plan, []oracle.Violation) {
	result := oracle.Plan{Placed: map[types.NamespacedName]string{}}
	for _, m := range c.Machines {
		if m.Becomes == nil {
			result.Gone = append(result.Gone, m.name())
		}
	}
	for _, n := range p.Nominations {
		result.Placed[types.NamespacedName{Namespace: n.Pod.Namespace, Name: n.Pod.Name}] = n.Node
	}
	names := map[string]types.NamespacedName{}
	for _, pod := range c.Pods {
		names[string(pod.UID)] = nameOf(pod)
	}
	for _, uid := range p.Order {
		result.Order = append(result.Order, names[uid])
	}
	source := rand.New(rand.NewPCG(choice, 0))
	for i, launch := range p.Launches {
		name := fmt.Sprintf("%s-new-%d", launch.Pool, i)
		claim := translate.NodeClaimFor(c.pool(launch.Pool), p.Names, launch, name)
		claim.UID = types.UID("uid-" + name)
		offers := offersFor(c.catalog(), claim)
		if len(offers) == 0 {
			pod := types.NamespacedName{Namespace: launch.Pods[0].Namespace, Name: launch.Pods[0].Name}
			return result,
				[]oracle.Violation{{Pod: pod, Node: name, Plugin: ByProvider, Reason: "no offering for the claim of " +
					launch.String()}}
		}
		got := offers[0]
		if choice > 0 {
			got = offers[source.IntN(len(offers))]
		}
		result.Launched = append(result.Launched, become(claim, got))
		for _, pod := range launch.Pods {
			result.Placed[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] = name
		}
	}
	return result, nil
}

// daemonNode is the annotation with the node of a future daemon pod.
const daemonNode = "node"

// daemons returns the pods that the DaemonSet controller will create for nodes of the plan, by that controller's own
// code. A daemon that does not fit on its node even before the plan's pods come is not the plan's fault.
func (j *Judge) daemons(ctx context.Context, c *Case, before oracle.Cluster, p oracle.Plan) ([]*corev1.Pod, error) {
	gone := map[string]bool{}
	for _, name := range p.Gone {
		gone[name] = true
	}
	var coming []*corev1.Pod
	alone := oracle.Plan{Launched: p.Launched, Gone: p.Gone, Placed: map[types.NamespacedName]string{}}
	for _, node := range append(append([]*corev1.Node(nil), before.Nodes...), p.Launched...) {
		for _, set := range c.Daemons {
			stored := admitDaemon(set)
			if should, _ := daemon.NodeShouldRunDaemonPod(klog.Background(), node, stored); !should ||
				gone[node.Name] {
				continue
			}
			pod := daemon.NewPod(stored, "")
			pod.Name, pod.UID, pod.Annotations = set.Name+"-on-"+node.Name, types.UID(set.Name+node.Name),
				map[string]string{daemonNode: node.Name}
			pod.Spec.Affinity = daemonutil.ReplaceDaemonSetPodNodeNameNodeAffinity(pod.Spec.Affinity, node.Name)
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: set.Name}}
			daemonutil.AddOrUpdateDaemonPodTolerations(&pod.Spec)
			coming = append(coming, pod)
			alone.Placed[nameOf(pod)] = node.Name
		}
	}
	if len(coming) == 0 {
		return nil, nil
	}
	before.Pods = append(before.Pods[:len(before.Pods):len(before.Pods)], coming...)
	broken, err := j.oracle.Check(ctx, before, alone)
	if err != nil {
		return nil, err
	}
	hopeless := map[types.NamespacedName]bool{}
	for _, v := range broken {
		hopeless[v.Pod] = true
	}
	var kept []*corev1.Pod
	for _, pod := range coming {
		if !hopeless[nameOf(pod)] {
			kept = append(kept, pod)
		}
	}
	return kept, nil
}
