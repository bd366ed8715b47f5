package engine_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// TestScripts runs every script below testdata. Rewrite them with `go test ./internal/engine -rewrite`; the diff is
// the review, and is committed only when you can explain it.
func TestScripts(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"provision", "topology", "limits", "buffers", "disrupt", "why"} {
		datadriven.Walk(t, "testdata/"+dir, func(t *testing.T, path string) {
			datadriven.RunTest(t, path, run)
		})
	}
}

// verb is a command of a script. takes are the names of its arguments.
type verb struct {
	takes string
	run   func(*testing.T, *datadriven.TestData, *cluster.Snapshot) string
}

// forTerms are the arguments that terms reads.
const forTerms = "now budget spot-to-spot min-percent passing min-saving turn again"

// verbs are the commands of scripts, by name.
func verbs() map[string]verb {
	type planner func(*cluster.Snapshot, engine.Terms) plan.Plan
	moving := func(make planner) verb {
		return verb{forTerms + " claims", func(t *testing.T, d *datadriven.TestData, s *cluster.Snapshot) string {
			p := make(s, terms(t, d))
			text := p.String()
			if d.HasArg("claims") {
				text += claims(p)
			}
			return enginetest.Shorten(text)
		}}
	}
	alone := func(make func(*cluster.Snapshot) plan.Plan) verb {
		return verb{"", func(_ *testing.T, _ *datadriven.TestData, s *cluster.Snapshot) string {
			return enginetest.Shorten(make(s).String())
		}}
	}
	return map[string]verb{
		"provision": {"claims", func(_ *testing.T, d *datadriven.TestData, s *cluster.Snapshot) string {
			result := engine.Provision(s)
			text := result.String()
			if d.HasArg("claims") {
				text += claims(result)
			}
			return enginetest.Shorten(text)
		}},
		"launches": alone(engine.Launches), "replicas": alone(engine.Replicas),
		"consolidate": moving(engine.Consolidate), "drift": moving(engine.Drift), "expire": moving(engine.Expire),
		"empty": {"now budget", func(t *testing.T, d *datadriven.TestData, s *cluster.Snapshot) string {
			return enginetest.Shorten(engine.Emptiness(s, terms(t, d).Now, budgets(t, d)).String())
		}},
		"trim": {"budget", func(t *testing.T, d *datadriven.TestData, s *cluster.Snapshot) string {
			return enginetest.Shorten(engine.Trim(s, budgets(t, d)).String())
		}},
		"judge": {forTerms + " marked asked untainted gone paused unlisted uncounted counted recovered since",
			judge},
		"repair":        {"now policy sick rebooted noreboot vetoed ending decided paused budget", repair},
		"replace-first": {forTerms + " node", replaceFirst},
		"reasons": {"", func(*testing.T, *datadriven.TestData, *cluster.Snapshot) string {
			return engine.Table()
		}},
		"part": {forTerms, func(t *testing.T, d *datadriven.TestData, s *cluster.Snapshot) string {
			return part(s, terms(t, d))
		}},
		"why": {forTerms + " all", func(t *testing.T, d *datadriven.TestData, s *cluster.Snapshot) string {
			return why(s, terms(t, d), d.HasArg("all"))
		}},
		"why-pool": {"", func(_ *testing.T, _ *datadriven.TestData, s *cluster.Snapshot) string { return whyPool(s) }},
	}
}

func run(t *testing.T, d *datadriven.TestData) string {
	snapshot, err := enginetest.Parse(d.Input)
	if err != nil {
		t.Fatalf("%s: %v", d.Pos, err)
	}
	v, known := verbs()[d.Cmd]
	if !known {
		t.Fatalf("%s: unknown verb %q; want one of %v", d.Pos, d.Cmd, slices.Sorted(maps.Keys(verbs())))
	}
	for _, arg := range d.CmdArgs {
		if takes := strings.Fields(v.takes); !slices.Contains(takes, arg.Key) {
			t.Fatalf("%s: %s means nothing to %s; want %v", d.Pos, arg.Key, d.Cmd, takes)
		}
	}
	return v.run(t, d, snapshot)
}

