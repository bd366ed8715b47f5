package sim

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

const (
	className     = "default"
	holdFinalizer = "example.com/hold"
	handLabel     = "example.com/by-hand"
	templateLabel = "example.com/template"
	// foreignPrefix begins the names of objects that are not ours.
	foreignPrefix = "foreign-"
)

// verbs returns the actions of script lines.
func verbs() map[string]func(*World, arguments) error {
	all := map[string]func(*World, arguments) error{
		"pool": (*World).makePool, "limit": (*World).setLimit, "workload": (*World).makeWorkload,
		"scale": (*World).scaleWorkload,
		"claim": (*World).claimByHand, "delete-claim": (*World).deleteClaim, "delete-node": (*World).deleteNode,
		"hold":   (*World).hold,
		"vanish": (*World).vanish, "interrupt": (*World).interrupt, "sicken": (*World).sicken,
		"run-out": (*World).runOut, "crash": (*World).crashOne, "pause": (*World).pauseOne,
		"second": (*World).secondLeader, "jump": (*World).jumpClock, "see": (*World).see, "stall": (*World).stall,
		"strip-claim": (*World).stripClaim, "drift": (*World).driftPool, "replicas": (*World).setReplicas,
		"weather": (*World).weather,
	}
	maps.Copy(all, others())
	maps.Copy(all, aboveVerbs())
	maps.Copy(all, daemonVerbs())
	maps.Copy(all, limitVerbs())
	maps.Copy(all, orderVerbs())
	maps.Copy(all, belongVerbs())
	maps.Copy(all, meddleVerbs())
	maps.Copy(all, habitVerbs())
	maps.Copy(all, guardVerbs())
	maps.Copy(all, relistVerbs())
	maps.Copy(all, bufferVerbs())
	maps.Copy(all, keepVerbs())
	maps.Copy(all, tableVerbs())
	maps.Copy(all, sickVerbs())
	maps.Copy(all, commitmentVerbs())
	maps.Copy(all, attachVerbs())
	maps.Copy(all, reserveVerbs())
	maps.Copy(all, classVerbs())
	maps.Copy(all, priceVerbs())
	maps.Copy(all, requestVerbs())
	return all
}

// act executes an action.
func (w *World) act(action Action) {
	w.trace = hashText(w.trace, action.String())
	w.tellIf(">> %s", action)
	if err := verbs()[action.Verb](w, w.localized(action.Args)); err != nil {
		w.fail("simulation", "%s: %v", action, err)
	}
}

// prepare creates the objects that exist before anything happens.
func (w *World) prepare() {
	w.cluster.must(w.server.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metaNamespace}}))
	class := w.nodeClass()
	w.cluster.must(w.server.Create(class))
	if account := w.account; account != nil { // in a real cluster a controller finds this status
		change(w, &awsv1.EC2NodeClass{}, client.ObjectKeyFromObject(class), apiserver.Status,
			func(c *awsv1.EC2NodeClass) {
				c.Status = account.Class().Status
			})
	}
	w.cluster.must(w.server.Create(&karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: foreignPrefix + "claim"},
		Spec:       karpenterv1.NodeClaimSpec{NodeClassRef: otherClass()},
	}))
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: foreignPrefix + "node",
			Labels: map[string]string{corev1.LabelHostname: foreignPrefix + "node"}},
		Spec: corev1.NodeSpec{ProviderID: "other:///machine"},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("500m"), corev1.ResourceMemory: resource.MustParse("1Gi"),
			corev1.ResourcePods: resource.MustParse("3"),
		}},
	}
	node.Status.Capacity = node.Status.Allocatable
	setCondition(&node.Status.Conditions, corev1.NodeReady, corev1.ConditionTrue, w.clock())
	w.cluster.must(w.server.Create(node))
}

func (w *World) makePool(a arguments) error {
	pool := newPool(a)
	pool.Spec.Template.Spec.NodeClassRef = w.classRef()
	return w.server.Create(pool)
}

