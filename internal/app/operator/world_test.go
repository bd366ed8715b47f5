package operator

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/kube"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

// world is a management cluster and a hosted one in memory, with the controllers of joiner-operator as they are
// shipped, in virtual time. Everything is drawn from one seed.
type world struct {
	dice              *rand.Rand
	now               time.Time
	due               moments
	count             int // of moments
	guest, management *apiserver.Server
	process           *process
	before            *process // the one that it replaces, as a Deployment does: both run for a while
	leaving           string   // how the operator leaves the cluster: by a teardown, a release, or "" for not at all
	left              bool     // it has said that it is done
	foreign           operator.ForeignRule
	fromHosted        bool // settings come from the HostedControlPlane
	fromSecrets       bool // what nodes start with comes from Secrets
	settings          hostedSettings
	denied            error // why the policy cannot be read at the moment; nil if it can
	healed            bool
	faulty            float64 // how likely a call fails
	slow              time.Duration
	collects          bool            // Kubernetes' garbage collector works
	acting            bool            // the process is writing
	depth             int             // of requests that are under way
	closed, undefined map[string]bool // kinds: their definition is going, or gone
	problem           error
	story             []string
	surroundings
}

// moment is something that happens at a time; of two at one time the first one noted comes first.
type moment struct {
	at     time.Time
	number int
	do     func()
}

type moments []moment

func (m moments) Len() int { return len(m) }

func (m moments) Less(i, j int) bool {
	if !m[i].at.Equal(m[j].at) {
		return m[i].at.Before(m[j].at)
	}
	return m[i].number < m[j].number
}

func (m moments) Swap(i, j int) { m[i], m[j] = m[j], m[i] }

func (m *moments) Push(x any) { *m = append(*m, x.(moment)) }

func (m *moments) Pop() any {
	last := (*m)[len(*m)-1]
	*m = (*m)[:len(*m)-1]
	return last
}

func (w *world) after(d time.Duration, do func()) {
	w.count++
	heap.Push(&w.due, moment{w.now.Add(d), w.count, do})
}

// run lets time pass, or stops at the first problem.
func (w *world) run(d time.Duration) {
	end := w.now.Add(d)
	for w.problem == nil && len(w.due) > 0 && !w.due[0].at.After(end) {
		next := heap.Pop(&w.due).(moment)
		w.now = next.at
		next.do()
	}
	if end.After(w.now) { // else a request took longer
		w.now = end
	}
}

// interleave lets other things happen while a request is under way: steps of other controllers, events, users.
func (w *world) interleave() {
	if w.healed || w.depth > 3 || w.dice.IntN(4) > 0 {
		return
	}
	w.depth++
	acting := w.acting
	w.acting = false
	w.run(w.between(0, w.slow))
	w.acting = acting
	w.depth--
}

func (w *world) fail(format string, args ...any) {
	if w.problem == nil {
		w.problem = fmt.Errorf(format, args...)
	}
}

func (w *world) tell(format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf("%9.3f  %s", w.now.Sub(began).Seconds(), fmt.Sprintf(format, args...)))
}

// began is when virtual time begins.
var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// surroundings are what all worlds share.
type surroundings struct {
	scheme   *runtime.Scheme
	rights   rights
	userData string // path of the file with what nodes start with
}

func newWorld(seed uint64, shared surroundings) *world {
	w := &world{surroundings: shared, dice: rand.New(rand.NewPCG(seed, 1)), now: began,
		closed: map[string]bool{}, undefined: map[string]bool{}}
	kinds := apiserver.NewKinds()
	server := func(stream uint64) *apiserver.Server {
		return apiserver.New(apiserver.Config{Kinds: kinds, Now: func() time.Time { return w.now },
			Rand: rand.New(rand.NewPCG(seed, stream))})
	}
	w.guest, w.management = server(2), server(3)
	w.guest.Observe(func(e apiserver.Event) {
		w.process.hear(e)
		w.before.hear(e)
		w.checkEvent(e)
		w.collect(e)
		w.karpenter(e)
	})
	w.management.Observe(func(apiserver.Event) {
		w.process.hearOfPolicy()
		w.before.hearOfPolicy()
	})
	w.faulty = []float64{0, 0.01, 0.05, 0.2}[w.dice.IntN(4)]
	w.slow = []time.Duration{time.Millisecond, 100 * time.Millisecond, 3 * time.Second}[w.dice.IntN(3)]
	w.collects = w.dice.IntN(2) == 0
	w.fromHosted = w.dice.IntN(3) == 0
	w.fromSecrets = w.dice.IntN(3) == 0
	w.foreign = pick(w, operator.ForeignQuarantine, operator.ForeignReport, operator.ForeignDelete)
	w.process, w.before = &process{world: w, dead: true}, &process{world: w, dead: true}
	return w
}

