package dump

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/engine/script"
)

// Script writes a dump in the language of docs/scripts.md: a script for each question with an answer. If the language
// cannot express something, refused names it, and there is no script. Names of claims with a node, UIDs and creation
// times are those that the language gives.
func Script(d Dump) (text string, refused []string, err error) {
	c, err := contentOf(d).copied()
	if err != nil {
		return "", nil, err
	}
	renameClaims(&c)
	p := &scripter{in: c, names: d.Snapshot.Names}
	body := p.body()
	back, err := script.Parse(body)
	if err == nil {
		refused, err = p.unlike(body)
	}
	if err != nil {
		return "", nil, fmt.Errorf("the script that was made cannot be read: %w", err)
	}
	if len(refused) > 0 {
		return "", refused, nil
	}
	return p.blocks(d, back, body)
}

// blocks returns a script for each question, and refuses those whose plan would differ.
func (p *scripter) blocks(d Dump, back *cluster.Snapshot, body string) (text string, refused []string, err error) {
	renamed := map[string]string{}
	for _, n := range d.Snapshot.Nodes {
		if n.Name != "" && n.Claim != "" {
			renamed[n.Claim] = n.Name + claimEnding
		}
	}
	var blocks []string
	for _, verb := range verbs(d.Terms) {
		was, err := Ask(verb.question, d.Snapshot, d.Terms)
		if err != nil {
			return "", nil, err
		}
		now, err := Ask(verb.question, back, d.Terms)
		if err != nil {
			return "", nil, err
		}
		if was.String() == nothing && now.String() == nothing {
			continue
		}
		if renamedLines(was.String(), renamed) != renamedLines(now.String(), nil) {
			refused = append(refused,
				fmt.Sprintf("what decides the plan %s: it is another one without UIDs, times of creation "+
					"and names of claims", verb.question))
			continue
		}
		blocks = append(blocks, verb.words+"\n"+body+"----\n"+script.Shorten(now.String()))
	}
	if len(refused) > 0 {
		return "", refused, nil
	}
	if len(blocks) == 0 {
		blocks = append(blocks, "provision\n"+body+"----\n"+nothing)
	}
	return strings.Join(blocks, "\n"), nil, nil
}

const nothing = "nothing to do\n"

// renamedLines returns the lines of a plan, sorted, with the names that claims have in scripts.
func renamedLines(text string, names map[string]string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' })
		for j, word := range words {
			bare := strings.TrimRight(word, ":")
			if now := names[bare]; now != "" {
				words[j] = now + strings.TrimPrefix(word, bare)
			}
		}
		lines[i] = strings.Join(words, " ")
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// verb is a question in the words of scripts.
type verb struct {
	question Question
	words    string
}

func verbs(t engine.Terms) []verb {
	budgets, saving := "", ""
	for _, pool := range slices.Sorted(maps.Keys(t.Budgets)) {
		for _, b := range t.Budgets[pool] {
			for _, reason := range b.Reasons {
				budgets += fmt.Sprintf(" budget=%s:%d:%s", pool, b.Max, reason)
			}
			if b.Reasons == nil {
				budgets += fmt.Sprintf(" budget=%s:%d", pool, b.Max)
			}
		}
	}
	if t.MinSavingPercent != 0 {
		saving += fmt.Sprintf(" min-percent=%d", t.MinSavingPercent)
	}
	if t.MinSaving != 0 {
		saving += " min-saving=" + t.MinSaving.String()
	}
	if len(t.Passing) > 0 {
		saving += " passing=(" + strings.Join(slices.Sorted(maps.Keys(t.Passing)), ",") + ")"
	}
	if t.Turn != 0 {
		saving += fmt.Sprintf(" turn=%d", t.Turn)
	}
	if t.Again {
		saving += " again"
	}
	if t.SpotToSpot {
		saving += " spot-to-spot"
	}
	now := fmt.Sprintf(" now=%d", t.Now)
	return []verb{{AskProvision, "provision"}, {AskReplicas, "replicas"}, {AskTrim, "trim" + budgets},
		{AskEmptiness, "empty" + now + budgets}, {AskExpire, "expire" + now + budgets + saving},
		{AskDrift, "drift" + now + budgets + saving}, {AskConsolidate, "consolidate" + now + budgets + saving}}
}

// claimEnding is what the language appends to a node's name for the name of its claim.
const claimEnding = "-claim"

// renameClaims gives claims with a node the names that the language gives them. It removes what the language does not
// say and no plan should depend on: UIDs, versions, creation times of pods, what launches were for.
func renameClaims(c *content) {
	names := map[string]string{}
	for i := range c.nodes {
		if n := &c.nodes[i]; n.Name != "" && n.Claim != "" {
			names[n.Claim] = n.Name + claimEnding
		}
	}
	rename := func(name *string) {
		if now := names[*name]; now != "" {
			*name = now
		}
	}
	for i := range c.nodes {
		n := &c.nodes[i]
		rename(&n.Claim)
		for j := range n.Replaces {
			rename(&n.Replaces[j])
		}
		n.ClaimUID, n.For, n.RegisteredAt = "", nil, 0
	}
	for i := range c.shapes {
		c.shapes[i].BlockedBy = ""
		for j := range c.shapes[i].Tolerations {
			if t := &c.shapes[i].Tolerations[j]; t.Operator == "" {
				t.Operator = cluster.TolerationEqual
			}
		}
		for j := range c.shapes[i].Pods {
			p := &c.shapes[i].Pods[j]
			p.UID, p.Created = "", 0
			rename(&p.Promised)
		}
	}
	for i := range c.pools {
		c.pools[i].UID = ""
		if len(c.pools[i].Limits.Limited) == 0 {
			c.pools[i].Used.Capacity = nil
		}
	}
	for i := range c.daemons { // redacted names have no namespace
		if d := &c.daemons[i]; !strings.Contains(d.Name, "/") {
			d.Name = c.shapes[d.Shape].Namespace + "/" + d.Name
		}
	}
	slices.SortStableFunc(c.daemons, func(a, b daemonRecord) int { return strings.Compare(a.Name, b.Name) })
	c.picture.Version, c.picture.Options, c.plans = 0, optionsRecord{}, nil
}

// scripter writes the lines of a script.
type scripter struct {
	in    content
	names resources.Names
}

// words joins the parts that are not empty.
func words(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(p string) bool { return p == "" }), " ") + "\n"
}

