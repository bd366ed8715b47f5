package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
	"github.com/joiner-autoscaler/joiner/internal/sim/ec2cloud"
)

// Ground is what all simulations of a process share; it never changes.
type Ground struct {
	offers *cloud.Offers
	states [mostDisks + 1]func() (*cloud.Offers, error) // by number of stated disks; made on demand
	kinds  *apiserver.Kinds
	scheme *runtime.Scheme
	ec2    func() (*ec2cloud.Ground, error) // made on demand
}

// NewGround makes a Ground.
func NewGround() (*Ground, error) {
	offers, err := cloud.NewOffers(cloud.NothingStated)
	if err != nil {
		return nil, err
	}
	scheme, err := apiserver.Scheme()
	if err != nil {
		return nil, err
	}
	ground := &Ground{offers: offers, kinds: apiserver.NewKinds(), scheme: scheme,
		ec2: sync.OnceValues(ec2cloud.NewGround)}
	for n := range ground.states {
		ground.states[n] = sync.OnceValues(func() (*cloud.Offers, error) { return cloud.NewOffers(n) })
	}
	return ground, nil
}

// Result is the result of a run.
type Result struct {
	// Violation says what did not hold; "" if everything did.
	Violation string
	// Check is the name of the check that failed, as in docs/invariants.md.
	Check string
	// At is the virtual time of the violation.
	At time.Duration
	// Trace is a hash of everything that happened.
	Trace uint64
	// Faults are the faults of calls that were drawn.
	Faults []CallFault
	// Steps, Deaths and Launches count reconciles, crashed processes and machines.
	Steps, Deaths, Launches int
	// Requests counts API requests, since the last line "count requests" of the script.
	Requests Requests
}

// occurrence is a planned event.
type occurrence struct {
	at  time.Duration
	seq uint64
	do  func()
}

// agenda is a heap by time, then by order of planning. (The library's heap passes every entry through an interface.)
type agenda []occurrence

func (a agenda) less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].seq < a[j].seq
}

func (a *agenda) push(o occurrence) {
	*a = append(*a, o)
	list := *a
	for i := len(list) - 1; i > 0; {
		parent := (i - 1) / 2
		if !list.less(i, parent) {
			return
		}
		list[i], list[parent] = list[parent], list[i]
		i = parent
	}
}

// pop removes the first entry.
func (a *agenda) pop() occurrence {
	list := *a
	first, last := list[0], len(list)-1
	list[0], list[last] = list[last], occurrence{}
	list = list[:last]
	*a = list
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if list.less(child, least) {
				least = child
			}
		}
		if least == i {
			return first
		}
		list[i], list[least] = list[least], list[i]
		i = least
	}
}

// World is one simulation.
type World struct {
	script Script
	ground *Ground
	scheme *runtime.Scheme
	server *apiserver.Server
	cloud  clouds
	out    io.Writer

	simulated *cloud.Cloud      // nil in worlds with another cloud
	reboots   int               // that have begun
	account   *ec2cloud.Account // nil in worlds without EC2

	now    time.Duration
	seq    uint64
	agenda agenda
	trace  uint64

	replicas []*replica
	born     int
	strands  []*strand     // idle
	running  *process      // the reconcile whose code runs now
	actor    *process      // the reconcile whose call lands now
	landing  string        // the verb of that call
	sent     time.Duration // when that call was sent
	healed   bool

	occasions map[string]int
	faults    []CallFault

	cluster cluster
	checks  checks

	steps, deaths int
	requests      Requests
	result        *Result // set at the first violation
}

// start returns the beginning of the virtual clock.
func start() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// Run runs a script to its end, or to the first violation. out gets a log of what happens; nil is no log.
func Run(ground *Ground, script Script, out io.Writer) Result {
	return newWorld(ground, script, out).run()
}

// newWorld returns the world of a script before anything happens.
func newWorld(ground *Ground, script Script, out io.Writer) *World {
	w := &World{script: script, ground: ground, scheme: ground.scheme, out: out, trace: fnvOffset,
		occasions: map[string]int{}, requests: Requests{}}
	w.cluster, w.checks = newCluster(w), newChecks(w)
	d := newDice(script.Seed, "server")
	w.server = apiserver.New(apiserver.Config{Kinds: ground.kinds, Now: w.clock, Rand: rand.New(&d)})
	w.server.Observe(w.observe)
	w.cluster.must(w.openCloud())
	w.prepare()
	for _, action := range script.Actions {
		w.at(action.At, func() { w.act(action) })
	}
	w.at(script.Heal, w.heal)
	return w
}

// run runs the simulation.
func (w *World) run() Result {
	w.launchReplica()
	for w.result == nil && len(w.agenda) > 0 {
		next := w.agenda.pop()
		w.now = next.at
		if w.quiet() {
			break
		}
		next.do()
	}
	if w.result == nil {
		w.checkLiveness()
	}
	for len(w.replicas) > 0 {
		w.end(w.replicas[0])
	}
	w.stopStrands()
	if w.result == nil {
		w.result = &Result{At: w.now}
	}
	w.result.Trace, w.result.Faults, w.result.Steps, w.result.Deaths, w.result.Launches = w.trace, w.faults, w.steps,
		w.deaths, w.checks.launches
	w.result.Requests = w.requests
	return *w.result
}

func (w *World) clock() time.Time { return start().Add(w.now) }

// at plans something; what would be in the past happens now.
func (w *World) at(when time.Duration, do func()) {
	w.seq++
	w.agenda.push(occurrence{max(when, w.now), w.seq, do})
}

func (w *World) after(d time.Duration, do func()) { w.at(w.now+d, do) }

func (w *World) verbose() bool { return w.out != nil }

// tell adds a line to the story.
func (w *World) tell(format string, args ...any) {
	if w.out != nil {
		// a failed write changes nothing
		_, _ = fmt.Fprintf(w.out, "%10.3f  %s\n", w.now.Seconds(), fmt.Sprintf(format, args...))
	}
}

// tellIf is tell for things that are expensive to format when there is no log.
func (w *World) tellIf(format string, args ...any) {
	if w.verbose() {
		w.tell(format, args...)
	}
}

// note adds a landed call to the trace.
func (w *World) note(who, controller, verb, subject, fault string, err error) {
	outcome := ""
	if err != nil {
		outcome = err.Error()
	}
	w.trace = hashText(w.trace, w.now.String(), who, controller, verb, subject, fault, outcome)
	if !w.verbose() {
		return
	}
	if fault != "" {
		fault = " [" + fault + "]"
	}
	if outcome != "" {
		outcome = ": " + outcome
	}
	w.tell("%s %s: %s %s%s%s", who, controller, verb, subject, fault, outcome)
}

// observe is called for each change on the server as it happens.
func (w *World) observe(e apiserver.Event) {
	w.trace = hashText(w.trace, string(e.Type), e.Kind(), e.Object.GetName(), e.Object.GetResourceVersion())
	for _, r := range w.replicas {
		r.deliver(e)
	}
	w.check(e)
	w.cluster.heard(e)
}

// fail ends the run: a check did not hold.
func (w *World) fail(check, format string, args ...any) {
	if w.result == nil {
		w.result = &Result{Check: check, Violation: fmt.Sprintf(format, args...), At: w.now}
		w.tell("VIOLATION of %s: %s", check, w.result.Violation)
		w.tellState()
	}
}