// judge prints what becomes of intents. marked=(NODE:REASON,...) are those that stand on claims, each without a reason
// that nobody wrote; asked are nodes of which somebody asks. untainted=(NODE,...) are marked by half, gone=(NODE,...)
// are deleted already, which the snapshot does not show; paused=WHY,
// unlisted=(POOL,...) and uncounted=(POOL,...) are what the process knows beside the snapshot.
// counted=(NODE:REASON,...) are marks as the API server has them, where the snapshot is late; without a reason there
// is none. recovered=(NODE:WHY,...) are unhealthy nodes that need no repair any more, since=(NODE:SECONDS,...) when
// marks were written.
func judge(t *testing.T, d *datadriven.TestData, s *cluster.Snapshot) string {
	t.Helper()
	docket := engine.Docket{Unlisted: map[string]bool{}, Counts: map[string]engine.Count{},
		Recovered: map[string]string{}}
	words := map[string][]string{}
	for _, arg := range d.CmdArgs {
		words[arg.Key] = append(words[arg.Key], arg.Vals...)
	}
	intentOf := func(word string) engine.Intent {
		name, reason, _ := strings.Cut(word, ":")
		for _, node := range s.Nodes {
			if node.ID() == name {
				return engine.Intent{Node: node, Reason: plan.DisruptionReason(reason)}
			}
		}
		d.Fatalf(t, "%s: there is no node or claim %s", word, name)
		return engine.Intent{}
	}
	for _, word := range words["marked"] {
		i := intentOf(word)
		if i.Marked, i.Tainted = true, !slices.Contains(words["untainted"], i.Node.ID()); !i.Node.Disrupting {
			d.Fatalf(t, "marked=%s: the node is not disrupting in the script", word)
		}
		i.Gone = slices.Contains(words["gone"], i.Node.ID())
		for _, word := range words["since"] {
			if late := intentOf(word); late.Node == i.Node {
				i.Since, _ = strconv.ParseInt(string(late.Reason), 10, 64)
			}
		}
		docket.Intents = append(docket.Intents, i)
	}
	standing := slices.Clone(docket.Intents)
	for _, word := range words["counted"] {
		late := intentOf(word)
		standing = slices.DeleteFunc(standing, func(i engine.Intent) bool { return i.Node == late.Node })
		standing = append(standing, late)
	}
	for _, word := range words["asked"] {
		docket.Intents = append(docket.Intents, intentOf(word))
	}
	docket.Paused = strings.ReplaceAll(strings.Join(words["paused"], ""), "_", " ")
	for _, word := range words["recovered"] {
		i := intentOf(word)
		docket.Recovered[i.Node.Claim] = strings.ReplaceAll(string(i.Reason), "_", " ")
	}
	for _, pool := range words["unlisted"] {
		docket.Unlisted[pool] = true
	}
	for _, node := range s.Nodes {
		if !slices.Contains(words["uncounted"], node.Pool) {
			count := engine.CountIn(s, node.Pool, standing)
			count.HeldBy = "somebody's word"
			docket.Counts[node.Pool] = count
		}
	}
	var b strings.Builder
	for _, v := range engine.Judge(s, terms(t, d), docket) {
		b.WriteString(v.String())
	}
	return enginetest.Shorten(b.String())
}

// part prints which of the marked nodes may go for the replacements that came.
func part(s *cluster.Snapshot, terms engine.Terms) string {
	var nodes, replacements []*cluster.Node
	for _, node := range s.Nodes {
		if node.Disrupting {
			nodes = append(nodes, node)
		} else if len(node.Replaces) > 0 {
			replacements = append(replacements, node)
		}
	}
	part, known := engine.Part(s, terms, nodes, replacements)
	var b strings.Builder
	for _, node := range nodes {
		switch {
		case !known:
			fmt.Fprintf(&b, "%s waits\n", node.Claim)
		case slices.Contains(part, node):
			fmt.Fprintf(&b, "%s goes\n", node.Claim)
		default:
			fmt.Fprintf(&b, "%s stays\n", node.Claim)
		}
	}
	return b.String()
}

