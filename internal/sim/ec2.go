package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
	ec2plug "github.com/joiner-autoscaler/joiner/internal/provider/ec2/plug"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok/plug"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
	"github.com/joiner-autoscaler/joiner/internal/sim/ec2cloud"
)

// This file simulates worlds with machines of EC2 ("cloud ec2"): the shipped provider with the SDK's clients, in front
// of the endpoint that stands for AWS. Requests to AWS are calls like all others: they can be slow, refused, lost, or
// the last ones before a crash. The provider batches calls and waits. Its clock is the world's, and only one thing
// runs at a time.

// ec2Cloud is the name of the cloud in scripts.
const ec2Cloud = "ec2"

// clouds is what worlds need of their cloud, apart from the provider.
type clouds interface {
	Machines() []*cloud.Machine
	Exists(*cloud.Machine) bool
	Vanish(*cloud.Machine)
	Interrupt(m *cloud.Machine, gone time.Time)
	// Reservations returns the capacity reservations, each with the number of places that no machine uses.
	Reservations() map[cloud.Reservation]int
}

// openCloud creates the cloud of the script.
func (w *World) openCloud() error {
	if w.script.Cloud == "" {
		offers := w.ground.offers
		if n := w.script.statedDisks(); n >= 0 {
			var err error
			if offers, err = w.ground.states[n](); err != nil {
				return err
			}
		}
		w.simulated = cloud.New(cloud.Config{
			Offers: offers, Now: w.clock, Fate: w.fate, Launched: w.launched, Ended: w.ended, Rebooted: w.rebooted,
			Class: func(name string) (*kwokv1alpha1.KWOKNodeClass, error) {
				var class kwokv1alpha1.KWOKNodeClass
				found := w.server.Peek(&class, client.ObjectKey{Name: name})
				if found == nil {
					return nil, notFound("KWOKNodeClass", name)
				}
				return found.(*kwokv1alpha1.KWOKNodeClass), nil
			},
		})
		w.cloud = w.simulated
		return nil
	}
	ground, err := w.ground.ec2()
	if err != nil {
		return err
	}
	w.account, err = ground.Open(ec2cloud.Config{
		Now: w.clock, Fate: w.fate, Launched: w.launched, Ended: w.ended, Seed: w.script.Seed,
		Warns: w.script.hasVerb("interrupt"), Reserves: w.script.hasVerb(verbReserve),
		Unknown: func(text string) { w.fail("simulation", "ec2test: %s", text) },
	})
	if err != nil {
		return err
	}
	w.cloud = w.account
	return w.account.SetWeather(ec2cloud.Fair())
}

// nodeClass returns the node class of the world's pools, as stored.
func (w *World) nodeClass() client.Object {
	if w.account != nil {
		return w.account.Class()
	}
	return &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: className}}
}

// classRef returns a reference to that node class.
func (w *World) classRef() *karpenterv1.NodeClassReference {
	if w.account != nil {
		return &karpenterv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.EC2NodeClassKind, Name: className}
	}
	return &karpenterv1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: "KWOKNodeClass", Name: className}
}

// middling returns a type with four cores.
func (w *World) middling() string {
	if w.account != nil {
		return "m5.xlarge"
	}
	return "m.4"
}

// localized replaces zones of scripts by the cloud's names.
func (w *World) localized(a arguments) arguments {
	if w.account == nil {
		return a
	}
	list := slices.Clone(a)
	for i, word := range list {
		list[i] = strings.Replace(word, "=zone-", "="+ec2cloud.Zone("zone-"), 1)
	}
	return list
}

// parts returns the provider of a replica, with its kinds and watches.
func (r *replica) parts(deps plugin.Deps) (plugin.Parts, error) {
	w := r.world
	if w.account == nil {
		return plugin.Parts{Provider: w.simulated.NewProvider(w.toCloud), Class: &kwokv1alpha1.KWOKNodeClass{},
			Notices: plug.Notices()}, nil
	}
	return w.account.Parts(ec2cloud.Process{Name: r.name, Clock: turns{r},
		Cluster: ec2plug.NewCluster(deps.Client, deps.Live), Send: w.toAWS}, deps)
}

// toAWS is the transport of a replica's AWS clients. A process may die at each call.
func (w *World) toAWS(_ context.Context, c ec2cloud.Call) error {
	w.checkInTime(c)
	return w.wait(&call{
		verb: c.Action, subject: c.Subject, cloud: true, write: true, machine: c.Makes, refuse: c.Refuse, lose: c.Lose,
		do: func() error { c.Do(); return nil },
	})
}