// attribute returns name=value, or "" for an empty value. Spaces separate words, so they are written as _.
func attribute(name, value string) string {
	if value == "" {
		return ""
	}
	return name + "=" + strings.ReplaceAll(value, " ", "_")
}

func flag(name string, set bool) string {
	if set {
		return name
	}
	return ""
}

func number[T ~int | ~int32 | ~int64](name string, n, otherwise T) string {
	if n == otherwise {
		return ""
	}
	return name + "=" + strconv.FormatInt(int64(n), 10)
}

// amounts formats the amounts that are not 0.
func (p *scripter) amounts(prefix string, v []int64) string {
	var parts []string
	for i, amount := range v {
		if amount == 0 {
			continue
		}
		switch i {
		case resources.CPU:
			parts = append(parts, fmt.Sprintf("%scpu=%dm", prefix, amount))
		case resources.Memory:
			parts = append(parts, fmt.Sprintf("%smem=%d", prefix, amount))
		case resources.EphemeralStorage:
			parts = append(parts, fmt.Sprintf("%sdisk=%d", prefix, amount))
		default:
			parts = append(parts, fmt.Sprintf("%s%s=%d", prefix, p.names[i], amount))
		}
	}
	return strings.Join(parts, " ")
}

func (p *scripter) body() string {
	var b strings.Builder
	for i := range p.in.catalogues {
		if i == 0 {
			p.types(&b, p.in.catalogues[i])
		}
	}
	for _, n := range p.in.namespaces {
		b.WriteString(words("namespace", n.Name, attribute("labels", labelText(n.Labels))))
	}
	if c := p.in.picture; c.MaxNodes != 0 || c.Unseen != 0 || c.MaxClaims != 0 || c.ClaimsUnknown != "" {
		unseen := c.Unseen
		if c.MaxClaims != 0 { // claims with a node are counted by their nodes
			unseen = c.Claims - int64(p.claims())
		}
		b.WriteString(words("limit", "cluster", number("nodes", c.MaxNodes, 0), number("claims", c.MaxClaims, 0),
			number("unseen", unseen, 0), attribute("unknown", strings.ReplaceAll(c.ClaimsUnknown, " ", "_"))))
	}
	for _, c := range p.in.picture.Commitments {
		hourly := ""
		if c.PerHour != 0 {
			hourly = "hourly=" + resources.Money(c.PerHour).String()
		}
		b.WriteString(words("commitment", c.Name, hourly, number("instances", c.Instances, 0),
			attribute("need", needText(c.Requirements))))
	}
	for _, pool := range p.in.pools {
		b.WriteString(p.pool(pool))
	}
	for _, n := range p.in.nodes {
		b.WriteString(p.node(n))
	}
	p.pods(&b)
	for _, d := range p.in.daemons {
		namespace, name, _ := strings.Cut(d.Name, "/")
		b.WriteString(words("daemon", name, attribute("ns", namespace), p.shape(p.in.shapes[d.Shape]),
			p.seen("seen", d.Seen), p.seen("learnt", d.Learnt)))
	}
	for _, g := range p.in.guards {
		labels := map[string]string{}
		for _, r := range g.Pods.Labels {
			labels[r.Key] = strings.Join(r.In, "|")
		}
		b.WriteString(words("pdb", g.Name, attribute("ns", g.Namespace), attribute("of", labelText(labels)),
			fmt.Sprintf("at-once=%d", g.AtOnce)))
	}
	return script.Shorten(b.String())
}

// pods writes all pods, also those that are coming to a node.
func (p *scripter) pods(b *strings.Builder) {
	coming := map[int]string{} // by position of the pod: the node
	for _, n := range p.in.nodes {
		for _, at := range n.Coming {
			coming[at] = n.Name
		}
	}
	at := 0
	for _, s := range p.in.shapes {
		for _, pod := range s.Pods {
			b.WriteString(p.pod(s, pod, coming[at]))
			at++
		}
	}
}

// seen formats what the pods of a daemon request elsewhere: seen=POOL/TYPE:cpu=2,mem=1Gi.
func (p *scripter) seen(word string, list []seenRecord) string {
	var parts []string
	for _, s := range list {
		requests := slices.Clone(s.Requests)
		if len(requests) > resources.Pods {
			requests[resources.Pods] = 0 // every pod requests one
		}
		parts = append(parts, fmt.Sprintf("%s=%s/%s:%s", word, s.Pool, s.Type,
			strings.ReplaceAll(p.amounts("", requests), " ", ",")))
	}
	return strings.Join(parts, " ")
}

func labelText(labels map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, key+"="+labels[key])
	}
	return strings.Join(parts, ",")
}

// claims counts the nodes that have a NodeClaim.
func (p *scripter) claims() (n int) {
	for _, node := range p.in.nodes {
		if node.Claim != "" {
			n++
		}
	}
	return n
}
