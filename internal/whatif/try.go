package whatif

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// Try is one change that would place a pod that waits. Its names in JSON are an API (U-29).
type Try struct {
	// Change says what to do, and Object to what.
	Change string      `json:"change"`
	Object view.Object `json:"object"`
	// Node is the node, or the NodeClaim of one on its way, that would take the pod; else one would be launched by
	// Pool, most likely Cheapest.
	Node     string    `json:"node,omitempty"`
	Pool     string    `json:"pool,omitempty"`
	Cheapest *Offering `json:"cheapest,omitempty"`
	// PricePerHour is that of a node that would be launched; nil when nobody knows, or none would be.
	PricePerHour *Dollars `json:"pricePerHour,omitempty"`

	estimated bool
	changed   client.Object
}

const (
	// triesShown is how many changes are shown. maxTries is how many are tried: each needs a plan.
	triesShown = 5
	maxTries   = 60
)

// Try adds to the explanation of a pod that no pool takes the single changes that would place it, cheapest first. For
// each change it plans for all waiting pods as if the change were made. It tries nothing for a pod that waits for
// something else.
func (w *World) Try(e *Explained) {
	pod := w.known[e.About.Namespace+"/"+e.About.Name]
	if pod == nil || e.State != view.Held {
		return
	}
	for _, u := range w.planned().Unplaced {
		if u.Pod.UID != string(pod.UID) {
			continue
		}
		e.Tries, e.tried = w.tries(pod, u)
		e.Tried = len(e.tried)
	}
}

