package sim

import (
	"strings"
	"time"
)

// This file simulates requests that outlive their callers. A cancelled context, a timeout or a dead process does not
// stop a request that is on its way. It lands later, and nothing bounds when.

// lateMost is the longest delay of such a request, unless a script sets it.
const lateMost = 5 * time.Minute

// makes reports whether a call makes something that limits count: a claim or a machine.
func (c *call) makes() bool { return c.verb == "create" || c.verb == "launch" || c.machine }

// kind returns the fault without its time.
func (f Fault) kind() Fault {
	kind, _, _ := strings.Cut(string(f), " ")
	return Fault(kind)
}

// lateness returns the delay of a late call: as the fault says ("late 90s"), or drawn at random.
func (w *World) lateness(fault Fault, occasion string) time.Duration {
	if _, text, stated := strings.Cut(string(fault), " "); stated {
		if d, err := time.ParseDuration(text); err == nil {
			return d
		}
	}
	d := newDice(w.script.Seed, "late", occasion)
	most := w.script.Mix.LateMost
	if most == 0 {
		most = lateMost
	}
	return d.between(time.Second, most)
}

// landLate lands a call later, when nobody waits for it any more.
func (w *World) landLate(p *process, c *call, after time.Duration) {
	w.after(after, func() {
		w.actor, w.landing, w.sent = p, c.verb, c.sent
		err := c.do()
		w.actor = nil
		w.note(p.line.replica.String(), p.line.Name, c.verb, c.subject, "late", err)
	})
}

// staysBehind makes some calls of a dead process land much later than usual. They were on their way when it died.
func (w *World) staysBehind(p *process, c *call, occasion string) bool {
	d := newDice(w.script.Seed, "behind", occasion)
	if w.healed || w.script.Calm || !c.makes() || !d.chance(10*w.script.Mix.Late) {
		return false
	}
	w.landLate(p, c, w.lateness(NoFault, occasion))
	return true
}

// lateMix adds late requests to the mix of some seeds.
func lateMix(seed uint64, mix Mix) Mix {
	d := newDice(seed, "late")
	if d.chance(0.5) {
		mix.Late, mix.LateMost = of(&d, 0.01, 0.03, 0.08), of(&d, 30*time.Second, 2*time.Minute, 5*time.Minute)
	}
	return mix
}
