package sim

import (
	"context"
	"errors"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

// process is a running reconcile.
type process struct {
	line    *line
	request reconcile.Request
	since   time.Duration                    // when the step began
	sizes   map[string]int                   // initialized nodes by pool, as the replica knew them
	pools   map[string]*karpenterv1.NodePool // as the replica knew them
	useful  map[string]int64                 // by pool, nodes that stay, as the replica knew them
	stands  map[types.UID]*stand             // claims and nodes, as the replica knew them; nil if no check needs them
	creates int                              // NodeClaims that it sent to the API server
	created []*karpenterv1.NodeClaim         // those that landed
	strand  *strand
	dead    bool
	body    func() // background work of a step; nil for a step itself
	result  reconcile.Result
	err     error
}

// call is a call to the API server or the cloud for which a process waits.
type call struct {
	verb, subject string
	cloud, write  bool
	sent          time.Duration
	machine       bool // makes machines
	do            func() error
	refuse, lose  func(n int) error // the caller's error for these faults; nil for a common one
	until         <-chan struct{}   // the call only waits for this channel
	err           error
}

// died unwinds a reconcile whose process has crashed.
type died struct{}

// Fault is what may happen to a call.
type Fault string

// Faults of calls.
const (
	NoFault     Fault = ""
	Refused     Fault = "refused"      // does not land, and the caller gets an error
	Lost        Fault = "lost"         // lands, but the caller sees a timeout
	Conflicting Fault = "conflict"     // refused as if the object had just changed
	Slow        Fault = "slow"         // lands late
	CrashBefore Fault = "crash-before" // the process dies, and the call does not land
	CrashAfter  Fault = "crash-after"  // the call lands, the process dies
	Late        Fault = "late"         // the caller sees a timeout; the call lands long after that
	CrashLate   Fault = "crash-late"   // the process dies; the call lands long after that
)

// begin starts a reconcile.
func (w *World) begin(l *line, request reconcile.Request) {
	p := &process{line: l, request: request, strand: w.idleStrand()}
	p.strand.process = p
	l.replica.running[p] = len(l.replica.running)
	w.steps++
	w.beforeStep(p)
	w.step(p)
}

// step runs a process to its next call, or to its end.
func (w *World) step(p *process) {
	if p.dead {
		return
	}
	w.running = p
	c, _ := p.strand.next()
	w.running = nil
	r := p.line.replica
	defer r.unpark()
	switch {
	case c != nil && c.until != nil:
		r.parked = append(r.parked, parked{p, c.until})
		return
	case c != nil:
		w.send(p, c)
		return
	}
	w.strands = append(w.strands, p.strand)
	delete(r.running, p)
	if p.body != nil {
		return
	}
	w.afterStep(p)
	if p.err != nil && w.verbose() {
		w.tell("%s %s %s: %v", p.line.replica, p.line.Name, p.request.Name, p.err)
	}
	p.line.done(p.request, p.result, p.err)
}

// wait suspends the running process at a call until the answer arrives.
func (w *World) wait(c *call) error {
	p := w.running
	if p == nil {
		return errors.New("simulation: a call outside of any reconcile")
	}
	if p.dead || !p.strand.yield(c) {
		p.dead = true
		panic(died{})
	}
	w.running = p
	return c.err
}

// toServer is the transport of a replica's client.
func (w *World) toServer(_ context.Context, c apiserver.Call) error {
	subject := kindOf(c.Object) + " " + c.Key.Name
	if c.Part == apiserver.Status {
		subject += " status"
	}
	if _, is := c.Object.(*karpenterv1.NodeClaim); is && c.Verb == "create" && w.running != nil {
		w.running.creates++
	}
	return w.wait(&call{verb: c.Verb, subject: subject, write: c.Write, do: c.Do})
}

// toCloud is the transport of a replica's provider.
func (w *World) toCloud(_ context.Context, verb, subject string, do func() error) error {
	return w.wait(&call{verb: verb, subject: subject, cloud: true, write: verb == "launch" || verb == "terminate",
		do: do})
}

// send decides what happens to a call, and schedules it.
func (w *World) send(p *process, c *call) {
	c.sent = w.now
	occasion := p.line.replica.String() + " " + p.line.Name + " " + c.verb + " " + c.subject
	w.occasions[occasion]++
	occasion += " #" + strconv.Itoa(w.occasions[occasion])
	d := newDice(w.script.Seed, "call", occasion)
	way, back := d.between(time.Millisecond, 15*time.Millisecond), d.between(time.Millisecond, 15*time.Millisecond)
	if c.cloud {
		way, back = 10*way, 10*back
	}
	fault := w.faultOf(occasion, c, &d)
	if fault == Slow {
		way += d.between(time.Second, 40*time.Second)
	}
	answer := func() { w.answer(p) }
	w.after(way, func() {
		r := p.line.replica
		// the process died while the call was on its way
		if p.dead && (d.chance(0.5) || w.staysBehind(p, c, occasion)) {
			return
		}
		w.actor, w.landing, w.sent = p, c.verb, c.sent
		switch fault.kind() {
		case Refused:
			c.err = refusal(c, &d)
		case Conflicting:
			c.err = apierrors.NewConflict(schema.GroupResource{}, c.subject,
				errors.New("simulation: somebody was faster"))
		case CrashBefore:
		case Late, CrashLate:
			w.landLate(p, c, w.lateness(fault, occasion))
		default:
			c.err = c.do()
		}
		w.actor = nil
		w.note(r.String(), p.line.Name, c.verb, c.subject, string(fault), c.err)
		w.countCall(p, c)
		switch {
		case p.dead:
			return
		case fault == CrashBefore || fault == CrashAfter || fault.kind() == CrashLate:
			w.crash(r)
			return
		case fault == Lost || fault.kind() == Late:
			c.err = timeout(c, &d)
		}
		w.after(back, answer)
	})
}

// answer delivers an answer to its process, as soon as that is not paused.
func (w *World) answer(p *process) {
	if !p.dead && !p.line.replica.held(func() { w.answer(p) }) {
		w.step(p)
	}
}

// faultOf decides the fault of a call: as the script states it, or else at random.
func (w *World) faultOf(occasion string, c *call, d *dice) Fault {
	if fault, stated := w.script.stated(occasion); stated && !w.healed {
		return fault
	}
	if w.healed || w.script.Calm {
		return NoFault
	}
	mix, fault := w.script.Mix, NoFault
	refuse, lose := mix.Refuse, mix.Lose
	if c.cloud {
		refuse, lose = mix.CloudRefuse, mix.CloudLose
	}
	roll := float64(d.next()>>11) / (1 << 53)
	for _, each := range []struct {
		fault Fault
		rate  float64
		apt   bool
	}{
		{Refused, refuse, true}, {Lost, lose, true}, {Slow, mix.Slow, true}, {Conflicting, mix.Conflict, !c.cloud &&
			(c.verb == "patch" || c.verb == "update")},
		{CrashBefore, mix.Crash, c.write}, {CrashAfter, mix.Crash, c.write},
		{Late, mix.Late, c.makes()}, {CrashLate, mix.Late / 2, c.makes()},
	} {
		if roll < each.rate && each.apt {
			fault = each.fault
			break
		}
		roll -= each.rate
		if roll < 0 {
			break
		}
	}
	if fault != NoFault {
		w.faults = append(w.faults, CallFault{occasion, fault})
	}
	return fault
}

// refusal returns an error for a call that had no effect.
func refusal(c *call, d *dice) error {
	if c.refuse != nil {
		return c.refuse(d.n(60))
	}
	if c.cloud {
		return errors.New("RequestLimitExceeded: simulation")
	}
	return of[error](d, apierrors.NewTooManyRequests("simulation: too busy", 1),
		apierrors.NewServiceUnavailable("simulation"), errors.New("simulation: connection refused"))
}

// timeout returns an error for a call that may have had an effect.
func timeout(c *call, d *dice) error {
	if c.lose != nil {
		return c.lose(d.n(60))
	}
	if c.cloud {
		return errors.New("simulation: the cloud did not answer in time")
	}
	return of[error](d, apierrors.NewTimeoutError("simulation", 1),
		apierrors.NewInternalError(errors.New("simulation: etcd leader changed")), errors.New("simulation: EOF"))
}
