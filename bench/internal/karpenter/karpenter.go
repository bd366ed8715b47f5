// Package karpenter drives the scheduler of sigs.k8s.io/karpenter as its provisioner does, from pending pods to a
// result. As in Karpenter's own scheduling benchmark, the client knows no objects, except for disruption (see reader).
//
// What else the provisioner does is left out, in its favour: listing and copying pods, volumes, events, metrics of
// decisions. See docs/benchmarks.md.
package karpenter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	fakeclient "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"
	v1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/provisioning/scheduling"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/events"
	"sigs.k8s.io/karpenter/pkg/operator/injection"
	"sigs.k8s.io/karpenter/pkg/operator/options"

	"github.com/joiner-autoscaler/joiner/bench/internal/scenario"
)

// Config has the settings of the peer.
type Config struct {
	// Workers is how many candidates it looks at in parallel (its NumConcurrentReconciles).
	Workers int
	// Limit ends a pass; what was placed until then counts. Karpenter itself allows one minute.
	Limit time.Duration
	// IgnorePreferences is its PREFERENCE_POLICY=Ignore.
	IgnorePreferences bool
}

// Workers is how many workers Karpenter has by default: one for each core that it requests, which is one. On two cores
// this is also the fastest: more workers spend their time waiting for each other.
const Workers = 1

// Planner is Karpenter with one scenario's cluster in memory. Use [New].
type Planner struct {
	config   Config
	ctx      context.Context
	client   client.Client
	objects  *reader // what client knows
	cloud    *provider
	clock    clock.Clock
	cluster  *state.Cluster
	recorder events.Recorder
	pools    []*v1.NodePool
	types    map[string][]*cloudprovider.InstanceType
	pending  []*corev1.Pod

	results   scheduling.Results
	solveTime time.Duration
	cut       bool
}

// New returns a planner that has taken in the scenario's pool, catalogue and nodes. Its pending pods are not in yet.
func New(s scenario.Scenario, config Config) (*Planner, error) {
	log.SetLogger(logr.Discard())
	p := &Planner{config: config, clock: clock.RealClock{}, recorder: events.NewRecorder(&record.FakeRecorder{})}
	p.ctx = options.ToContext(injection.WithControllerName(context.Background(), "provisioner"), &options.Options{
		CPURequests: int64(1000 * config.Workers), IgnoreDRARequests: true,
		MinValuesPolicy: options.MinValuesPolicyStrict, PreferencePolicy: options.PreferencePolicyRespect,
		FeatureGates: options.FeatureGates{ReservedCapacity: true},
	})
	byNode := func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }
	p.pools = []*v1.NodePool{pool(s)}
	p.client = fakeclient.NewClientBuilder().WithIndex(&corev1.Pod{}, "spec.nodeName", byNode).Build()
	// planning for pending pods knows no objects, as in Karpenter's own scheduling benchmark
	if s.Disrupt != "" {
		p.objects = newReader(p.client, p.pools)
		p.client = p.objects
	}
	p.types = map[string][]*cloudprovider.InstanceType{scenario.Pool: instanceTypes(s.Catalog)}
	p.cloud = &provider{types: p.types[scenario.Pool]}
	p.cluster = state.NewCluster(p.clock, p.client, p.cloud)
	for _, n := range s.Nodes {
		if err := p.addNode(s, n); err != nil {
			return nil, fmt.Errorf("taking in node %s: %w", n.Name, err)
		}
	}
	return p, nil
}

func pool(s scenario.Scenario) *v1.NodePool {
	pool := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: scenario.Pool, UID: "uid-of-pool"}}
	pool.Spec.Template.Spec.NodeClassRef = &v1.NodeClassReference{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass",
		Name: "default"}
	if s.OnDemandOnly {
		pool.Spec.Template.Spec.Requirements = []v1.NodeSelectorRequirementWithMinValues{{
			Key: v1.CapacityTypeLabelKey, Operator: corev1.NodeSelectorOpIn, Values: []string{v1.CapacityTypeOnDemand},
		}}
	}
	if s.Disrupt != "" {
		pool.Spec.Disruption = v1.Disruption{
			ConsolidateAfter:    v1.NillableDuration{Duration: new(time.Duration)},
			ConsolidationPolicy: v1.ConsolidationPolicyWhenEmptyOrUnderutilized,
			Budgets:             []v1.Budget{{Nodes: fmt.Sprintf("%d%%", scenario.BudgetPercent)}},
		}
	}
	if s.NodeLimit > 0 {
		pool.Spec.Limits = v1.Limits{"nodes": *resource.NewQuantity(s.NodeLimit, resource.DecimalSI)}
	}
	pool.StatusConditions().SetTrue(v1.ConditionTypeValidationSucceeded)
	pool.StatusConditions().SetTrue(v1.ConditionTypeNodeClassReady)
	return pool
}

