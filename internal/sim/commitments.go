package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	engine "github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/sim/cloud"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// This file gives worlds commitments, and pools a spot ratio (K-55). Users write and change the file of commitments,
// and each process reads it within half a minute. checks_commitments.go says what must hold.

const verbCommitment = "commitment"

// commitmentVerbs returns the script lines about commitments.
func commitmentVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{verbCommitment: (*World).commit}
}

// commitmentLine is a commitment as a script line states it.
type commitmentLine struct {
	types []string
	zone  string
	entry map[string]any // in the file
}

// commitmentOf parses a line: commitment NAME dollars=AMOUNT|instances=N [types=TYPE,TYPE] [zone=ZONE], or commitment
// NAME none, for which it returns nil.
func (w *World) commitmentOf(a arguments) *commitmentLine {
	if slices.Contains(a, "none") {
		return nil
	}
	line := &commitmentLine{entry: map[string]any{"name": a.first()}}
	var requirements []map[string]any
	need := func(key string, values ...string) {
		requirements = append(requirements, map[string]any{"key": key, "operator": "In", "values": values})
	}
	if text, stated := a.value("types"); stated {
		line.types = strings.Split(text, ",")
		need("node.kubernetes.io/instance-type", line.types...)
	}
	if line.zone, _ = a.value("zone"); line.zone != "" {
		need("topology.kubernetes.io/zone", line.zone)
	}
	line.entry["requirements"] = requirements
	if n := a.number("instances", 0); n > 0 {
		line.entry["instances"] = n
	} else if text, stated := a.value("dollars"); stated {
		var dollars float64
		if _, err := fmt.Sscan(text, &dollars); err == nil {
			line.entry["dollarsPerHour"] = dollars
		}
	}
	return line
}

// commitmentsNow returns the content of the file at this time, in the order of names.
func (w *World) commitmentsNow() ([]engine.Commitment, []*commitmentLine, error) {
	lines := map[string]*commitmentLine{}
	for _, action := range w.script.Actions {
		if action.Verb == verbCommitment && action.At <= w.now {
			a := w.localized(action.Args)
			lines[a.first()] = w.commitmentOf(a)
		}
	}
	entries := []map[string]any{} // an empty list means none; a file without a list is being written
	var used []*commitmentLine
	for _, name := range slices.Sorted(maps.Keys(lines)) {
		if line := lines[name]; line != nil {
			entries, used = append(entries, line.entry), append(used, line)
		}
	}
	text, err := yaml.Marshal(map[string]any{"commitments": entries})
	if err != nil {
		return nil, nil, err
	}
	list, err := translate.Commitments(text)
	return list, used, err
}

// commit is a user who changes the file. Each process reads it every half minute.
func (w *World) commit(arguments) error {
	if _, _, err := w.commitmentsNow(); err != nil {
		return err
	}
	for _, r := range w.replicas {
		d := newDice(w.script.Seed, verbCommitment, r.String(), w.now.String())
		w.after(d.between(0, 30*time.Second), r.readCommitments)
	}
	return nil
}

// readCommitments makes a process read the file, which may have changed again by then.
func (r *replica) readCommitments() {
	if r.dead || r.held(r.readCommitments) {
		return
	}
	r.knowCommitments()
	r.store.SetCommitments(r.committed[len(r.committed)-1].list)
}

// committedSpan is what a process knows of commitments, and since when.
type committedSpan struct {
	since time.Duration
	list  []engine.Commitment
	lines []*commitmentLine
}

// knowCommitments records what the process reads.
func (r *replica) knowCommitments() {
	list, lines, err := r.world.commitmentsNow()
	r.world.cluster.must(err)
	r.committed = append(r.committed, committedSpan{r.world.now, list, lines})
}

// committedSince returns what the process knew of the commitments at any time since then. That includes what it reads
// at that very moment: after a pause everything happens at once.
func (r *replica) committedSince(then time.Duration) []committedSpan {
	first := len(r.committed) - 1
	for first > 0 && r.committed[first].since >= then {
		first--
	}
	return r.committed[first:]
}

// commitments adds commitments and spot ratios to some scripts. It has its own dice, so that the rest of the scripts
// does not change.
func (g *generator) commitments() {
	d := newDice(g.script.Seed, "commitments")
	at := func() time.Duration {
		return of(&d, 0, 0, d.between(time.Second, g.script.Heal-time.Second))
	}
	if d.chance(0.25) {
		for i := range 1 + d.n(3) {
			name := fmt.Sprintf("c%d", i+1)
			for range 1 + d.n(2) {
				args := []string{name}
				if d.chance(0.6) {
					args = append(args, "types="+of(&d, "c.2", "m.2", "c.2,m.2", "m.4", "c.8,m.8"))
				}
				if d.chance(0.3) {
					args = append(args, "zone="+of(&d, "zone-a", "zone-b"))
				}
				args = append(args, of(&d, "dollars=0.1", "dollars=0.2", "dollars=0.4", "dollars=1", "instances=1",
					"instances=2"))
				g.add(at(), verbCommitment, args...)
			}
			if d.chance(0.2) {
				g.add(at(), verbCommitment, name, "none")
			}
		}
	}
	if d.chance(0.2) {
		for range 1 + d.n(3) {
			g.add(at(), verbKeep, of(&d, g.names...), "spot-ratio="+of(&d, "0%", "30%", "50%", "50%", "70%", "100%",
				"none", "half"))
		}
	}
}

// stand is a claim or a node, with the offerings that it may get.
type stand struct {
	uid  types.UID // of the claim
	pool string
	// the capacity types that it may have
	spot, demand, reserved bool
	types                  []string // the types that it may have; empty if nothing says
	zones                  []string
	going                  bool
}

// price returns the highest on-demand price of the types.
func (s *stand) price() (most float64) {
	for _, each := range s.types {
		most = max(most, cloud.FullPrice(each))
	}
	return most
}

// covers reports whether a commitment covers every possible type and zone (within), and whether it covers any (some).
func (l *commitmentLine) covers(s *stand) (within, some bool) {
	covered := func(allowed []string, has []string) (all, any bool) {
		if len(allowed) == 0 {
			return true, true
		}
		all = len(has) > 0
		for _, each := range has {
			in := slices.Contains(allowed, each)
			all, any = all && in, any || in
		}
		return all, any || len(has) == 0
	}
	zones := []string(nil)
	if l.zone != "" {
		zones = []string{l.zone}
	}
	allTypes, anyType := covered(l.types, s.types)
	allZones, anyZone := covered(zones, s.zones)
	return allTypes && allZones, anyType && anyZone
}

// takes returns how much of a commitment a node of that price uses.
func takes(c engine.Commitment, price float64) float64 {
	if c.Instances > 0 {
		return 1
	}
	return price
}

// amount returns the size of a commitment.
func amount(c engine.Commitment) float64 {
	if c.Instances > 0 {
		return float64(c.Instances)
	}
	return c.PerHour.Dollars()
}
