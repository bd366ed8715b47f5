package kwok

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/onedocument"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// Bounds of a document of faults.
const (
	maxFaultsBytes = 256 << 10 // the limit of an object's annotations
	maxFaults      = 100       // rules of one kind
	maxSteps       = 1_000     // of a price curve
	maxFactor      = 1_000
	maxDuration    = 10_000 * time.Hour
)

// Defaults of rules.
const (
	defaultNotice      = 2 * time.Minute // as for spot machines of EC2
	defaultDriftReason = "NodeClassDrift"
)

// ruleFields returns the fields of every kind of rule.
func ruleFields() []string { return []string{"probability", "from", "until", "every", "for"} }

// offeringFields returns the fields that choose offerings.
func offeringFields() []string { return []string{"types", "zones", "capacityTypes"} }

// LoadFaults reads a file of faults with read, and checks it against an inventory. "" means no file and no faults.
func LoadFaults(file string, inventory Inventory, read func(path string) ([]byte, error)) (Faults, error) {
	if file == "" {
		return Faults{}, nil
	}
	data, err := read(file)
	if err != nil {
		return Faults{}, fmt.Errorf("reading the faults file: %w", err)
	}
	faults, err := ParseFaults(data)
	if err == nil {
		err = faults.check(inventory.catalog)
	}
	if err != nil {
		return Faults{}, fmt.Errorf("faults file %s: %w", file, err)
	}
	return faults, nil
}

// ParseFaults reads a document of faults, in YAML or JSON; docs/kwok.md describes it. Every error names the rule, the
// field, the value and what is allowed; no input makes it panic.
func ParseFaults(data []byte) (Faults, error) {
	if len(data) > maxFaultsBytes {
		return Faults{}, fmt.Errorf("%d bytes; want at most %d", len(data), maxFaultsBytes)
	}
	if err := onedocument.Check(data); err != nil {
		return Faults{}, err
	}
	document, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return Faults{}, fmt.Errorf("not YAML: %s", strings.Join(strings.Fields(err.Error()), " "))
	}
	top := value{path: "faults", raw: document}
	if top.missing() {
		return Faults{}, nil
	}
	kinds, err := top.object("seed", "insufficientCapacity", "slowBoot", "neverJoin", "drift", "interruption",
		"throttling", "prices")
	if err != nil {
		return Faults{}, err
	}
	seed := uint64(0)
	if v := kinds["seed"]; !v.missing() {
		if seed, err = strconv.ParseUint(string(v.raw), 10, 64); err != nil {
			return Faults{}, v.badValue("a whole number from 0 to 18446744073709551615")
		}
	}
	var f Faults
	for _, kind := range []struct {
		name  string
		into  *[]fault
		parse func(*fault, map[string]value) error
		more  []string
	}{
		{"insufficientCapacity", &f.shortages, nil, offeringFields()},
		{"slowBoot", &f.slowBoots, parseSlowBoot, append(offeringFields(), "delay")},
		{"neverJoin", &f.absences, nil, offeringFields()},
		{"drift", &f.drifts, parseDrift, append(offeringFields(), "after", "reason")},
		{"interruption", &f.interruptions, parseInterruption, append(offeringFields(), "after", "notice", "kind")},
		{"throttling", &f.throttles, parseThrottling, []string{"calls"}},
		{"prices", &f.prices, parsePrices, append(offeringFields(), "factor", "steps")},
	} {
		v := kinds[kind.name].at(kind.name)
		if v.missing() {
			continue
		}
		elements, err := v.array(maxFaults)
		if err != nil {
			return Faults{}, err
		}
		for _, element := range elements {
			rule, err := parseFault(element, fmt.Sprintf("%d/%s", seed, element.path), kind.parse, kind.more)
			if err != nil {
				return Faults{}, err
			}
			*kind.into = append(*kind.into, rule)
		}
	}
	return f, nil
}

func parseFault(v value, lot string, more func(*fault, map[string]value) error, names []string) (fault, error) {
	values, err := v.object(slices.Concat(names, ruleFields())...)
	if err != nil {
		return fault{}, err
	}
	rule := fault{path: v.path, lot: lot, probability: 1}
	if p := values["probability"]; !p.missing() {
		if rule.probability, err = p.number(0, 1); err != nil {
			return fault{}, err
		}
	}
	if rule.machines, err = parseSelector(values); err != nil {
		return fault{}, err
	}
	if rule.window, err = parseWindow(values); err != nil {
		return fault{}, err
	}
	if more == nil {
		return rule, nil
	}
	return rule, more(&rule, values)
}

func parseSelector(values map[string]value) (selector, error) {
	var s selector
	for _, list := range []struct {
		name    string
		into    *[]string
		allowed string
		check   func(string) bool
	}{
		{"types", &s.types, "a name of instance types, in which * stands for any text", isPattern},
		{"zones", &s.zones, allowedLabelValue, isLabelValue},
		{"capacityTypes", &s.capacityTypes, "on-demand, spot or reserved", isCapacityType},
	} {
		v := values[list.name]
		if v.missing() {
			continue
		}
		texts, err := v.texts(maxValues, list.allowed, list.check)
		if err != nil {
			return s, err
		}
		if len(texts) == 0 {
			return s, v.badValue("at least one; leave the field out for all")
		}
		*list.into = texts
	}
	return s, nil
}

// maxWord is the maximum length of a pattern or a reason: that of a label's value.
const maxWord = 63

func isPattern(s string) bool {
	_, err := path.Match(s, "")
	return s != "" && len(s) <= maxWord && err == nil
}

func isCapacityType(s string) bool {
	return s == catalog.OnDemand || s == catalog.Spot || s == catalog.Reserved
}

