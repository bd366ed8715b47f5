package plan

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxTypesPrinted bounds the instance types that a line shows; the rest is counted.
const maxTypesPrinted = 3

// String prints the plan for people and for scripts: a line for each launch, nomination, removal, node that stays, and
// refusal, stable byte for byte. Pods that share a line and are numbered one after the other are shortened: web-0..6.
func (p Plan) String() string {
	var b strings.Builder
	for _, l := range p.Launches {
		fmt.Fprintf(&b, "launch %s\n", l)
	}
	writePlaces(&b, "nominate", p.Nominations)
	writePlaces(&b, "room on", p.Buffers.Places)
	for _, r := range p.Removes {
		why := ""
		if r.Why != "" {
			why = ": " + r.Why
		}
		first := ""
		if r.First != "" {
			first = " first (" + string(r.First) + ")"
		}
		fmt.Fprintf(&b, "remove %s (%s) %s%s saves %s/h%s\n", r.Claim, r.Pool, r.Reason, first, r.Price, why)
	}
	for _, stay := range p.Stays {
		fmt.Fprintf(&b, "stays %s: %s\n", stay.Claim, stay.Why)
	}
	for _, pool := range slices.Sorted(maps.Keys(p.Held)) {
		fmt.Fprintf(&b, "held %s: %d empty nodes by a budget\n", pool, p.Held[pool])
	}
	writeUnplaced(&b, "unplaced", p.Unplaced)
	writeUnplaced(&b, "no room for", p.Buffers.Unplaced)
	if b.Len() == 0 {
		return "nothing to do\n"
	}
	return b.String()
}

// writeUnplaced writes a line for each reason with the pods that have it, as far as they stand together.
func writeUnplaced(b *strings.Builder, verb string, list []Unplaced) {
	for i := 0; i < len(list); {
		j, why := i, list[i].String()
		var pods []string
		for ; j < len(list) && list[j].String() == why; j++ {
			pods = append(pods, list[j].Pod.short())
		}
		fmt.Fprintf(b, "%s %s: %s\n", verb, Shorten(pods), why)
		i = j
	}
}

// writePlaces writes a line for each node with the pods that have their places there.
func writePlaces(b *strings.Builder, verb string, list []Nominate) {
	for i := 0; i < len(list); {
		j := i
		var pods []string
		for ; j < len(list) && list[j].Node == list[i].Node; j++ {
			pods = append(pods, list[j].Pod.short())
		}
		fmt.Fprintf(b, "%s %s: %s\n", verb, list[i].Node, Shorten(pods))
		i = j
	}
}

func (p PodRef) short() string {
	if p.Namespace == "default" {
		return p.Name
	}
	return p.String()
}

// String prints what is launched, for which pods, and the price per hour of the cheapest offering.
func (l Launch) String() string {
	name := l.Pool
	if l.Slot != NoSlot {
		name += fmt.Sprintf("/slot-%d", l.Slot)
	}
	types := strings.Join(l.Types[:min(len(l.Types), maxTypesPrinted)], "|")
	if more := len(l.Types) - maxTypesPrinted; more > 0 {
		types += fmt.Sprintf("|+%d", more)
	}
	pods := make([]string, len(l.Pods))
	for i, pod := range l.Pods {
		pods[i] = pod.short()
	}
	switch {
	case len(l.Replaces) > 0:
		pods = []string{"for " + strings.Join(l.Replaces, ",")}
	case slices.Contains(l.For, AskFloor):
		pods = []string{"one that the pool always keeps"}
	case len(pods) == 0 && len(l.Buffers) == 0:
		pods = []string{"a replica"}
	}
	what := Shorten(pods)
	if len(l.Buffers) > 0 && len(l.Replaces) == 0 {
		room := make([]string, len(l.Buffers))
		for i, pod := range l.Buffers {
			room[i] = pod.short()
		}
		what = strings.TrimPrefix(what+", room for "+Shorten(room), ", ")
	}
	paid := ""
	if c := l.Cheapest.Commitment; c.Name != "" {
		paid = fmt.Sprintf(" (commitment %s pays %s/h)", c.Name, c.Pays)
	}
	return fmt.Sprintf("%s %s zone=%s %s %s/h%s: %s", name, types, strings.Join(l.Zones, "|"),
		strings.Join(l.CapacityTypes, "|"), l.Cheapest.Price, paid, what)
}

var numbered = regexp.MustCompile(`^(.*?)(\d+)$`)

// Shorten joins names with commas, runs of consecutively numbered ones as first..last. The names keep their order, but
// numbers of one run may come in any order of text (web-10 before web-2).
func Shorten(names []string) string {
	type run struct {
		stem   string
		number map[int]bool
		low    int
		high   int
	}
	var parts []string
	var runs []*run
	byStem := map[string]*run{}
	for _, name := range names {
		match := numbered.FindStringSubmatch(name)
		number, err := 0, error(nil)
		if match != nil {
			number, err = strconv.Atoi(match[2])
		}
		if match == nil || err != nil || strconv.Itoa(number) != match[2] {
			runs = append(runs, &run{stem: name})
			continue
		}
		r := byStem[match[1]]
		if r == nil {
			r = &run{stem: match[1], number: map[int]bool{}, low: number, high: number}
			byStem[match[1]] = r
			runs = append(runs, r)
		}
		r.number[number] = true
		r.low, r.high = min(r.low, number), max(r.high, number)
	}
	for _, r := range runs {
		if r.number == nil {
			parts = append(parts, r.stem)
			continue
		}
		for n := r.low; n <= r.high; n++ {
			if !r.number[n] {
				continue
			}
			last := n
			for r.number[last+1] {
				last++
			}
			if last == n {
				parts = append(parts, r.stem+strconv.Itoa(n))
			} else {
				parts = append(parts, fmt.Sprintf("%s%d..%d", r.stem, n, last))
			}
			n = last
		}
	}
	return strings.Join(parts, ",")
}