// newPool returns the NodePool that a line describes, without its node class.
func newPool(a arguments) *karpenterv1.NodePool {
	pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: a.first()}}
	template := &pool.Spec.Template.Spec
	template.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{
		{Key: corev1.LabelOSStable, Operator: corev1.NodeSelectorOpIn, Values: []string{"linux"}},
	}
	if grace := a.span("grace", -1); grace >= 0 {
		template.TerminationGracePeriod = &karpenterv1.Duration{Duration: grace}
	}
	if expire := a.span("expire", 0); expire > 0 {
		template.ExpireAfter = karpenterv1.NillableDuration{Duration: &expire}
	}
	pool.Spec.Disruption.ConsolidationPolicy = karpenterv1.ConsolidationPolicyWhenEmpty
	if policy, stated := a.value("policy"); stated {
		pool.Spec.Disruption.ConsolidationPolicy = karpenterv1.ConsolidationPolicy(policy)
	}
	after := a.span("after", 0)
	pool.Spec.Disruption.ConsolidateAfter = karpenterv1.NillableDuration{Duration: &after}
	if budget, stated := a.value("budget"); stated {
		pool.Spec.Disruption.Budgets = []karpenterv1.Budget{{Nodes: intstr.Parse(budget)}}
	}
	pool.Annotations = map[string]string{}
	if slices.Contains(a, "graceful") {
		pool.Annotations[karpenterv1.GracefulExpirationAnnotationKey] = "true"
	}
	if slices.Contains(a, "terminate-first") {
		pool.Annotations[karpenterv1.TerminateFirstAnnotationKey] = "true"
	}
	if overhead, stated := a.value("overhead"); stated {
		pool.Annotations[karpenterv1.NodeOverheadPriceAnnotationKey] = overhead
	}
	if replicas := a.number("replicas", -1); replicas >= 0 {
		pool.Spec.Replicas = &replicas
	}
	if weight := a.number("weight", 0); weight > 0 {
		pool.Spec.Weight = new(int32(weight))
	}
	setLimits(pool, a)
	return pool
}

func setLimits(pool *karpenterv1.NodePool, a arguments) {
	set := func(list *karpenterv1.Limits, key string) {
		if _, stated := a.value(key); !stated {
			return
		}
		*list = nil
		if n := a.number(key, math.MaxInt64); n != math.MaxInt64 {
			*list = karpenterv1.Limits{"nodes": *resource.NewQuantity(n, resource.DecimalSI)}
		}
	}
	set(&pool.Spec.Limits, "soft")
	set(&pool.Spec.HardLimits, "hard")
}

func (w *World) setLimit(a arguments) error {
	change(w, &karpenterv1.NodePool{}, client.ObjectKey{Name: a.first()}, apiserver.Main,
		func(p *karpenterv1.NodePool) { setLimits(p, a) })
	if w.healed { // a clash of users may outlast the healing
		w.dropBudgets()
	}
	return nil
}

// setReplicas changes the wanted number of nodes of a static pool.
func (w *World) setReplicas(a arguments) error {
	n, err := strconv.ParseInt(a[1], 10, 64)
	if err != nil {
		return err
	}
	change(w, &karpenterv1.NodePool{}, client.ObjectKey{Name: a[0]}, apiserver.Main, func(p *karpenterv1.NodePool) {
		p.Spec.Replicas = &n
	})
	return nil
}

// driftPool changes a pool's template, so that all its nodes drift.
func (w *World) driftPool(a arguments) error {
	change(w, &karpenterv1.NodePool{}, client.ObjectKey{Name: a.first()}, apiserver.Main,
		func(p *karpenterv1.NodePool) {
			labels := &p.Spec.Template.ObjectMeta.Labels
			n, _ := strconv.Atoi((*labels)[templateLabel]) // 0 at first
			*labels = map[string]string{templateLabel: strconv.Itoa(n + 1)}
		})
	return nil
}

func (w *World) makeWorkload(a arguments) error {
	l := &workload{name: a.first(), replicas: int(a.number("replicas", 1)), protect: slices.Contains(a, "protect"),
		clings: slices.Contains(a, "clings"), bare: slices.Contains(a, "bare"), priority: int32(a.number("priority", 0)),
		grace: a.span("grace", 10*time.Second)}
	var err error
	if l.tied, err = bondsOf(a); err != nil {
		return err
	}
	if l.disk, err = diskOf(a); err != nil {
		return err
	}
	for key, amount := range map[string]*resource.Quantity{"cpu": &l.cpu, "mem": &l.mem} {
		text, _ := a.value(key)
		parsed, err := resource.ParseQuantity(text)
		if err != nil {
			return fmt.Errorf("%s is %q: want a quantity", key, text)
		}
		*amount = parsed
	}
	l.wants = a
	w.cluster.workloads[l.name] = l
	w.cluster.names = append(w.cluster.names, l.name)
	if spec, stated := budgetSpecOf(a); stated {
		if err := w.server.Create(l.guard(spec)); err != nil {
			return err
		}
	}
	w.cluster.scale(l.name)
	return nil
}

