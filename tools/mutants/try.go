package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"go/types"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// outcome is what became of the mutants of a package.
type outcome struct {
	all       []*mutant
	killed    map[*mutant]bool
	slow      int // of the killed, those that ran out of time
	unreached map[*mutant]bool
	dropped   int // changes that would not compile
	took      time.Duration
}

func (o *outcome) alive() []*mutant {
	var alive []*mutant
	for _, m := range o.all {
		if !o.killed[m] {
			alive = append(alive, m)
		}
	}
	return alive
}

// try mutates one package.
func try(o options, s subject, k *known) (*outcome, error) {
	start := time.Now()
	root, err := filepath.Abs(o.root)
	if err != nil {
		return nil, err
	}
	u, err := load(filepath.Join(root, s.from), cmp.Or(s.path, "./"+s.dir))
	if err != nil {
		return nil, err
	}
	for _, f := range u.files {
		f.generated = f.generated || s.files != nil && !slices.Contains(s.files, filepath.Base(f.name))
	}
	work, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	mutants, dropped, overlay, err := instrument(u, work)
	if err != nil {
		return nil, err
	}
	result := &outcome{all: mutants, killed: map[*mutant]bool{}, unreached: map[*mutant]bool{}, dropped: dropped}
	own, err := build(root, work, overlay, witness{dir: cmp.Or(s.tests, s.dir), args: s.args}, s.skip)
	if err != nil {
		return nil, err
	}
	only, err := regexp.Compile(o.only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	left := slices.DeleteFunc(slices.Clone(mutants), func(m *mutant) bool { return !only.MatchString(m.key()) })
	if o.listed {
		left = slices.DeleteFunc(left, func(m *mutant) bool {
			_, found := k.packages[s.dir][m.key()]
			result.killed[m] = !found
			return !found
		})
	}
	for _, m := range left {
		result.unreached[m] = true
	}
	if left, err = own.kill(o, left, result); err != nil {
		return nil, err
	}
	for _, w := range s.witnesses {
		if len(left) == 0 {
			break
		}
		suite, err := build(root, work, overlay, w, "")
		if err != nil {
			return nil, err
		}
		if left, err = suite.kill(o, left, result); err != nil {
			return nil, err
		}
	}
	result.took = time.Since(start)
	if o.only != "" {
		for _, m := range left {
			fmt.Printf("%s:%d: alive: %s\n", filepath.Join(s.dir, filepath.Base(m.file.name)), m.line, m.key())
		}
	}
	return result, nil
}

// instrument writes the package with all mutants that compile, and the overlay that puts it in the place of the real
// one.
func instrument(u *unit, work string) ([]*mutant, int, string, error) {
	switchDir := filepath.Join(u.module.Dir, "internal", "zzmutant")
	switchPath := u.module.Path + "/internal/zzmutant"
	header := fmt.Sprintf("; import mutant %q", switchPath)
	mutants := find(u)
	found := len(mutants)
	if found > 1<<16 {
		return nil, 0, "", fmt.Errorf("%d mutants are more than there are numbers", found)
	}
	texts := map[string][]byte{}
	for {
		for _, f := range u.files {
			texts[f.name] = render(f, mutants, header)
		}
		wrong, err := u.mistakes(switchPath, texts)
		if err != nil {
			return nil, 0, "", err
		}
		if len(wrong) == 0 {
			break
		}
		kept := slices.DeleteFunc(slices.Clone(mutants), func(m *mutant) bool { return concerned(u, m, wrong) })
		if len(kept) == len(mutants) {
			return nil, 0, "", fmt.Errorf("instrumented source: %v", wrong[0])
		}
		mutants = kept
	}
	replace := map[string]string{filepath.Join(switchDir, "mutant.go"): filepath.Join(work, "mutant.go")}
	if err := os.WriteFile(filepath.Join(work, "mutant.go"), switchSource, 0o644); err != nil {
		return nil, 0, "", err
	}
	for _, f := range u.files {
		to := filepath.Join(work, filepath.Base(f.name))
		if filepath.Base(f.name) == "mutant.go" {
			to += ".of"
		}
		replace[f.name] = to
		if err := os.WriteFile(to, texts[f.name], 0o644); err != nil {
			return nil, 0, "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return nil, 0, "", err
	}
	overlay := filepath.Join(work, "overlay.json")
	return mutants, found - len(mutants), overlay, os.WriteFile(overlay, text, 0o644)
}

// concerned reports whether a mutant may be the cause of a mistake: it touches the line, or it empties a case, and now
// its function seems to end without a return.
func concerned(u *unit, m *mutant, wrong []types.Error) bool {
	for _, e := range wrong {
		p := e.Fset.Position(e.Pos)
		if p.Filename == m.file.name && p.Line == m.line {
			return true
		}
		for _, edit := range m.edits {
			if edit.file != nil && edit.file.name == p.Filename && lineOf(edit.file, edit.start) == p.Line {
				return true
			}
		}
		if strings.Contains(e.Msg, "missing return") && p.Filename == m.file.name &&
			(m.now == "(does nothing)" || m.now == "(removed)") {
			if first, last := u.extent(m); p.Line >= first && p.Line <= last {
				return true
			}
		}
	}
	return false
}

// suite is a built test binary and what its tests reach.
type suite struct {
	binary, dir string
	args        []string
	tests       []test
	work        string
}

type test struct {
	name    string
	took    time.Duration
	reaches map[int]bool
}

// kill runs the tests that reach each mutant, and returns what is left.
func (s *suite) kill(o options, mutants []*mutant, result *outcome) ([]*mutant, error) {
	var mu sync.Mutex
	var left []*mutant
	var wait sync.WaitGroup
	queue := make(chan *mutant)
	var failure error
	for range 2 {
		wait.Go(func() {
			for m := range queue {
				reached := s.reaching(m)
				verdict, err := s.judge(m, reached)
				mu.Lock()
				if err != nil {
					failure = err
				}
				if len(reached) > 0 {
					delete(result.unreached, m)
				}
				if verdict == passed {
					left = append(left, m)
				} else {
					result.killed[m] = true
				}
				if verdict == late {
					result.slow++
				}
				if o.verbose {
					fmt.Printf("%-8s %s:%d: %s\n", verdict, filepath.Base(m.file.name), m.line, m.key())
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range mutants {
		queue <- m
	}
	close(queue)
	wait.Wait()
	sort.Slice(left, func(i, j int) bool { return left[i].id < left[j].id })
	return left, failure
}

// reaching returns the tests that reach a mutant, the quickest first.
func (s *suite) reaching(m *mutant) []test {
	var result []test
	for _, t := range s.tests {
		if t.reaches[m.id] {
			result = append(result, t)
		}
	}
	slices.SortStableFunc(result, func(a, b test) int { return int(a.took - b.took) })
	return result
}

// together bounds the sum of the times of tests that run in one process. Quick tests kill most mutants, and each
// process has a cost.
const together = time.Second

// judge runs the tests against a mutant, in groups, until one fails.
func (s *suite) judge(m *mutant, tests []test) (verdict, error) {
	for len(tests) > 0 {
		group := tests[:1]
		sum := tests[0].took
		for len(group) < len(tests) && sum+tests[len(group)].took < together {
			sum += tests[len(group)].took
			group = tests[:len(group)+1]
		}
		tests = tests[len(group):]
		var names []string
		for _, t := range group {
			names = append(names, t.name)
		}
		v, _, err := s.run(m.id, "", sum, names)
		if v != passed || err != nil {
			return v, err
		}
	}
	return passed, nil
}

// reach runs each test alone without a mutant, and notes what it reaches and how long it takes.
func (s *suite) reach() error {
	for i := range s.tests {
		t := &s.tests[i]
		file := filepath.Join(s.work, "reached-"+t.name)
		v, took, err := s.run(0, file, time.Minute, []string{t.name})
		if err != nil {
			return err
		}
		if v != passed {
			return fmt.Errorf("%s in %s fails without any mutant", t.name, s.dir)
		}
		t.took = took
		t.reaches = map[int]bool{}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, line := range strings.Fields(string(text)) {
			var id int
			if _, err := fmt.Sscan(line, &id); err != nil {
				return err
			}
			t.reaches[id] = true
		}
	}
	return nil
}

func sorted[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