// process is one joiner-operator.
type process struct {
	world       *world
	dead        bool
	cache       *apiserver.Cache
	deps        operatorDeps
	of          map[string]kube.Controller
	watches     map[string][]heard // by kind
	shown       map[string]time.Time
	lost        map[string]uint64 // by kind: events up to this version were lost with their watch
	wakes       map[wake]time.Time
	failed      map[wake]int
	busy        map[wake]bool  // a step is under way
	working     map[string]int // how many steps of a controller are
	beganPaused bool           // the innermost step began in a pause
	feed        *policyFeed
	hosted      *hostedFeed // nil without a HostedControlPlane
	fed         time.Time
}

// heard is a watch of a controller.
type heard struct {
	controller string
	watch      kube.Watch
}

type wake struct {
	controller string
	request    reconcile.Request
}

// start begins a process anew, as after a crash.
func (w *world) start() {
	if w.left {
		return
	}
	w.process.dead = true
	if len(w.undefined) > 0 { // informers wait for what they list
		w.after(time.Second, w.start)
		return
	}
	w.begin()
}

func (w *world) begin() {
	scheme := w.scheme
	p := &process{world: w, cache: w.guest.NewCache(nil), of: map[string]kube.Controller{},
		watches: map[string][]heard{}, shown: map[string]time.Time{}, lost: map[string]uint64{},
		wakes: map[wake]time.Time{}, failed: map[wake]int{}, busy: map[wake]bool{},
		working: map[string]int{}}
	w.process = p
	now := func() time.Time { return w.now }
	config := awsOperator()
	config.UserDataSecrets, config.AMIs, config.UserDataFile = w.fromSecrets, nil, ""
	if !w.fromSecrets {
		config.AMIs, config.UserDataFile = []string{"ami-1"}, w.userData
	}
	if w.fromHosted {
		config.InfraFrom, config.InfraID, config.InstanceProfile = InfraFromHosted, "", ""
	}
	set := operator.NewMetrics(prometheus.NewRegistry())
	p.deps = operatorDeps{
		foreign: w.foreign, teardown: w.leaving == teardown, release: w.leaving == release, done: p.done,
		aws: true, hosted: w.fromHosted, infraID: config.InfraID,
		profile:    config.InstanceProfile,
		guest:      operator.GuestClient{Client: w.guest.NewClient(scheme, p.toGuest, p.cache)},
		live:       w.guest.NewClient(scheme, p.toGuest, nil),
		management: operator.ManagementClientOf(w.management.NewClient(scheme, p.send, nil), config.Namespace),
		board:      operator.NewBoard(), metrics: set, bells: p, now: now, log: logr.Discard(),
		events: event.NewDeduplicated(func(client.Object, event.Kind, string, string) {}, now),
	}
	if err := p.deps.divide(config); err != nil {
		w.fail("%w", err)
		return
	}
	p.deps.board.OnVerdict(p.deps.verdictReached)
	p.feed = &policyFeed{client: p.deps.management, board: p.deps.board, changed: p.deps.policyRead, metrics: set,
		now: now, log: logr.Discard()}
	controllers := p.deps.controllers()
	for _, c := range controllers {
		p.of[c.Name] = c
		for _, watch := range c.Watches {
			kind := serve.KindOf(watch.Object)
			for _, verb := range []string{"list", "watch"} {
				w.checkRights(apiserver.Call{Verb: verb, Object: watch.Object})
			}
			p.watches[kind] = append(p.watches[kind], heard{c.Name, watch})
		}
	}
	for kind := range p.watches {
		p.cache.Begin(kind)
	}
	for _, c := range controllers {
		if c.Start {
			p.Ring(c.Name, kube.Singleton(), 0)
		}
	}
	if w.fromHosted {
		p.followHosted(config)
	}
	for _, kind := range slices.Sorted(maps.Keys(p.watches)) { // what the cache has at the start
		p.cache.All(p.watches[kind][0].watch.Object, func(o client.Object) { p.tellWatches(kind, nil, o) })
	}
	if w.leaving != release {
		p.read()
	}
}

// done ends a process that has left the cluster.
func (p *process) done() {
	p.world.tell("the process is done")
	p.world.left, p.dead = true, true
}

// toGuest is the transport of requests to the guest.
func (p *process) toGuest(ctx context.Context, call apiserver.Call) error {
	if call.Write && !p.dead {
		p.checkPause(call)
	}
	return p.send(ctx, call)
}