func (w *World) scaleWorkload(a arguments) error {
	l := w.cluster.workloads[a.first()]
	if l == nil {
		return nil // not created yet, or left out of the script
	}
	n, err := strconv.Atoi(a[1])
	if err != nil {
		return err
	}
	l.replicas = n
	w.cluster.scale(l.name)
	return nil
}

func (w *World) claimByHand(a arguments) error {
	pool, _ := a.value("pool")
	if w.server.Peek(&karpenterv1.NodePool{}, client.ObjectKey{Name: pool}) == nil {
		return nil
	}
	return w.server.Create(&karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: a.first(), Labels: map[string]string{karpenterv1.NodePoolLabelKey: pool,
			handLabel: "true"}},
		Spec: karpenterv1.NodeClaimSpec{
			NodeClassRef: w.classRef(),
			Requirements: []karpenterv1.NodeSelectorRequirementWithMinValues{{
				Key: corev1.LabelInstanceTypeStable, Operator: corev1.NodeSelectorOpIn,
				Values: []string{w.middling()}}},
		},
	})
}

// pick returns one of our objects of a kind, or nil. The number wraps around.
func (w *World) pick(like client.Object, number string) client.Object {
	return w.choose(like, number, func(o client.Object) bool { return !isOther(o) })
}

// choose is pick among the allowed objects.
func (w *World) choose(like client.Object, number string, may func(client.Object) bool) client.Object {
	var all []client.Object
	w.server.All(like, func(o client.Object) {
		if may(o) {
			all = append(all, o)
		}
	})
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || len(all) == 0 {
		return nil
	}
	return all[n%len(all)]
}

func (w *World) deleteClaim(a arguments) error {
	return w.deleteOne(w.pick(&karpenterv1.NodeClaim{}, a.first()))
}

func (w *World) deleteNode(a arguments) error { return w.deleteOne(w.pick(&corev1.Node{}, a.first())) }

// stripClaim is an impatient user: the claim is deleted, and its finalizers are removed.
func (w *World) stripClaim(a arguments) error {
	found := w.pick(&karpenterv1.NodeClaim{}, a.first())
	if found == nil {
		return nil
	}
	w.turnsBlind(found)
	fresh := found.DeepCopyObject().(client.Object)
	fresh.SetFinalizers(nil)
	if err := w.server.Update(fresh, apiserver.Main); err != nil {
		return err
	}
	return w.deleteOne(w.server.Peek(fresh, client.ObjectKeyFromObject(fresh)))
}

func (w *World) deleteOne(object client.Object) error {
	if object == nil {
		return nil
	}
	return w.server.Delete(object, client.ObjectKeyFromObject(object), apiserver.DeleteOptions{})
}

// hold puts a user's finalizer on a claim or a node.
func (w *World) hold(a arguments) error {
	var like client.Object = &karpenterv1.NodeClaim{}
	if a[0] == "node" {
		like = &corev1.Node{}
	}
	found := w.pick(like, a[1])
	if found == nil || found.GetDeletionTimestamp() != nil || slices.Contains(found.GetFinalizers(), holdFinalizer) {
		return nil
	}
	fresh := found.DeepCopyObject().(client.Object)
	fresh.SetFinalizers(append(fresh.GetFinalizers(), holdFinalizer))
	return w.server.Update(fresh, apiserver.Main)
}

// dropBudgets deletes the budgets that could block a drain for ever.
func (w *World) dropBudgets() {
	w.server.All(&policyv1.PodDisruptionBudget{}, func(o client.Object) {
		if !w.stays(o.(*policyv1.PodDisruptionBudget)) {
			w.cluster.must(w.deleteOne(o))
		}
	})
}

// letGo removes users' finalizers, and everything else of theirs that could block a drain for ever.
func (w *World) letGo() {
	w.otherHeals()
	w.endHabits()
	w.dropBudgets()
	for _, l := range w.cluster.workloads {
		l.protect = false
	}
	w.server.All(&corev1.Pod{}, func(o client.Object) {
		change(w, &corev1.Pod{}, client.ObjectKeyFromObject(o), apiserver.Main, func(p *corev1.Pod) {
			delete(p.Annotations, karpenterv1.DoNotDisruptAnnotationKey)
		})
	})
	for _, like := range []client.Object{&karpenterv1.NodeClaim{}, &corev1.Node{}} {
		w.server.All(like, func(o client.Object) {
			if slices.Contains(o.GetFinalizers(), holdFinalizer) {
				fresh := o.DeepCopyObject().(client.Object)
				fresh.SetFinalizers(slices.DeleteFunc(fresh.GetFinalizers(),
					func(f string) bool { return f == holdFinalizer }))
				w.cluster.must(w.server.Update(fresh, apiserver.Main))
			}
		})
	}
}