// why prints how each node stands or, with all, everything that keeps it.
func why(s *cluster.Snapshot, terms engine.Terms, all bool) string {
	var b strings.Builder
	for _, node := range s.Nodes {
		list := []engine.Standing{engine.Why(s, terms, node)}
		if all {
			list = engine.WhyAll(s, terms, node)
		}
		for _, w := range list {
			fmt.Fprintf(&b, "%s: ", node.ID())
			if w.Wanted != "" {
				fmt.Fprintf(&b, "although %s, ", w.Wanted)
			}
			fmt.Fprintf(&b, "%s: %s", cmp.Or(string(w.Goes), string(w.Cause)), w.Text)
			if w.Until > 0 {
				fmt.Fprintf(&b, "; until %d", w.Until)
			}
			fmt.Fprintln(&b)
		}
	}
	return enginetest.Shorten(b.String())
}

// whyPool prints how each pool stands, and where the pods go for which it launches nothing.
func whyPool(s *cluster.Snapshot) string {
	var b strings.Builder
	for _, pool := range s.Pools {
		w := engine.WhyPool(s, pool)
		for _, l := range w.Launches {
			fmt.Fprintf(&b, "%s: launches %s\n", pool.Name, l)
		}
		for _, step := range w.Causes {
			fmt.Fprintf(&b, "%s: %s: %s\n", pool.Name, step.Cause, step.Detail)
		}
		for _, d := range w.Demand {
			switch {
			case d.Waits:
				fmt.Fprintf(&b, "  %d wait: %s\n", d.Pods, d.Refuses)
			case d.Pool != "":
				fmt.Fprintf(&b, "  %d go to pool %s\n", d.Pods, d.Pool)
			default:
				fmt.Fprintf(&b, "  %d go onto nodes that there are\n", d.Pods)
			}
		}
	}
	return enginetest.Shorten(b.String())
}

// terms reads now, budget, spot-to-spot, min-percent, turn, passing (pools) and, in dollars per hour, min-saving.
func terms(t *testing.T, d *datadriven.TestData) engine.Terms {
	t.Helper()
	terms := engine.Terms{Budgets: budgets(t, d), SpotToSpot: d.HasArg("spot-to-spot"), Again: d.HasArg("again")}
	for name, number := range map[string]any{"now": &terms.Now, "min-percent": &terms.MinSavingPercent,
		"turn": &terms.Turn} {
		if d.HasArg(name) {
			d.ScanArgs(t, name, number)
		}
	}
	for _, arg := range d.CmdArgs {
		if arg.Key == "passing" {
			terms.Passing = map[string]bool{}
			for _, pool := range arg.Vals {
				terms.Passing[pool] = true
			}
		}
	}
	if d.HasArg("min-saving") {
		var text string
		d.ScanArgs(t, "min-saving", &text)
		dollars, err := strconv.ParseFloat(text, 64)
		if err == nil {
			terms.MinSaving, err = resources.FromDollars(dollars)
		}
		if err != nil {
			d.Fatalf(t, "min-saving %s: %v", text, err)
		}
	}
	return terms
}

// claims prints what each launch puts on its NodeClaim beyond the summary line.
func claims(p plan.Plan) string {
	var b strings.Builder
	for _, l := range p.Launches {
		fmt.Fprintf(&b, "claim needs %s; requests %s; reserves %s", l.Requirements, p.Names.Format(l.Requests),
			p.Names.Format(l.Reserve))
		if len(l.Relaxed) > 0 {
			fmt.Fprintf(&b, "; relaxed to %v", l.Relaxed)
		}
		if len(l.Labels) > 0 {
			fmt.Fprintf(&b, "; labels %v", l.Labels)
		}
		fmt.Fprintln(&b)
	}
	return b.String()
}

// budgets reads budget=(pool:max[:reason]).
func budgets(t *testing.T, d *datadriven.TestData) map[string][]engine.Budget {
	all := map[string][]engine.Budget{}
	for _, arg := range d.CmdArgs {
		if arg.Key != "budget" {
			continue
		}
		for _, value := range arg.Vals {
			parts := strings.Split(value, ":")
			if len(parts) < 2 {
				d.Fatalf(t, "budget=%s: want NODEPOOL:MAX[:REASON]", value)
			}
			var b engine.Budget
			if _, err := fmt.Sscan(parts[1], &b.Max); err != nil {
				d.Fatalf(t, "budget %s: %v", value, err)
			}
			if len(parts) > 2 {
				b.Reasons = []plan.DisruptionReason{plan.DisruptionReason(parts[2])}
			}
			all[parts[0]] = append(all[parts[0]], b)
		}
	}
	return all
}
