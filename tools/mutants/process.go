package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	switches "github.com/joiner-autoscaler/joiner/tools/mutants/mutant"
)

type verdict string

const (
	passed verdict = "alive"
	failed verdict = "killed"
	late   verdict = "late"
)

// module begins the import paths of the repository's packages.
const module = "github.com/joiner-autoscaler/joiner/"

// build compiles the tests of a package with the overlay, lists them, and notes what each one reaches.
func build(root, work, overlay string, w witness, skip string) (*suite, error) {
	s := &suite{binary: filepath.Join(work, strings.ReplaceAll(w.dir, "/", "-")+".test"),
		dir: filepath.Join(root, w.dir), args: slices.Clone(w.args), work: work}
	compile := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", s.binary, ".")
	compile.Dir = s.dir // which may be in another module than the root
	if w.from != "" {
		compile.Args[len(compile.Args)-1] = module + w.dir
		compile.Dir = filepath.Join(root, w.from)
	}
	if out, err := compile.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go test -c: %w\n%s", err, out)
	}
	if _, err := os.Stat(s.binary); err != nil {
		return s, nil // no tests
	}
	help, _ := exec.Command(s.binary, "-h").CombinedOutput() // it always exits with 2
	if bytes.Contains(help, []byte("-rapid.shrinktime")) {
		s.args = append(s.args, "-rapid.shrinktime=0s", "-rapid.nofailfile") // that it fails is enough
	}
	list := exec.Command(s.binary, "-test.list", "^(Test|Fuzz|Example)")
	list.Dir = s.dir
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the tests: %w", err)
	}
	run, err := regexp.Compile(w.run)
	if err != nil {
		return nil, err
	}
	for _, name := range strings.Fields(string(out)) {
		if run.MatchString(name) && (skip == "" || !regexp.MustCompile(skip).MatchString(name)) {
			s.tests = append(s.tests, test{name: name})
		}
	}
	return s, s.reach()
}

// run runs tests with a mutant on. Their CPU time is limited to a multiple of what they took before, so that a busy
// machine kills no mutant. The clock ends tests that wait for ever. run returns the CPU time that the tests took.
func (s *suite) run(id int, reached string, took time.Duration, names []string) (verdict, time.Duration, error) {
	seconds := 20 + int(10*took/time.Second)
	args := []string{
		"-c", fmt.Sprintf("ulimit -t %d; ulimit -v 8000000; exec \"$@\"", seconds), "sh", s.binary,
		"-test.run", "^(" + strings.Join(names, "|") + ")$", "-test.failfast", "-test.timeout",
		fmt.Sprintf("%ds", 5*seconds),
	}
	command := exec.Command("sh", append(args, s.args...)...)
	command.Dir = s.dir
	command.Env = append(os.Environ(), fmt.Sprintf("%s=%d", switches.Active, id), switches.Reached+"="+reached,
		"GOMAXPROCS=1", "GOTRACEBACK=none")
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	if reached != "" {
		if err := os.WriteFile(reached, nil, 0o644); err != nil {
			return "", 0, err
		}
	}
	err := command.Run()
	if command.ProcessState != nil {
		took = command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return passed, took, nil
	case !errors.As(err, &exit):
		return "", took, err
	case exit.ExitCode() < 0, exit.ExitCode() > 128, bytes.Contains(out.Bytes(), []byte("panic: test timed out")):
		return late, took, nil
	}
	if id == 0 {
		fmt.Printf("%s", out.Bytes())
	}
	return failed, took, nil
}

// extent returns the first and the last line of a mutant's function.
func (u *unit) extent(m *mutant) (int, int) {
	for _, d := range m.file.tree.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		first, last := u.fset.Position(f.Pos()).Line, u.fset.Position(f.End()).Line
		if m.line >= first && m.line <= last {
			return first, last
		}
	}
	return 0, 0
}

func lineOf(f *source, offset int) int { return 1 + bytes.Count(f.text[:offset], []byte("\n")) }