// tries returns the changes that would place a pod, and all that were tried.
func (w *World) tries(pod *corev1.Pod, u plan.Unplaced) (placed, tried []Try) {
	tried = append(ofThePod(pod), w.ofPools(pod, u)...)
	tried = tried[:min(len(tried), maxTries)]
	for _, t := range tried {
		if w.places(pod, &t) {
			placed = append(placed, t)
		}
	}
	slices.SortStableFunc(placed, func(a, b Try) int {
		switch x, y := a.price(), b.price(); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	return placed[:min(len(placed), triesShown)], tried
}

// price returns the price for sorting tries: 0 if no new node is needed; unknown prices come last.
func (t Try) price() resources.Money {
	switch {
	case t.Node != "":
		return 0
	case t.PricePerHour == nil:
		return resources.Unpriced
	}
	return resources.Money(*t.PricePerHour)
}

// places reports whether a change gives a pod a place without taking another pod's. It records the place in t.
// Afterwards the world is as before.
func (w *World) places(pod *corev1.Pod, t *Try) bool {
	before := client.Object(pod)
	if pool, isPool := t.changed.(*karpenterv1.NodePool); isPool {
		before = w.pool(pool.Name)
	}
	defer w.put(before)
	w.put(t.changed)
	p := engine.Launches(w.store.Snapshot())
	waited := map[string]bool{}
	for _, u := range w.planned().Unplaced {
		waited[u.Pod.UID] = true
	}
	if slices.ContainsFunc(p.Unplaced, func(u plan.Unplaced) bool { return !waited[u.Pod.UID] }) {
		return false // it would only take another pod's place
	}
	for _, n := range p.Nominations {
		if n.Pod.UID == string(pod.UID) {
			t.Node = n.Node
			return true
		}
	}
	for _, l := range p.Launches {
		if !slices.ContainsFunc(l.Pods, func(other plan.PodRef) bool { return other.UID == string(pod.UID) }) {
			continue
		}
		t.Pool, t.estimated = l.Pool, w.estimated
		t.Cheapest = &Offering{Type: l.Cheapest.Type, Zone: l.Cheapest.Zone, CapacityType: l.Cheapest.CapacityType}
		if price := l.Cheapest.Price.OfNode(); price != resources.Unpriced {
			known := Dollars(price)
			t.PricePerHour = &known
		}
		return true
	}
	return false
}

// put gives the store another version of an object, as if it were the newest.
func (w *World) put(object client.Object) {
	w.states++
	next := object.DeepCopyObject().(client.Object)
	next.SetResourceVersion(strconv.FormatUint(newest+w.states, 10))
	_ = w.store.Apply(next) // faults were reported when it was read
}

// newest is higher than every version of an API server.
const newest = 1 << 63

// ofThePod returns the changes of a pod that may place it: lower requests, or one constraint fewer.
func ofThePod(pod *corev1.Pod) []Try {
	var list []Try
	add := func(edit func(*corev1.PodSpec), format string, args ...any) {
		changed := pod.DeepCopy()
		edit(&changed.Spec)
		list = append(list, Try{Change: fmt.Sprintf(format, args...), changed: changed,
			Object: view.Object{Kind: "Pod", Name: pod.Namespace + "/" + pod.Name}})
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		whole, half := pod.Spec.DeepCopy(), pod.Spec.DeepCopy()
		halve(half, name)
		if was, is := requested(whole, name), requested(half, name); is.Cmp(was) < 0 {
			add(func(spec *corev1.PodSpec) { halve(spec, name) }, "request half the %s: %s instead of %s", name, &is,
				&was)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		add(func(spec *corev1.PodSpec) { delete(spec.NodeSelector, key) }, "take %s=%s out of spec.nodeSelector", key,
			pod.Spec.NodeSelector[key])
	}
	for i, spread := range pod.Spec.TopologySpreadConstraints {
		if spread.WhenUnsatisfiable == corev1.DoNotSchedule {
			add(func(spec *corev1.PodSpec) {
				spec.TopologySpreadConstraints = slices.Delete(spec.TopologySpreadConstraints, i, i+1)
			}, "take the topology spread over %s out of spec.topologySpreadConstraints[%d]", spread.TopologyKey, i)
		}
	}
	if affinity := pod.Spec.Affinity; affinity != nil {
		ofAffinity(affinity, add)
	}
	return list
}

// ofAffinity adds the changes that remove one required term. For node affinity it removes all terms, since one of them
// suffices.
func ofAffinity(affinity *corev1.Affinity, add func(func(*corev1.PodSpec), string, ...any)) {
	if of := affinity.NodeAffinity; of != nil && of.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		add(func(spec *corev1.PodSpec) {
			spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nil
		}, "make its required node affinity a preference")
	}
	if of := affinity.PodAffinity; of != nil {
		for i, term := range of.RequiredDuringSchedulingIgnoredDuringExecution {
			add(func(spec *corev1.PodSpec) {
				terms := &spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution
				*terms = slices.Delete(*terms, i, i+1)
			}, "make its required pod affinity over %s a preference", term.TopologyKey)
		}
	}
	if of := affinity.PodAntiAffinity; of != nil {
		for i, term := range of.RequiredDuringSchedulingIgnoredDuringExecution {
			add(func(spec *corev1.PodSpec) {
				terms := &spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
				*terms = slices.Delete(*terms, i, i+1)
			}, "make its required pod anti-affinity over %s a preference", term.TopologyKey)
		}
	}
}

// ofPools returns the changes suggested by the pools' refusals of a pod: tolerate a taint, raise a limit by one, or
// remove a limit.
func (w *World) ofPools(pod *corev1.Pod, u plan.Unplaced) []Try {
	var list []Try
	tolerated := map[corev1.Toleration]bool{}
	for _, refusal := range u.Pools {
		pool := w.pool(refusal.Pool)
		if pool == nil {
			continue
		}
		switch refusal.Last().Cause {
		case cause.TaintNotTolerated:
			for _, taint := range pool.Spec.Template.Spec.Taints {
				key := tolerationOf(taint)
				if taint.Effect == corev1.TaintEffectPreferNoSchedule || tolerated[key] {
					continue
				}
				tolerated[key] = true
				changed := pod.DeepCopy()
				changed.Spec.Tolerations = append(changed.Spec.Tolerations, key)
				list = append(list, Try{Change: "tolerate " + taint.ToString(), changed: changed,
					Object: view.Object{Kind: "Pod", Name: pod.Namespace + "/" + pod.Name}})
			}
		case cause.HardLimitNodes:
			list = append(list, w.raised(pool, "hardLimits")...)
		case cause.SoftLimitNodes:
			list = append(list, w.raised(pool, "limits")...)
		case cause.ResourceLimit:
			list = append(list, without(pool, refusal.Last().Key))
		}
	}
	return list
}

// tolerationOf returns the toleration of this taint only.
func tolerationOf(taint corev1.Taint) corev1.Toleration {
	if taint.Value == "" {
		return corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpExists, Effect: taint.Effect}
	}
	return corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value,
		Effect: taint.Effect}
}