func (w *World) crashOne(arguments) error {
	if len(w.replicas) > 0 {
		w.crash(w.replicas[0])
	}
	return nil
}

func (w *World) pauseOne(a arguments) error {
	d, err := time.ParseDuration(a.first())
	if err == nil && len(w.replicas) > 0 {
		r := w.replicas[0]
		r.paused = max(r.paused, w.now+d)
	}
	return err
}

// secondLeader starts a second replica that leads; after a while the first one ends.
func (w *World) secondLeader(a arguments) error {
	d, err := time.ParseDuration(a.first())
	if err != nil || len(w.replicas) > 1 {
		return err
	}
	w.launchReplica()
	w.after(d, func() {
		if len(w.replicas) > 1 {
			w.end(w.replicas[0])
		}
	})
	return nil
}

func (w *World) jumpClock(a arguments) error {
	d, err := time.ParseDuration(a.first())
	if len(w.replicas) > 0 {
		r := w.replicas[len(w.replicas)-1]
		r.skew = max(-skewBack, min(skewAhead, r.skew+d))
		r.skewMost = max(r.skewMost, r.skew, -r.skew)
	}
	return err
}

// stall makes the youngest replica's watch of a kind deliver nothing for a while.
func (w *World) stall(a arguments) error {
	d, err := time.ParseDuration(a[1])
	if len(w.replicas) > 0 {
		r := w.replicas[len(w.replicas)-1]
		r.stalled[a[0]] = max(r.stalled[a[0]], w.now+d)
	}
	return err
}

// see makes a story fail if a number differs: claims=POOL:N, machines=N, waiting=N (pods without a node), silent=N
// (nodes whose kubelet does not answer), reboots=N, launches=N (machines that were ever launched), spared=N (intents
// to remove a claim that were ever taken back), nodes=N,N (which machines are nodes).
func (w *World) see(a arguments) error {
	waiting := 0
	w.server.All(&corev1.Pod{}, func(o client.Object) {
		if o.(*corev1.Pod).Spec.NodeName == "" && !isDaemon(o.(*corev1.Pod)) {
			waiting++
		}
	})
	for _, word := range a {
		key, want, _ := strings.Cut(word, "=")
		var got string
		switch key {
		case "claims":
			pool, _, _ := strings.Cut(want, ":")
			got = fmt.Sprintf("%s:%d", pool, w.count(pool))
		case "machines":
			got = fmt.Sprint(len(w.cloud.Machines()))
		case "waiting":
			got = fmt.Sprint(waiting)
		case "silent":
			got = fmt.Sprint(w.silent())
		case "reboots":
			got = fmt.Sprint(w.reboots)
		case "launches":
			got = fmt.Sprint(w.checks.launches)
		case "nodes":
			got = w.nodeNumbers()
		case "spared":
			got = fmt.Sprint(len(w.checks.sparings))
		default:
			return fmt.Errorf(
				"%s: want claims=POOL:N, machines=N, waiting=N, silent=N, reboots=N, launches=N, spared=N or nodes=N,N",
				word)
		}
		if got != want {
			w.fail(checkStory, "%s=%s is to be seen, found %s", key, want, got)
		}
	}
	return nil
}

// heal ends all faults for good.
func (w *World) heal() {
	w.tellIf(">> all faults are healed")
	w.healed = true
	w.fairWeather()
	w.mendClass()
	w.letGo()
	w.cluster.must(w.mendNodes(nil))
	w.server.Forbid(nil)
	for len(w.replicas) > 1 {
		w.end(w.replicas[0])
	}
	for _, r := range w.replicas {
		r.skew = 0
	}
	w.server.All(&karpenterv1.NodePool{}, func(o client.Object) {
		if isOther(o) {
			return
		}
		change(w, &karpenterv1.NodePool{}, client.ObjectKeyFromObject(o), apiserver.Main,
			func(p *karpenterv1.NodePool) {
				p.Spec.Template.Spec.ExpireAfter = karpenterv1.NillableDuration{}
			})
	})
}
