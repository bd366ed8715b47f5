package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// mutant is a planted bug: replacements in files. Most need one replacement; some need several because a second
// defence would hide the bug.
type mutant struct {
	name  string
	edits []edit
	by    []string // the checks that may catch it
	cloud string   // the value of -cloud
}

// edit is a replacement in a file.
type edit struct {
	file       string
	old, fresh []string
}

// readMutants parses a list of planted bugs in the format of internal/sim/testdata/mutants.txt.
func readMutants(text string) ([]mutant, error) {
	var list []mutant
	for number, line := range strings.Split(text, "\n") {
		if name, is := strings.CutPrefix(line, "== "); is {
			list = append(list, mutant{name: name})
			continue
		}
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, value, _ := strings.Cut(line, " ")
		if len(list) == 0 {
			return nil, fmt.Errorf("line %d: %q stands before the first ==", number+1, line)
		}
		m := &list[len(list)-1]
		if key == "file" {
			m.edits = append(m.edits, edit{file: value})
			continue
		}
		if len(m.edits) == 0 && key != "by" && key != "cloud" {
			return nil, fmt.Errorf("line %d: %q stands before the file that it is about", number+1, line)
		}
		switch key {
		case "-":
			m.edits[len(m.edits)-1].old = append(m.edits[len(m.edits)-1].old, value)
		case "+":
			m.edits[len(m.edits)-1].fresh = append(m.edits[len(m.edits)-1].fresh, value)
		case "by":
			m.by = strings.Fields(value)
		case "cloud":
			m.cloud = value
		default:
			return nil, fmt.Errorf("line %d: %q: want ==, file, -, +, cloud or by", number+1, line)
		}
	}
	for _, m := range list {
		if len(m.edits) == 0 || len(m.by) == 0 {
			return nil, fmt.Errorf("%s: want a file, what stands there, and the checks that catch the bug", m.name)
		}
	}
	return list, nil
}

// plant returns the changed content of each file of the bug, by file name.
func (m mutant) plant() (map[string]string, error) {
	planted := map[string]string{}
	for _, e := range m.edits {
		text, known := planted[e.file]
		if !known {
			read, err := os.ReadFile(e.file)
			if err != nil {
				return nil, err
			}
			text = string(read)
		}
		old := strings.Join(e.old, "\n")
		if n := strings.Count(text, old); n != 1 {
			return nil, fmt.Errorf("%s holds %q %d times: want it once, so that the bug can be planted", e.file, old,
				n)
		}
		planted[e.file] = strings.Replace(text, old, strings.Join(e.fresh, "\n"), 1)
	}
	return planted, nil
}

// runMutants builds this program with each planted bug and lets it search. Each bug must be caught by one of the
// checks that it names.
func runMutants(o options, out io.Writer) error {
	text, err := os.ReadFile(o.mutants)
	if err != nil {
		return err
	}
	list, err := readMutants(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", o.mutants, err)
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // what is left is in the folder for temporary files
	var failures []error
	for i, m := range list {
		if o.only != "" && !strings.Contains(m.name, o.only) {
			continue
		}
		begun := time.Now()
		caught, err := m.hunt(o, filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", m.name, err))
			caught = err.Error()
		}
		fmt.Fprintf(out, "%-80s %s (%s)\n", m.name, caught, time.Since(begun).Round(time.Second))
	}
	return errors.Join(failures...)
}

// build builds the program with the bug, in a folder.
func (m mutant) build(dir string) (binary string, err error) {
	planted, err := m.plant()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	overlay, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "sim")
	replace := map[string]string{}
	for name, text := range planted {
		path, err := filepath.Abs(name)
		if err != nil {
			return "", err
		}
		replace[path] = filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(replace[path], []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err := errors.Join(err, os.WriteFile(overlay, text, 0o644)); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-trimpath", "-overlay", overlay, "-o", binary, "./cmd/joiner-sim")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building: %w\n%s", err, output)
	}
	return binary, nil
}

// hunt builds one mutant and runs seeds until one fails. It returns what caught the bug.
func (m mutant) hunt(o options, dir string) (string, error) {
	binary, err := m.build(dir)
	if err != nil {
		return "", err
	}
	defer os.Remove(binary) //nolint:errcheck // goes with the folder
	stories, err := filepath.Glob(filepath.Join(filepath.Dir(o.mutants), "scenarios", "*.txt"))
	if err != nil {
		return "", err
	}
	if slices.Contains(m.by, "story") && len(stories) == 0 {
		return "", fmt.Errorf("no stories beside %s, and only a story catches it", o.mutants)
	}
	for _, story := range stories { // bugs that were found once are found again at once
		output, err := exec.Command(binary, "-file", story).CombinedOutput()
		if check := violated(string(output)); err != nil && slices.Contains(m.by, check) {
			return fmt.Sprintf("caught by story %s, check %s", filepath.Base(story), check), nil
		}
	}
	output, err := exec.Command(binary, "-cloud", m.cloud, "-from", fmt.Sprint(o.from),
		"-n", fmt.Sprint(o.n), "-workers", fmt.Sprint(o.workers)).CombinedOutput()
	if err == nil {
		return "", fmt.Errorf("not caught in %d seeds", o.n)
	}
	return m.judge(string(output))
}

// judge evaluates the output of the search.
func (m mutant) judge(output string) (string, error) {
	_, found, is := strings.Cut(output, "joiner-sim: seed ")
	if !is {
		return "", fmt.Errorf("the search ended otherwise: %s", output)
	}
	seed, rest, _ := strings.Cut(found, ":")
	check := violated(rest)
	if !slices.Contains(m.by, check) {
		return "", fmt.Errorf("caught at seed %s by %q, want one of %v", seed, check, m.by)
	}
	return fmt.Sprintf("caught at seed %s by %s", seed, check), nil
}

// violated returns the name of the violated check in a report, or "".
func violated(output string) string {
	_, rest, _ := strings.Cut(output, `violation of "`)
	check, _, _ := strings.Cut(rest, `"`)
	return check
}
