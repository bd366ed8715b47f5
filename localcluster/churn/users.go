package churn

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

const (
	mostApps    = 10
	mostDaemons = 2
	firstApps   = 4
	mostPods    = 9 // of an app
)

// users know their own objects. They draw their next step from these, never from the cluster.
type users struct {
	seed    uint64
	prefix  string
	spaces  []string // existing namespaces
	made    int      // namespaces so far
	apps    []*app
	daemons []*appsv1.DaemonSet
	ranges  map[string]bool // namespaces with a LimitRange
	pools   []*karpenterv1.NodePool
}

func newUsers(seed uint64, prefix string) *users {
	return &users{seed: seed, prefix: prefix, ranges: map[string]bool{}}
}

func (u *users) dice(purpose string, number int) dice { return newDice(u.seed, purpose, number) }

func (u *users) newSpace() client.Object {
	name := fmt.Sprintf("%s-%c", u.prefix, 'a'+rune(u.made%26))
	u.made++
	u.spaces = append(u.spaces, name)
	return &corev1.Namespace{TypeMeta: kind("v1", "Namespace"), ObjectMeta: u.meta("", name)}
}

// begin creates pools, namespaces and the first workloads.
func (u *users) begin() []Step {
	u.firstPools()
	base := []client.Object{newClass(u.prefix, u.dice("class", 0)), u.newPriority(), u.newSpace(), u.newSpace()}
	for _, pool := range u.pools {
		base = append(base, pool.DeepCopy())
	}
	steps := []Step{{Verb: Apply, Why: "what a cluster has", Objects: base}}
	for i := range firstApps {
		steps = append(steps, u.addApp(-1-i)...)
	}
	return steps
}

// step draws the next step of users. If that step is impossible now, they scale an app instead.
func (u *users) step(i int) []Step {
	act := draw(u.dice("step", i), []weighted[func(int) []Step]{
		{20, u.addApp}, {18, u.scale}, {9, u.rollOut}, {7, u.removeApp}, {8, u.guard}, {5, u.addJob},
		{4, u.addDaemon}, {2, u.removeDaemon},
		{3, u.limitRange}, {6, u.deleteAny(Pod)}, {4, u.deleteAny(Node)}, {4, u.deleteAny(NodeClaim)},
		{2, u.protect}, {2, u.unprotect}, {2, u.interrupt},
		{16, u.editPool}, {4, u.kill}, {1, u.removeSpace},
	})
	if steps := act(i); len(steps) > 0 {
		return steps
	}
	return u.scale(i)
}

func (u *users) addApp(i int) []Step {
	if len(u.apps) >= mostApps {
		return nil
	}
	a := u.newApp(u.number(i))
	u.apps = append(u.apps, a)
	objects := []client.Object{a.DeepCopy()}
	if d := u.dice("guarded", i); d.chance(0.5) {
		a.guarded = true
		objects = append(objects, u.newGuard(a, d))
	}
	return []Step{{Verb: Apply, Why: fmt.Sprintf("%d pods, %s", *a.Spec.Replicas, a.constraint), Objects: objects}}
}

// number makes non-negative numbers for names. The first workloads have negative numbers.
func (u *users) number(i int) int {
	if i < 0 {
		return 1000 - i
	}
	return i
}

func (u *users) scale(i int) []Step {
	if len(u.apps) == 0 {
		return u.addApp(i)
	}
	d := u.dice("scale", i)
	a := of(d, u.apps...)
	before := *a.Spec.Replicas
	*a.Spec.Replicas = int32(of(d, 0, 1, d.from(1, mostPods), d.from(1, mostPods), d.from(1, mostPods)))
	why := fmt.Sprintf("from %d to %d pods", before, *a.Spec.Replicas)
	return []Step{{Verb: Apply, Why: why, Objects: []client.Object{a.DeepCopy()}}}
}

func (u *users) rollOut(i int) []Step {
	if len(u.apps) == 0 {
		return nil
	}
	d := u.dice("roll", i)
	a := of(d, u.apps...)
	a.Spec.Template.Spec.Containers[0].Image = fmt.Sprintf("example.invalid/v%d", i)
	why := "another image"
	if d.chance(0.3) {
		a.Spec.Template.Spec.Containers = containers(d)
		why = "other containers"
	}
	return []Step{{Verb: Apply, Why: why, Objects: []client.Object{a.DeepCopy()}}}
}

func (u *users) removeApp(i int) []Step {
	if len(u.apps) < 2 {
		return nil
	}
	at := u.dice("remove", i).IntN(len(u.apps))
	a := u.apps[at]
	u.apps = slices.Delete(u.apps, at, at+1)
	objects := []client.Object{a.DeepCopy()}
	if a.guarded {
		objects = append(objects, u.newGuard(a, u.dice("any", 0)))
	}
	return []Step{{Verb: Delete, Why: "not needed any more", Objects: objects}}
}

func (u *users) guard(i int) []Step {
	if len(u.apps) == 0 {
		return nil
	}
	d := u.dice("guard", i)
	a := of(d, u.apps...)
	guard := u.newGuard(a, d)
	if a.guarded && d.chance(0.4) {
		a.guarded = false
		return []Step{{Verb: Delete, Why: "no budget", Objects: []client.Object{guard}}}
	}
	a.guarded = true
	why := "a budget: " + rule(guard.Spec.MinAvailable, guard.Spec.MaxUnavailable)
	return []Step{{Verb: Apply, Why: why, Objects: []client.Object{guard}}}
}