func parseWindow(values map[string]value) (window, error) {
	var w window
	var err error
	if v := values["from"]; !v.missing() {
		if w.from, err = v.instant(); err != nil {
			return w, err
		}
	}
	if v := values["until"]; !v.missing() {
		if w.until, err = v.instant(); err != nil {
			return w, err
		}
	}
	if !w.from.IsZero() && !w.until.IsZero() && !w.until.After(w.from) {
		return w, values["until"].badValue("a time after from, %s", w.from.Format(time.RFC3339))
	}
	if v := values["every"]; !v.missing() {
		if w.every, err = v.duration(time.Second); err != nil {
			return w, err
		}
	}
	if v := values["for"]; !v.missing() {
		if w.span, err = v.duration(time.Second); err != nil {
			return w, err
		}
		if w.every == 0 || w.span > w.every {
			return w, v.badValue("a duration not above every, which says how often that is repeated")
		}
	}
	return w, nil
}

func parseSlowBoot(rule *fault, values map[string]value) (err error) {
	rule.delay, err = values["delay"].duration(time.Second)
	return err
}

func parseDrift(rule *fault, values map[string]value) (err error) {
	rule.reason = defaultDriftReason
	if v := values["reason"]; !v.missing() {
		if rule.reason, err = v.text("a word in CamelCase of at most 63 letters and digits", isWord); err != nil {
			return err
		}
	}
	rule.after, err = values["after"].optionalDuration(0)
	return err
}

func isWord(s string) bool {
	return s != "" && len(s) <= maxWord && s[0] >= 'A' && s[0] <= 'Z' && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9')
	})
}

func parseInterruption(rule *fault, values map[string]value) (err error) {
	rule.kind = provider.SpotInterrupted
	if v := values["kind"]; !v.missing() {
		var names []string
		for _, kind := range provider.NoticeKinds() {
			names = append(names, string(kind))
		}
		kind, err := v.text("one of "+strings.Join(names, ", "),
			func(s string) bool { return slices.Contains(names, s) })
		if err != nil {
			return err
		}
		rule.kind = provider.NoticeKind(kind)
	}
	if len(rule.machines.capacityTypes) == 0 &&
		(rule.kind == provider.SpotInterrupted || rule.kind == provider.RebalanceRecommended) {
		rule.machines.capacityTypes = []string{catalog.Spot} // clouds send these only for spot
	}
	if rule.after, err = values["after"].optionalDuration(0); err != nil {
		return err
	}
	rule.notice, err = values["notice"].optionalDuration(defaultNotice)
	return err
}

func parseThrottling(rule *fault, values map[string]value) (err error) {
	v := values["calls"]
	if v.missing() {
		return nil
	}
	calls := []string{callCatalog, callLaunch, callTerminate, callReboot, callGet, callList}
	rule.calls, err = v.texts(len(calls), "one of "+strings.Join(calls, ", "),
		func(s string) bool { return slices.Contains(calls, s) })
	return err
}

func parsePrices(rule *fault, values map[string]value) error {
	factor, steps := values["factor"], values["steps"]
	if factor.missing() == steps.missing() {
		return fmt.Errorf("%s: want either factor or steps", rule.path)
	}
	if steps.missing() {
		f, err := factor.number(0, maxFactor)
		rule.steps = []priceStep{{factor: f}}
		return err
	}
	if rule.window.every == 0 && rule.window.from.IsZero() {
		return fmt.Errorf("%s: want every or from beside steps: they are counted from there", rule.path)
	}
	elements, err := steps.array(maxSteps)
	if err != nil {
		return err
	}
	for _, element := range elements {
		parts, err := element.object("at", "factor")
		if err != nil {
			return err
		}
		step := priceStep{}
		if step.at, err = parts["at"].duration(0); err != nil {
			return err
		}
		if step.factor, err = parts["factor"].number(0, maxFactor); err != nil {
			return err
		}
		if n := len(rule.steps); n > 0 && step.at <= rule.steps[n-1].at ||
			rule.window.every > 0 && step.at >= rule.window.every {
			return parts["at"].badValue("more than in the step before, and less than every")
		}
		rule.steps = append(rule.steps, step)
	}
	if len(rule.steps) == 0 {
		return steps.badValue("at least one step")
	}
	return nil
}

// number returns a number from least to most.
func (v value) number(least, most float64) (float64, error) {
	n, err := strconv.ParseFloat(string(v.raw), 64)
	if err != nil || !(n >= least && n <= most) {
		return 0, v.badValue("a number from %v to %v", least, most)
	}
	return n, nil
}

// duration returns a duration from least to maxDuration.
func (v value) duration(least time.Duration) (time.Duration, error) {
	text := string(v.raw)
	var unquoted string
	if json.Unmarshal(v.raw, &unquoted) == nil {
		text = unquoted
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > maxDuration {
		return 0, v.badValue(`a duration such as "30s", "5m" or "1h30m", from %s to %s`, least, maxDuration)
	}
	return d, nil
}

// optionalDuration returns a duration; otherwise is the default if the field is missing.
func (v value) optionalDuration(otherwise time.Duration) (time.Duration, error) {
	if v.missing() {
		return otherwise, nil
	}
	return v.duration(0)
}

// instant returns a time.
func (v value) instant() (time.Time, error) {
	var text string
	if json.Unmarshal(v.raw, &text) == nil {
		if t, err := time.Parse(time.RFC3339, text); err == nil && t.Year() >= 1970 && t.Year() < 2200 {
			return t, nil
		}
	}
	return time.Time{}, v.badValue(`a time from 1970 to 2199 such as "2026-07-01T12:00:00Z"`)
}