// raised returns the change of a pool's node limit to one more than the limit, or than its nodes if they are more.
func (w *World) raised(pool *karpenterv1.NodePool, field string) []Try {
	changed := pool.DeepCopy()
	limits := changed.Spec.Limits
	if field == "hardLimits" {
		limits = changed.Spec.HardLimits
	}
	was, found := limits[resources.NameNodes]
	if !found {
		return nil
	}
	most := was.Value()
	if value := w.store.Snapshot().Pool(pool.Name); value != nil {
		most = max(most, value.Used.Nodes)
	}
	is := *resource.NewQuantity(most+1, resource.DecimalSI)
	limits[resources.NameNodes] = is
	return []Try{{Change: fmt.Sprintf("raise spec.%s.nodes from %s to %s", field, &was, &is), changed: changed,
		Object: view.Object{Kind: "NodePool", Name: pool.Name}}}
}

// without returns the change that removes a pool's limit on a resource.
func without(pool *karpenterv1.NodePool, name string) Try {
	changed := pool.DeepCopy()
	was := changed.Spec.Limits[corev1.ResourceName(name)]
	delete(changed.Spec.Limits, corev1.ResourceName(name))
	return Try{Change: fmt.Sprintf("take spec.limits.%s=%s away", name, &was), changed: changed,
		Object: view.Object{Kind: "NodePool", Name: pool.Name}}
}

// requested returns a pod's request of a resource: that of the pod as a whole, or else the sum of its containers.
func requested(spec *corev1.PodSpec, name corev1.ResourceName) resource.Quantity {
	if spec.Resources != nil {
		if whole, found := spec.Resources.Requests[name]; found {
			return whole
		}
	}
	var sum resource.Quantity
	for _, c := range spec.Containers {
		sum.Add(c.Resources.Requests[name])
	}
	return sum
}

// halve halves all of a pod's requests of a resource.
func halve(spec *corev1.PodSpec, name corev1.ResourceName) {
	in := func(list corev1.ResourceList) {
		if q, found := list[name]; found && name == corev1.ResourceCPU {
			list[name] = *resource.NewMilliQuantity(q.MilliValue()/2, q.Format)
		} else if found {
			list[name] = *resource.NewQuantity(q.Value()/2, q.Format)
		}
	}
	for i := range spec.Containers {
		in(spec.Containers[i].Resources.Requests)
	}
	for i := range spec.InitContainers {
		in(spec.InitContainers[i].Resources.Requests)
	}
	if spec.Resources != nil {
		in(spec.Resources.Requests)
	}
}

// writeTries prints the changes that would place a pod.
func (e Explained) writeTries(b *strings.Builder) {
	if e.Tried > 0 && len(e.Tries) == 0 {
		fmt.Fprintf(b, "  %-9s  no single change places it: %s tried\n", "try", count(e.Tried, "was", "were"))
	}
	for i, t := range e.Tries {
		lead := ""
		if i == 0 {
			lead = "try"
		}
		fmt.Fprintf(b, "  %-9s  %s\n", lead, t)
	}
}

// String returns the change, and what would then take the pod.
func (t Try) String() string {
	text := t.Change
	if t.Object.Kind == "NodePool" {
		text += " in " + t.Object.String()
	}
	if t.Node != "" {
		return text + ": then it fits " + t.Node
	}
	price := "-"
	if t.PricePerHour != nil {
		price = priced(*t.PricePerHour, 1, 0, t.estimated)
	}
	return fmt.Sprintf("%s: then a node of NodePool %s, %s %s in %s, %s", text, t.Pool, t.Cheapest.CapacityType,
		t.Cheapest.Type, t.Cheapest.Zone, price)
}
