package sim

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine"
)

// Generate makes the script of a seed: a cluster, its users and a mix of faults, all drawn at random.
func Generate(seed uint64) Script {
	d := newDice(seed, "script")
	s := Script{Seed: seed, Faults: map[string]Fault{}, Mix: lateMix(seed, drawMix(&d)),
		Heal: d.between(4*time.Minute, 12*time.Minute)}
	s.Tolerance = engine.DefaultPriceTolerance
	if own := newDice(seed, "tolerance"); own.chance(0.25) {
		s.Tolerance = of(&own, 0, 20)
	}
	g := &generator{dice: &d, script: &s}
	g.pools()
	g.static()
	g.staticSoft()
	g.inherits()
	g.workloads()
	for range 4 + d.n(14) {
		g.event()
	}
	g.interruptions()
	g.foreign()
	g.tied()
	g.daemons()
	g.limits()
	g.belongs()
	g.meddling()
	g.habits()
	g.guards()
	g.relists()
	g.buffers()
	g.keeps()
	g.table()
	g.sickness()
	g.ailments()
	g.commitments()
	g.attachments()
	g.reservations()
	g.spotPrices()
	sortActions(s.Actions)
	return s
}

// drawMix first draws which faults occur at all, and then how often. If every run had every fault at a medium rate,
// rare combinations would hardly ever occur.
func drawMix(d *dice) Mix {
	rate := func(most float64) float64 {
		if d.chance(0.5) {
			return 0
		}
		return most * of(d, 0.1, 0.4, 1)
	}
	return Mix{
		Refuse: rate(0.1), Lose: rate(0.1), Conflict: rate(0.08), Slow: rate(0.05), Crash: rate(0.03),
		CloudRefuse: rate(0.2), CloudLose: rate(0.15), Stall: rate(0.05),
		StallMost: of(d, 3*time.Second, 20*time.Second, 90*time.Second),
		NeverJoin: rate(0.2), BootMost: of(d, 5*time.Second, 40*time.Second, 3*time.Minute),
		EndMost: of(d, 0, 10*time.Second, time.Minute), ListLagMost: of(d, 0, 2*time.Second, 10*time.Second),
	}
}

type generator struct {
	dice   *dice
	script *Script
	names  []string // of pools
	apps   []string
	hands  int
}

func (g *generator) add(at time.Duration, verb string, args ...string) {
	g.script.Actions = append(g.script.Actions, Action{At: at, Verb: verb, Args: args})
}

func (g *generator) pools() {
	d := g.dice
	for i := range 1 + d.n(2) {
		name := string(rune('a' + i))
		args := []string{name, "after=" + of(d, "0s", "30s", "2m"), "budget=" + of(d, "1", "2", "50%", "100%", "10")}
		if d.chance(0.6) {
			args = append(args, fmt.Sprintf("hard=%d", 1+d.n(5)))
		}
		if d.chance(0.25) {
			args = append(args, fmt.Sprintf("soft=%d", 1+d.n(6)))
		}
		if d.chance(0.2) {
			args = append(args, "grace="+of(d, "30s", "2m"))
		}
		if d.chance(0.15) {
			args = append(args, "expire="+of(d, "3m", "10m"))
		}
		args = append(args, fmt.Sprintf("weight=%d", 1+d.n(3)))
		// Own dice, so that scripts of other seeds do not change.
		own := newDice(g.script.Seed, "policy", name)
		args = append(args, "policy="+of(&own, "WhenEmpty", "WhenEmptyOrUnderutilized"))
		if own.chance(0.5) {
			args = append(args, "graceful")
		}
		for range own.n(3) {
			g.add(own.between(20*time.Second, g.script.Heal-time.Second), "drift", name)
		}
		if own = newDice(g.script.Seed, "overhead", name); own.chance(0.25) {
			args = append(args, "overhead="+of(&own, "0.02", "0.2", "5"))
		}
		if own = newDice(g.script.Seed, "first", name); own.chance(0.4) {
			args = append(args, "terminate-first")
		}
		g.names = append(g.names, name)
		g.add(0, "pool", args...)
	}
}

// static adds a static pool to some scripts. It has its own dice, so that the rest of the scripts does not change.
func (g *generator) static() {
	d := newDice(g.script.Seed, "static")
	if !d.chance(0.3) {
		return
	}
	const name = "s"
	args := []string{name, fmt.Sprintf("replicas=%d", d.n(4)), "budget=" + of(&d, "1", "2", "50%")}
	if d.chance(0.5) {
		args = append(args, fmt.Sprintf("hard=%d", 1+d.n(5)))
	}
	g.add(0, "pool", args...)
	at := func() time.Duration { return d.between(20*time.Second, g.script.Heal-time.Second) }
	for range d.n(3) {
		g.add(at(), "drift", name)
	}
	for range d.n(3) {
		g.add(at(), "replicas", name, fmt.Sprint(d.n(5)))
	}
	if d.chance(0.3) {
		g.add(at(), "limit", name, "hard="+of(&d, "1", "2", "4", "none"))
	}
}

