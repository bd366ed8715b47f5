package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// known are the survivors that the list names, by package and then by name.
type known struct {
	head     string
	packages map[string]map[string]entry
}

// entry is what the list says about a survivor: why it is equal to the original, or that a test is owed.
type entry struct{ verdict, reason string }

const (
	equal = "equal" // no test can tell it from the original
	open  = "open"  // a test could, and there is none yet
)

// readList reads
//
//	package internal/apply
//	  Applier.Launch: a < b -> a <= b
//	    equal: a and b never meet
func readList(path string) (*known, error) {
	k := &known{packages: map[string]map[string]entry{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, nil
	} else if err != nil {
		return nil, err
	}
	pkg, key := "", ""
	for i, line := range strings.Split(string(text), "\n") {
		bad := func(what string) error { return fmt.Errorf("%s:%d: %s", path, i+1, what) }
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "":
		case strings.HasPrefix(line, "#"):
			k.head += line + "\n"
		case strings.HasPrefix(line, "package "):
			if pkg, key = strings.TrimPrefix(line, "package "), ""; k.packages[pkg] != nil {
				return nil, bad("package " + pkg + " stands there twice")
			}
			k.packages[pkg] = map[string]entry{}
		case strings.HasPrefix(line, "    ") && key != "":
			verdict, reason, _ := strings.Cut(trimmed, ": ")
			if verdict != open && (verdict != equal || reason == "") {
				return nil, bad(`want "equal: " and a reason, or "open"`)
			}
			k.packages[pkg][key], key = entry{verdict, reason}, ""
		case strings.HasPrefix(line, "  ") && pkg != "" && key == "":
			if key = trimmed; k.packages[pkg][key] != (entry{}) {
				return nil, bad("this mutant stands there twice")
			}
		default:
			return nil, bad(`want "package", then a mutant indented by 2, then its reason indented by 4`)
		}
	}
	if key != "" {
		return nil, fmt.Errorf("%s: %s has no reason", path, key)
	}
	return k, nil
}

// save writes the list back, in order.
func (k *known) save(path string) error {
	var b strings.Builder
	b.WriteString(k.head)
	for _, pkg := range sorted(k.packages) {
		if len(k.packages[pkg]) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\npackage %s\n", pkg)
		for _, key := range sorted(k.packages[pkg]) {
			e := k.packages[pkg][key]
			fmt.Fprintf(&b, "  %s\n    %s", key, e.verdict)
			if e.reason != "" {
				b.WriteString(": " + e.reason)
			}
			b.WriteString("\n")
		}
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

// update lists new survivors as open, and drops entries that do not survive.
func (k *known) update(s subject, o *outcome) {
	entries := map[string]entry{}
	for _, m := range o.alive() {
		e, found := k.packages[s.dir][m.key()]
		if !found {
			e = entry{verdict: open}
			if o.unreached[m] {
				e.reason = "no test gets there"
			}
		}
		entries[m.key()] = e
	}
	k.packages[s.dir] = entries
}

// compare returns complaints: about survivors that are not listed, and about entries that do not survive.
func (k *known) compare(s subject, o *outcome) []string {
	var complaints []string
	alive := map[string]bool{}
	for _, m := range o.alive() {
		alive[m.key()] = true
		if _, found := k.packages[s.dir][m.key()]; !found {
			what := "survives"
			if o.unreached[m] {
				what = "is not reached"
			}
			where := filepath.Join(s.dir, filepath.Base(m.file.name))
			complaints = append(complaints, fmt.Sprintf("%s:%d: %s: %s", where, m.line, what, m.key()))
		}
	}
	for _, key := range sorted(k.packages[s.dir]) {
		if !alive[key] {
			complaints = append(complaints, fmt.Sprintf("%s: is listed, and killed or gone: %s", s.dir, key))
		}
	}
	return complaints
}

// summary returns the score of a package on one line.
func (o *outcome) summary(s subject, k *known) string {
	count := map[string]int{}
	for _, m := range o.alive() {
		count[k.packages[s.dir][m.key()].verdict]++
	}
	score := 100.0
	if n := len(o.all) - count[equal]; n > 0 {
		score = 100 * float64(len(o.all)-len(o.alive())) / float64(n)
	}
	return fmt.Sprintf("%s: %d mutants, %d killed (%d by time), %d equal, %d open, %d not listed; "+
		"not reached %d; score %.1f %%; %s",
		s.dir, len(o.all), len(o.all)-len(o.alive()), o.slow, count[equal], count[open], count[""],
		len(o.unreached), score, o.took.Round(time.Second))
}