// turns is the clock of a replica's provider: waiting and starting happen in the world's order.
type turns struct{ replica *replica }

var _ timer.Scheduler = turns{}

// Now implements timer.Clock.
func (t turns) Now() time.Time { return t.replica.world.clock().Add(t.replica.skew) }

// AfterFunc implements timer.Clock.
func (t turns) AfterFunc(d time.Duration, f func()) (stop func()) {
	stopped := false
	t.replica.beside(max(0, d), func() bool { return stopped }, f)
	return func() { stopped = true }
}

// Go implements timer.Scheduler.
func (t turns) Go(f func()) { t.replica.beside(0, func() bool { return false }, f) }

// Await implements timer.Scheduler.
func (t turns) Await(ctx context.Context, done <-chan struct{}) error {
	if err := ctx.Err(); err != nil || closed(done) {
		return err
	}
	return t.replica.world.wait(&call{until: done})
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// beside runs code of a replica in the background of the running step, as part of the same controller.
func (r *replica) beside(after time.Duration, stopped func() bool, body func()) {
	w, by := r.world, r.world.running
	if by == nil {
		w.fail("simulation", "a callback was asked for outside of any step")
		return
	}
	line, request, since := by.line, by.request, by.since
	var start func()
	start = func() {
		if r.dead || r.held(start) || stopped() {
			return
		}
		p := &process{line: line, request: request, since: since, body: body, strand: w.idleStrand()}
		for _, waiting := range r.parked { // it may run for these, which looked at the world earlier
			p.since = min(p.since, waiting.process.since)
		}
		p.strand.process = p
		r.running[p] = len(r.running)
		w.step(p)
	}
	w.after(after, start)
}

// parked is a process that waits for another process of its replica.
type parked struct {
	process *process
	until   <-chan struct{}
}

// unpark resumes the processes whose wait is over.
func (r *replica) unpark() {
	w := r.world
	r.parked = slices.DeleteFunc(r.parked, func(p parked) bool {
		if p.process.dead {
			return true
		}
		if !closed(p.until) {
			return false
		}
		w.after(0, func() { w.answer(p.process) })
		return true
	})
}

// weather changes the faults of EC2: tokens=, late-share=, late-most=, rate=, vcpus=, room=, addresses=. Faults that
// are not named end. In other clouds it does nothing.
func (w *World) weather(a arguments) error {
	if w.account == nil {
		return nil
	}
	fair := ec2cloud.Fair()
	var problems []error
	number := func(key string, into any, none any) {
		text, stated := a.value(key)
		if !stated {
			return
		}
		if _, err := fmt.Sscan(text, into); err != nil {
			problems = append(problems, fmt.Errorf("%s is %q: want a value like %v", key, text, none))
		}
	}
	fair.Tokens, _ = a.value("tokens")
	fair.LateMost = a.span("late-most", 0)
	number("late-share", &fair.LateShare, 0.5)
	number("rate", &fair.Rate, 0.5)
	number("vcpus", &fair.VCPUs, 8)
	number("room", &fair.Room, 1)
	number("addresses", &fair.Addresses, 2)
	return errors.Join(append(problems, w.account.SetWeather(fair))...)
}

// Generators returns the script generators by cloud: "" or ec2.
func Generators() map[string]func(seed uint64) Script {
	return map[string]func(uint64) Script{"": Generate, ec2Cloud: GenerateEC2}
}

// GenerateEC2 makes the script of a seed in a world with EC2: the script of Generate, and faults of EC2 (E-38).
func GenerateEC2(seed uint64) Script {
	s := Generate(seed)
	s.Cloud = ec2Cloud
	g := &generator{script: &s}
	d := newDice(seed, "ec2")
	always := []string{"tokens=" + of(&d, "replay", "fleet-only", "mismatch", "ignore")}
	if d.chance(0.7) {
		always = append(always, "late-share="+of(&d, "0.2", "0.6", "1"), "late-most="+of(&d, "5s", "30s", "90s", "2m"))
	}
	g.add(0, "weather", always...)
	for range d.n(4) {
		at := d.between(10*time.Second, s.Heal-30*time.Second)
		worse := of(&d, "rate=0.2", "rate=0.5", "rate=2", "vcpus=2", "vcpus=6", "vcpus=12",
			"room=0", "room=1", "room=2", "addresses=0", "addresses=2")
		g.add(at, "weather", append(slices.Clone(always), worse)...)
		g.add(at+d.between(10*time.Second, 3*time.Minute), "weather", always...)
	}
	g.classes(newDice(seed, "classes"))
	sortActions(s.Actions)
	return s
}
