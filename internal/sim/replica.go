package sim

import (
	"cmp"
	"context"
	"reflect"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/joiner-autoscaler/joiner/internal/app/joiner"
	"github.com/joiner-autoscaler/joiner/internal/kube"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// replica is a process of the controller that believes to be the leader.
type replica struct {
	world    *World
	number   int
	name     string
	cache    *apiserver.Cache
	feed     *joiner.Feed
	lines    map[string]*line
	order    []*line
	watches  map[string][]watching // by kind
	fed      map[string]bool       // kinds that the feed wants
	unread   int                   // kinds not listed yet
	started  bool
	dead     bool
	paused   time.Duration            // it does nothing until then
	inbox    []func()                 // work for that time
	skew     time.Duration            // the error of its clock
	stalled  map[string]time.Duration // by kind: until when the watch delivers nothing
	lost     map[string]uint64        // by kind: the version up to which events were lost with a watch
	running  map[*process]int
	parked   []parked
	known    known
	skewMost time.Duration // the largest error that its clock ever had

	clusterLimit int64 // its flag, 0 for none
	store        *world.Store
	committed    []committedSpan // what it has known of commitments, the newest last
}

// watching is a watch of a controller.
type watching struct {
	kube.Watch
	line *line
}

// String returns its name in traces.
func (r *replica) String() string { return r.name }

func kindOf(object client.Object) string { return reflect.TypeOf(object).Elem().Name() }

// launchReplica starts a process. Its caches fill first; then its controllers start.
func (w *World) launchReplica() *replica {
	w.born++
	r := &replica{
		world: w, number: w.born, name: "r" + strconv.Itoa(w.born), lines: map[string]*line{},
		watches: map[string][]watching{}, fed: map[string]bool{},
		stalled: map[string]time.Duration{}, lost: map[string]uint64{}, running: map[*process]int{},
		known: newKnown(),
	}
	var indexes []apiserver.Index
	for _, index := range joiner.Indexes() {
		indexes = append(indexes, apiserver.Index(index))
	}
	r.cache = w.server.NewCache(indexes)
	cached := w.server.NewClient(w.scheme, w.toServer, r.cache)
	now := func() time.Time { return w.clock().Add(r.skew) }
	d := newDice(w.script.Seed, "each", r.String())
	settings := joiner.DefaultConfig().Settings()
	settings.NodeRepair = true
	settings.BuffersServed = w.script.hasBuffers() // otherwise nobody reads them, and seeds keep their meaning
	settings.TakeoverGrace = 0                     // users make NodeClaims from the first moment
	r.clusterLimit = w.clusterLimit()
	settings.MaxClaims = r.clusterLimit
	live := w.server.NewClient(w.scheme, w.toServer, nil)
	wake := func(controller string, request reconcile.Request, after time.Duration) {
		if l := r.lines[controller]; l != nil && r.started {
			l.add(request, after)
		}
	}
	tell := event.NewDeduplicated(func(about client.Object, _ event.Kind, reason, message string) {
		w.told(about, reason, message)
	}, now)
	registry := prometheus.NewRegistry()
	machines, err := r.parts(plugin.Deps{Client: cached, Live: live, Events: tell, Registerer: registry, Now: now,
		Wake: func(controller string) {
			wake(cmp.Or(controller, joiner.Interruption), kube.Singleton(), 0)
		}, Log: logr.Discard()})
	w.cluster.must(err)
	owned := fleet.New(machines.Provider)
	r.knowCommitments()
	r.store = world.New(world.Config{Now: now, Fleet: owned, PriceTolerance: w.script.Tolerance,
		Off: world.Off{Buffers: !w.script.hasBuffers()}, MaxClaims: settings.MaxClaims,
		Commitments: r.committed[0].list})
	parts := joiner.Compose(settings, joiner.Deps{
		Client: cached, Live: live, Store: r.store,
		Plugged: []plugin.Parts{machines}, Fleet: owned, Events: tell, Identity: r.name,
		Registerer: registry, Ready: func() bool { return r.unread == 0 }, Now: now,
		Ran: func() time.Duration { return w.now }, Log: logr.Discard(),
		Wake: wake, Planned: w.checkUnchanged,
		Each: func(n int, do func(int)) { // any order must do
			if n > 0 {
				for i, first := 0, d.n(n); i < n; i++ {
					do((first + i) % n)
				}
			}
		},
	})
	r.feed = parts.Feed
	for _, c := range parts.Controllers {
		l := newLine(r, c)
		r.lines[c.Name], r.order = l, append(r.order, l)
		for _, watch := range c.Watches {
			kind := kindOf(watch.Object)
			r.watches[kind] = append(r.watches[kind], watching{watch, l})
		}
	}
	w.replicas = append(w.replicas, r)
	r.readAll()
	return r
}

// readAll lists every kind, each at its own time, and starts the controllers when all are listed.
func (r *replica) readAll() {
	kinds := []string{}
	for _, object := range r.feed.Kinds() {
		r.fed[kindOf(object)] = true
		kinds = append(kinds, kindOf(object))
	}
	for _, object := range []client.Object{r.world.nodeClass(), &policyv1.PodDisruptionBudget{}, &corev1.ConfigMap{}} {
		kinds = append(kinds, kindOf(object))
	}
	r.unread = len(kinds)
	for _, kind := range kinds {
		d := newDice(r.world.script.Seed, "list", r.String(), kind)
		r.world.after(d.between(10*time.Millisecond, 500*time.Millisecond), func() { r.read(kind) })
	}
}

func (r *replica) read(kind string) {
	if r.dead || r.held(func() { r.read(kind) }) {
		return
	}
	for _, object := range r.cache.Begin(kind) {
		r.known.learn(object, r.world.now)
		if r.fed[kind] {
			r.feed.Apply(object)
		}
	}
	if r.unread--; r.unread > 0 {
		return
	}
	r.started = true
	r.world.tellIf("%s starts to work", r)
	for _, l := range r.order {
		if l.Start {
			l.add(reconcile.Request{}, 0)
		}
		for _, watch := range l.Watches {
			r.world.server.All(watch.Object, func(object client.Object) {
				if seen := r.cache.Peek(object, client.ObjectKeyFromObject(object)); seen != nil {
					r.wake(watching{watch, l}, nil, seen)
				}
			})
		}
	}
}

func (r *replica) wake(watch watching, old, fresh client.Object) {
	for _, request := range watch.Heard(context.Background(), old, fresh) {
		watch.line.add(request, watch.After)
	}
}

// held reports whether the replica is paused. If so, again is called when it resumes, after everything held before.
func (r *replica) held(again func()) bool {
	if r.paused <= r.world.now {
		return false
	}
	if len(r.inbox) == 0 {
		r.world.at(r.paused, r.resume)
	}
	r.inbox = append(r.inbox, again)
	return true
}

func (r *replica) resume() {
	if r.paused > r.world.now { // it was paused again in the meantime
		r.world.at(r.paused, r.resume)
		return
	}
	inbox := r.inbox
	r.inbox = nil
	for _, again := range inbox {
		again()
	}
}

// deliver brings an event to the replica, with the delay of its watch of the kind.
func (r *replica) deliver(e apiserver.Event) {
	kind := e.Kind()
	d := newDice(r.world.script.Seed, "watch", r.String(), kind, e.Object.GetNamespace(), e.Object.GetName(),
		e.Object.GetResourceVersion())
	lag := d.between(time.Millisecond, 30*time.Millisecond)
	if !r.world.healed && !r.world.script.Calm && d.chance(r.world.script.Mix.Stall) {
		lag = d.between(time.Second, r.world.script.Mix.StallMost)
	}
	due := max(r.stalled[kind], r.world.now+lag)
	r.stalled[kind] = due
	r.world.at(due, func() { r.receive(e) })
}

func (r *replica) receive(e apiserver.Event) {
	if r.dead || r.held(func() { r.receive(e) }) || r.misses(e) {
		return
	}
	old, fresh := r.cache.Apply(e)
	if !fresh {
		return
	}
	r.known.learn(e.Object, r.world.now)
	kind := e.Kind()
	if r.fed[kind] {
		if e.Type == apiserver.Deleted {
			r.feed.Remove(e.Object)
		} else {
			r.feed.Change(old, e.Object)
		}
	}
	if !r.started {
		return
	}
	for _, watch := range r.watches[kind] {
		switch {
		case e.Type == apiserver.Deleted:
			r.wake(watch, e.Object, nil)
		case old == nil:
			r.wake(watch, nil, e.Object)
		default:
			r.wake(watch, old, e.Object)
		}
	}
}

// crash ends a replica; the replica counts as dead before any stack unwinds. Another one starts.
func (w *World) crash(r *replica) {
	w.end(r)
	d := newDice(w.script.Seed, "restart", r.String())
	if len(w.replicas) == 0 {
		w.after(d.between(500*time.Millisecond, 20*time.Second), func() {
			if len(w.replicas) == 0 {
				w.launchReplica()
			}
		})
	}
}

// end kills a replica.
func (w *World) end(r *replica) {
	if r.dead {
		return
	}
	w.tellIf("%s dies", r)
	r.dead = true
	for i, each := range w.replicas {
		if each == r {
			w.replicas = append(w.replicas[:i:i], w.replicas[i+1:]...)
			break
		}
	}
	ended := make([]*process, 0, len(r.running))
	for p := range r.running {
		p.dead = true
		ended = append(ended, p)
	}
	for _, p := range ended { // in any order: none of their effects can be seen any more
		p.strand.stop()
	}
	w.deaths++
}