// send is the transport of a process's requests: some fail, get no answer, or are the last that it does.
func (p *process) send(_ context.Context, call apiserver.Call) error {
	w := p.world
	if p.dead {
		return errors.New("this process is dead")
	}
	w.checkRights(call)
	if w.interleave(); p.dead {
		return errors.New("this process is dead")
	}
	if err := w.unserved(call.Verb, serve.KindOf(call.Object)); err != nil {
		return err
	}
	if call.Write {
		w.acting = true
		defer func() { w.acting = false }()
	}
	if w.healed || w.dice.Float64() >= w.faulty {
		return call.Do()
	}
	name := fmt.Sprintf("%s %s %s", call.Verb, serve.KindOf(call.Object), call.Key.Name)
	unavailable := apierrors.NewServiceUnavailable("the simulation says so")
	switch w.dice.IntN(5) {
	case 0, 1:
		w.tell("%s: refused", name)
		return unavailable
	case 2:
		err := call.Do()
		w.tell("%s: answer lost (%v)", name, err)
		return unavailable
	case 3:
		w.tell("%s: dies before", name)
		p.die()
		return unavailable
	default:
		err := call.Do()
		w.tell("%s: dies after (%v)", name, err)
		p.die()
		return unavailable
	}
}

func (p *process) die() {
	p.dead = true
	if w := p.world; p == w.process && !w.left {
		w.after(w.between(0, 5*time.Second), w.start)
	}
}

func (w *world) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.dice.Float64()*float64(b-a))
}

func (p *process) tellWatches(kind string, old, fresh client.Object) {
	for _, each := range p.watches[kind] {
		for _, request := range each.watch.Heard(context.Background(), old, fresh) {
			p.Ring(each.controller, request, each.watch.After)
		}
	}
}

// Ring wakes a controller, as the queue of a process does: a request that waits already comes at the earlier time.
func (p *process) Ring(name string, request reconcile.Request, after time.Duration) {
	if _, known := p.of[name]; !known {
		return
	}
	w, key := p.world, wake{name, request}
	at := w.now.Add(after)
	if known, waits := p.wakes[key]; waits && !known.After(at) {
		return
	}
	p.wakes[key] = at
	w.after(after, func() {
		if p.dead || !p.wakes[key].Equal(at) {
			return
		}
		delete(p.wakes, key)
		if p.busy[key] || p.working[name] == p.of[name].Workers {
			p.Ring(name, request, time.Millisecond)
			return
		}
		p.step(key)
	})
}

// step calls a controller, and again after the time that it asks for, or after a failure.
func (p *process) step(key wake) {
	p.busy[key] = true
	p.working[key.controller]++
	outer := p.beganPaused
	p.beganPaused = p.deps.board.Paused(p.world.now)
	result, err := p.of[key.controller].Reconciler.Reconcile(context.Background(), key.request)
	delete(p.busy, key)
	p.working[key.controller]--
	p.beganPaused = outer
	switch {
	case p.dead:
	case err != nil:
		p.world.tell("%s %s: %v", key.controller, key.request.Name, err)
		p.Ring(key.controller, key.request, min(10*time.Second, 100*time.Millisecond<<min(p.failed[key], 10)))
		p.failed[key]++
	default:
		delete(p.failed, key)
		if result.RequeueAfter > 0 {
			p.Ring(key.controller, key.request, result.RequeueAfter)
		}
	}
}

// hearOfPolicy shows the process the policy as it is some time later, as its watch does.
func (p *process) hearOfPolicy() {
	if p.dead || p.feed == nil {
		return
	}
	w := p.world
	at := w.now.Add(w.lag())
	if at.Before(p.fed) {
		at = p.fed
	}
	p.fed = at
	w.after(at.Sub(w.now), func() {
		if !p.dead && w.denied == nil {
			p.feed.take(context.Background(), operator.Answer{Policy: w.policy()})
		}
	})
}

// read reads the policy, and again after a while.
func (p *process) read() {
	if p.dead {
		return
	}
	w, again := p.world, rereadAfter
	answer := operator.Answer{Policy: w.policy()}
	if w.denied != nil {
		answer, again = operator.Answer{Err: w.denied}, retryAfter
	}
	p.feed.take(context.Background(), answer)
	w.after(again, p.read)
}

func (w *world) policy() *hypershiftv1beta1.AutoNodePolicy {
	o := w.management.Peek(&hypershiftv1beta1.AutoNodePolicy{}, policyKey())
	if o == nil {
		return nil
	}
	return o.(*hypershiftv1beta1.AutoNodePolicy).DeepCopy()
}

func policyKey() client.ObjectKey {
	return client.ObjectKey{Namespace: awsOperator().Namespace, Name: operator.PolicyName}
}

// errDenied is the answer of a management cluster whose Role is gone.
func errDenied() error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "autonodepolicies"}, "", errors.New("no role"))
}