func rule(least, most *intstr.IntOrString) string {
	if least != nil {
		return "minAvailable " + least.String()
	}
	return "maxUnavailable " + most.String()
}

func (u *users) addJob(i int) []Step {
	job := u.newJob(i)
	why := fmt.Sprintf("%d pods that end", *job.Spec.Completions)
	return []Step{{Verb: Apply, Why: why, Objects: []client.Object{job}}}
}

func (u *users) addDaemon(i int) []Step {
	if len(u.daemons) >= mostDaemons {
		return nil
	}
	daemon := u.newDaemon(i)
	u.daemons = append(u.daemons, daemon)
	return []Step{{Verb: Apply, Why: "a daemon", Objects: []client.Object{daemon.DeepCopy()}}}
}

func (u *users) removeDaemon(i int) []Step {
	if len(u.daemons) == 0 {
		return nil
	}
	at := u.dice("remove daemon", i).IntN(len(u.daemons))
	daemon := u.daemons[at]
	u.daemons = slices.Delete(u.daemons, at, at+1)
	return []Step{{Verb: Delete, Why: "not needed any more", Objects: []client.Object{daemon}}}
}

func (u *users) limitRange(i int) []Step {
	d := u.dice("limit range", i)
	space := of(d, u.spaces...)
	limits := u.newRange(space, d)
	if u.ranges[space] {
		delete(u.ranges, space)
		return []Step{{Verb: Delete, Why: "no defaults for containers", Objects: []client.Object{limits}}}
	}
	u.ranges[space] = true
	return []Step{{Verb: Apply, Why: "defaults for containers", Objects: []client.Object{limits}}}
}

func (u *users) deleteAny(kind Kind) func(int) []Step {
	return func(i int) []Step {
		return []Step{{Verb: DeleteAny, Kind: kind, Pick: u.dice("pick", i).Float64(), Why: "by hand"}}
	}
}

func (u *users) protect(i int) []Step {
	return []Step{{Verb: ProtectAny, Kind: Node, Pick: u.dice("pick", i).Float64(), Why: "do not disrupt"}}
}

func (u *users) interrupt(i int) []Step {
	pick := u.dice("pick", i).Float64()
	return []Step{{Verb: InterruptAny, Kind: Node, Pick: pick, Why: "the cloud takes the machine away"}}
}

func (u *users) unprotect(int) []Step {
	return []Step{{Verb: UnprotectAll, Why: "disrupt again"}}
}

func (u *users) kill(int) []Step { return []Step{{Verb: Kill, Why: "kill -9"}} }

// removeSpace removes a namespace with everything in it, and creates another one.
func (u *users) removeSpace(i int) []Step {
	d := u.dice("remove namespace", i)
	at := d.IntN(len(u.spaces))
	name := u.spaces[at]
	u.spaces = slices.Delete(u.spaces, at, at+1)
	u.apps = slices.DeleteFunc(u.apps, func(a *app) bool { return a.Namespace == name })
	u.daemons = slices.DeleteFunc(u.daemons, func(s *appsv1.DaemonSet) bool { return s.Namespace == name })
	delete(u.ranges, name)
	gone := &corev1.Namespace{TypeMeta: kind("v1", "Namespace"), ObjectMeta: u.meta("", name)}
	return []Step{
		{Verb: Apply, Why: "another one", Objects: []client.Object{u.newSpace()}},
		{Verb: Delete, Why: "with all that is in it", Objects: []client.Object{gone}},
	}
}

// calm lets nodes go quickly, and none expire. After that everything has to come to rest.
func (u *users) calm() []Step {
	for _, pool := range u.pools {
		disruption := &pool.Spec.Disruption
		disruption.ConsolidateAfter = seconds(0)
		disruption.ConsolidationPolicy = karpenterv1.ConsolidationPolicyWhenEmptyOrUnderutilized
		disruption.Budgets = []karpenterv1.Budget{{Nodes: intstr.FromString("100%")}}
		pool.Spec.Template.Spec.ExpireAfter = karpenterv1.NillableDuration{}
	}
	return []Step{
		{Verb: UnprotectAll, Why: "disrupt again"},
		{Verb: Apply, Why: "nodes may go at once", Objects: u.allPools()},
	}
}

// end removes all workloads, and static nodes.
func (u *users) end() []Step {
	for _, pool := range u.pools {
		if pool.Spec.Replicas != nil {
			*pool.Spec.Replicas = 0
		}
	}
	steps := []Step{{Verb: Apply, Why: "no static nodes", Objects: u.allPools()}}
	for _, name := range u.spaces {
		gone := &corev1.Namespace{TypeMeta: kind("v1", "Namespace"), ObjectMeta: u.meta("", name)}
		steps = append(steps, Step{Verb: Delete, Why: "with all that is in it", Objects: []client.Object{gone}})
	}
	return steps
}

// gone removes the pools and the cluster-wide objects.
func (u *users) gone() []Step {
	class := newClass(u.prefix, u.dice("class", 0))
	return []Step{
		{Verb: Delete, Why: "at the end", Objects: u.allPools()},
		{Verb: Delete, Why: "at the end", Objects: []client.Object{class, u.newPriority()}},
	}
}

func (u *users) allPools() (objects []client.Object) {
	for _, pool := range u.pools {
		objects = append(objects, pool.DeepCopy())
	}
	return objects
}