func (p *Planner) addNode(s scenario.Scenario, n scenario.Node) error {
	node, err := n.Object(s.Catalog)
	if err != nil {
		return err
	}
	claim := &v1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: types.UID("uid-of-claim-" + n.Name), Labels: node.Labels},
		Spec:       v1.NodeClaimSpec{NodeClassRef: p.pools[0].Spec.Template.Spec.NodeClassRef},
		Status: v1.NodeClaimStatus{
			ProviderID: n.ProviderID(), NodeName: n.Name, Capacity: node.Status.Capacity,
			Allocatable: node.Status.Allocatable,
		},
	}
	for _, condition := range conditions(s) {
		claim.StatusConditions().SetTrue(condition)
	}
	if p.objects != nil {
		p.objects.nodes[node.Name] = node
	}
	p.cluster.UpdateNodeClaim(claim)
	if err := p.cluster.UpdateNode(p.ctx, node); err != nil {
		return err
	}
	for _, pod := range n.Pods {
		if p.objects != nil {
			p.objects.put(pod)
		}
		if err := p.cluster.UpdatePod(p.ctx, pod); err != nil {
			return err
		}
	}
	return nil
}

// Add takes in a pending pod, as from a watch event.
func (p *Planner) Add(pod *corev1.Pod) error {
	p.pending = append(p.pending, pod)
	return p.cluster.UpdatePod(p.ctx, pod)
}

// Remove takes in that a pod has gone.
func (p *Planner) Remove(pod *corev1.Pod) {
	p.cluster.DeletePod(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	p.pending = nil
}

// Warm does nothing: every pass of Karpenter starts from its cluster state.
func (p *Planner) Warm() {}

// Plan does what the provisioner does with its pending pods: copy the state nodes, build the topology and the
// scheduler, solve, cut the lists of instance types.
func (p *Planner) Plan() error {
	opts := []scheduling.Options{
		scheduling.DisableReservedCapacityFallback, scheduling.NumConcurrentReconciles(p.config.Workers),
		scheduling.MinValuesPolicy(options.MinValuesPolicyStrict),
	}
	if p.config.IgnorePreferences {
		opts = append(opts, scheduling.IgnorePreferences)
	}
	nodes := p.cluster.DeepCopyNodes().Active()
	topology, err := scheduling.NewTopology(p.ctx, p.client, p.cluster, nodes, p.pools, p.types, p.pending, opts...)
	if err != nil {
		return fmt.Errorf("building the topology: %w", err)
	}
	s := scheduling.NewScheduler(p.ctx, p.client, p.pools, p.cluster, nodes, topology, p.types, nil, p.recorder,
		p.clock, nil, nil, opts...)
	ctx, cancel := context.WithTimeout(p.ctx, p.config.Limit)
	defer cancel()
	start := time.Now()
	results, err := s.Solve(ctx, p.pending)
	p.solveTime = time.Since(start)
	p.cut = errors.Is(err, context.DeadlineExceeded)
	if err != nil && !p.cut {
		return fmt.Errorf("solving: %w", err)
	}
	p.results = results.TruncateInstanceTypes(p.ctx, scheduling.MaxInstanceTypes)
	return nil
}

// Note says how long the last pass spent in the scheduler's Solve, and whether it was cut off.
func (p *Planner) Note() string {
	note := fmt.Sprintf("%.3fs in Solve", p.solveTime.Seconds())
	if p.cut {
		note += fmt.Sprintf("; cut off after %s", p.config.Limit)
	}
	return note
}