func (g *generator) workloads() {
	d := g.dice
	for i := range 1 + d.n(3) {
		name := fmt.Sprintf("app%d", i)
		args := []string{name, fmt.Sprintf("replicas=%d", d.n(6)), "cpu=" + of(d, "100m", "900m", "1500m", "3"),
			"mem=" + of(d, "256Mi", "1Gi", "3Gi")}
		if d.chance(0.3) {
			args = append(args, "alone")
		}
		if d.chance(0.1) {
			args = append(args, "protect")
		}
		if d.chance(0.3) {
			args = append(args, fmt.Sprintf("pdb=%d", d.n(3)))
		}
		if d.chance(0.3) {
			args = append(args, "grace="+of(d, "0s", "5s", "60s"))
		}
		own := newDice(g.script.Seed, "disk", name) // so that other seeds do not change
		if own.chance(0.25) {
			args = append(args, "disk="+of(&own, "late", "late", "zone-a", "zone-b"))
		}
		_, disk := arguments(args).value("disk")
		if own = newDice(g.script.Seed, "clings", name); own.chance(0.1) && !disk {
			args = append(args, "clings")
		}
		if own = newDice(g.script.Seed, "priority", name); own.chance(0.15) {
			args = append(args, "priority="+of(&own, "10", "1000"))
		}
		g.apps = append(g.apps, name)
		g.add(d.between(0, 20*time.Second), "workload", args...)
	}
}

// event adds an action of users, clouds or machines.
func (g *generator) event() {
	d := g.dice
	at := d.between(2*time.Second, g.script.Heal-time.Second)
	switch d.n(23) {
	case 0, 1, 2, 3, 4:
		g.add(at, "scale", of(d, g.apps...), fmt.Sprint(d.n(8)))
	case 5, 6, 7:
		g.add(at, "limit", of(d, g.names...), "hard="+of(d, "0", "1", "2", "3", "4", "6", "none"))
	case 8:
		g.add(at, "limit", of(d, g.names...), "soft="+of(d, "0", "1", "2", "4", "none"))
	case 9:
		g.hands++
		g.add(at, "claim", fmt.Sprintf("hand%d", g.hands), "pool="+of(d, g.names...))
	case 10, 11:
		g.add(at, "delete-claim", fmt.Sprint(d.n(9)))
	case 12:
		g.add(at, "delete-node", fmt.Sprint(d.n(9)))
	case 13:
		g.add(at, "hold", of(d, "claim", "node"), fmt.Sprint(d.n(9)))
	case 14:
		g.add(at, "vanish", fmt.Sprint(d.n(9)))
	case 15:
		g.add(at, "run-out", fmt.Sprint(d.n(16)))
		g.add(at+d.between(10*time.Second, 3*time.Minute), "run-out", "0")
	case 16:
		g.add(at, "crash")
	case 17:
		g.add(at, "pause", d.between(5*time.Second, 2*time.Minute).String())
	case 18:
		g.add(at, "second", d.between(5*time.Second, 3*time.Minute).String())
	case 19, 20, 21:
		g.clash(at)
	case 22:
		g.add(at, "jump", of(d, "-20s", "-2s", "3s", "15s", "40s"))
	}
}

// interruptions adds notices of the cloud. It has its own dice, so that scripts of other seeds do not change.
func (g *generator) interruptions() {
	d := newDice(g.script.Seed, "interruptions")
	if d.chance(0.7) {
		return
	}
	for range 1 + d.n(3) {
		g.add(d.between(20*time.Second, g.script.Heal-time.Second), "interrupt", fmt.Sprint(d.n(9)),
			"notice="+of(&d, "5s", "30s", "2m"))
	}
}

// clash adds the hardest case for limits: two leaders while users change limits, and pods and claims come and go.
func (g *generator) clash(at time.Duration) {
	d := g.dice
	soon := func() time.Duration { return at + d.between(0, 20*time.Second) }
	g.add(at, "second", d.between(20*time.Second, 2*time.Minute).String())
	g.add(soon(), "limit", of(d, g.names...), "hard="+of(d, "1", "2", "3", "4"))
	for range 2 + d.n(3) {
		g.add(soon(), "scale", of(d, g.apps...), fmt.Sprint(d.n(8)))
	}
	if d.chance(0.5) {
		g.add(soon(), "delete-claim", fmt.Sprint(d.n(9)))
	}
}

func sortActions(actions []Action) {
	slices.SortStableFunc(actions, func(a, b Action) int { return cmp.Compare(a.At, b.At) })
}
