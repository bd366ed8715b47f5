package script

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// aliases are the short names of labels in scripts.
var aliases = [][2]string{
	{"zone", "topology.kubernetes.io/zone"},
	{"host", "kubernetes.io/hostname"},
	{"arch", "kubernetes.io/arch"},
	{"os", "kubernetes.io/os"},
	{"type", "node.kubernetes.io/instance-type"},
	{"capacity", "karpenter.sh/capacity-type"},
	{"pool", "karpenter.sh/nodepool"},
}

func longName(name string) string {
	for _, alias := range aliases {
		if alias[0] == name {
			return alias[1]
		}
	}
	return name
}

// Shorten replaces the long names of labels in a text by those that scripts use.
func Shorten(text string) string {
	for _, alias := range aliases {
		text = strings.ReplaceAll(text, alias[1], alias[0])
	}
	return text
}

// attributes are the name=value pairs of a line, in order; a name may repeat.
type attributes struct {
	line  string
	pairs [][2]string
	used  map[string]bool
}

func newAttributes(line string, words []string) *attributes {
	a := &attributes{line: line, used: map[string]bool{}}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		a.pairs = append(a.pairs, [2]string{name, value})
	}
	return a
}

func (a *attributes) all(name string) []string {
	a.used[name] = true
	var values []string
	for _, pair := range a.pairs {
		if pair[0] == name {
			values = append(values, pair[1])
		}
	}
	return values
}

func (a *attributes) get(name, otherwise string) string {
	if values := a.all(name); len(values) > 0 {
		return values[len(values)-1]
	}
	return otherwise
}

func (a *attributes) has(name string) bool { return len(a.all(name)) > 0 }

func (a *attributes) number(name string, otherwise int64) int64 {
	text := a.get(name, "")
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		a.fail("%s=%s is not a number", name, text)
	}
	return n
}

// unread returns the attributes that were not asked for yet.
func (a *attributes) unread() [][2]string {
	var list [][2]string
	for _, pair := range a.pairs {
		if !a.used[pair[0]] {
			list = append(list, pair)
		}
	}
	return list
}

// rest returns the attributes that were not asked for by name.
func (a *attributes) rest() [][2]string {
	list := a.unread()
	for _, pair := range list {
		a.used[pair[0]] = true
	}
	return list
}

// prefixed returns the attributes whose names begin with prefix, without it.
func (a *attributes) prefixed(prefix string) [][2]string {
	var list [][2]string
	for _, pair := range a.pairs {
		if name, found := strings.CutPrefix(pair[0], prefix); found {
			a.used[pair[0]] = true
			list = append(list, [2]string{name, pair[1]})
		}
	}
	return list
}

// done fails if the line has an attribute that nothing has asked for: it would mean nothing.
func (a *attributes) done() {
	for _, pair := range a.unread() {
		a.fail("%s means nothing here", pair[0])
	}
}

// scriptError ends the parsing of a script; Parse turns it into an error.
type scriptError string

func (a *attributes) fail(format string, args ...any) {
	panic(scriptError(fmt.Sprintf("%q: ", a.line) + fmt.Sprintf(format, args...)))
}

// amounts reads resources: cpu, mem, disk, pods, and anything else as an extended resource.
func (a *attributes) amounts(pairs [][2]string) resources.Amounts {
	amounts := resources.Amounts{}
	for _, pair := range pairs {
		switch pair[0] {
		case "cpu":
			amounts[resources.NameCPU] = a.milli(pair[1])
		case "mem":
			amounts[resources.NameMemory] = a.bytes(pair[1])
		case "disk":
			amounts[resources.NameEphemeralStorage] = a.bytes(pair[1])
		default:
			amounts[pair[0]] = a.bytes(pair[1])
		}
	}
	return amounts
}

func (a *attributes) milli(text string) int64 {
	if digits, ok := strings.CutSuffix(text, "m"); ok {
		return a.integer(digits)
	}
	return a.integer(text) * 1000
}

func (a *attributes) bytes(text string) int64 {
	for suffix, size := range map[string]int64{"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40} {
		if digits, ok := strings.CutSuffix(text, suffix); ok {
			return a.integer(digits) * size
		}
	}
	return a.integer(text)
}

func (a *attributes) integer(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		a.fail("%q is not a whole number", text)
	}
	return n
}

func (a *attributes) money(text string) resources.Money {
	dollars, err := strconv.ParseFloat(text, 64)
	if err != nil {
		a.fail("%q is not a price", text)
	}
	m, err := resources.FromDollars(dollars)
	if err != nil {
		a.fail("%v", err)
	}
	return m
}

// labels reads a=b,c=d.
func (a *attributes) labels(text string) map[string]string {
	labels := map[string]string{}
	for _, pair := range list(text) {
		name, value, _ := strings.Cut(pair, "=")
		labels[longName(name)] = value
	}
	return labels
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// requirements reads zone=a|b,arch!=arm64,gpu,!old,cpu>=4.
func (a *attributes) requirements(text string) requirement.Set {
	var all []requirement.Requirement
	for _, term := range list(text) {
		all = append(all, a.requirement(term))
	}
	return requirement.NewSet(all...)
}

func (a *attributes) requirement(term string) requirement.Requirement {
	for _, form := range []struct {
		sign string
		op   requirement.Operator
	}{{"!=", requirement.NotIn}, {">=", requirement.Gte}, {"<=", requirement.Lte}, {">", requirement.Gt},
		{"<", requirement.Lt}, {"=", requirement.In}} {
		if name, values, found := strings.Cut(term, form.sign); found {
			r, err := requirement.New(requirement.Key(longName(name)), form.op, strings.Split(values, "|")...)
			if err != nil {
				a.fail("%v", err)
			}
			return r
		}
	}
	if name, negated := strings.CutPrefix(term, "!"); negated {
		return requirement.Absent(requirement.Key(longName(name)))
	}
	return requirement.Present(requirement.Key(longName(term)))
}
