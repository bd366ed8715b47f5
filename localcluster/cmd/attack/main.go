// Command attack tells the attacks of docs/autonode-bypass.md and docs/control-plane-bypass.md as one story. It
// runs their tests on real control planes. For each attempt it prints what the page says, what the tests saw, who
// noticed, and after how long. It exits with 1 when a test fails, when the tests of an attempt saw nothing, or when
// they did not see the refusal that the page promises.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/attack"
)

// pages are the pages of the story, in its order, in the folder docs.
var pages = []string{"autonode-bypass.md", "control-plane-bypass.md"}

func main() {
	only := flag.String("only", "", "a regular expression: attempts whose text, section or test it matches")
	docs := flag.String("docs", "../docs", "the folder of the pages")
	tests := flag.String("tests", "e2e", "the folder of the tests")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	failed, err := run(ctx, *docs, *tests, *only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "attack:", err)
		os.Exit(2)
	}
	if failed {
		os.Exit(1)
	}
}

func run(ctx context.Context, docs, tests, only string) (failed bool, err error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return false, fmt.Errorf("--only %q: %w", only, err)
	}
	homes, err := homesOf(tests)
	if err != nil {
		return false, err
	}
	var attempts []attack.Attempt
	for _, page := range pages {
		content, err := os.ReadFile(filepath.Join(docs, page))
		if err != nil {
			return false, err
		}
		for _, attempt := range attack.Attempts(string(content)) {
			if matches(pattern, attempt) {
				attempts = append(attempts, attempt)
			}
		}
	}
	wanted := map[string][]string{} // names of tests, by package
	for _, attempt := range attempts {
		for _, test := range attempt.Tests {
			home, found := homes[test]
			if !found {
				return false, fmt.Errorf("%q names the test %s, which is in no folder of %s", attempt.Text, test,
					tests)
			}
			if !slices.Contains(wanted[home], test) {
				wanted[home] = append(wanted[home], test)
			}
		}
	}
	began := time.Now()
	t := newTeller(os.Stdout, attempts)
	fmt.Printf("%d attempts, tried by tests of %d packages on real control planes. This takes some minutes.\n",
		len(attempts), len(wanted))
	for _, home := range inOrder(wanted) {
		if err := play(ctx, home, wanted[home], t); err != nil {
			return false, err
		}
	}
	return t.end(time.Since(began)), nil
}

func matches(pattern *regexp.Regexp, attempt attack.Attempt) bool {
	return pattern.MatchString(attempt.Text) || pattern.MatchString(attempt.Section) ||
		slices.ContainsFunc(attempt.Tests, pattern.MatchString)
}

// homesOf returns the package of each test below a folder, by the name of the test.
func homesOf(folder string) (map[string]string, error) {
	homes := map[string]string{}
	declared := regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
	err := filepath.WalkDir(folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, found := range declared.FindAllStringSubmatch(string(content), -1) {
			homes[found[1]] = "./" + filepath.ToSlash(filepath.Dir(path))
		}
		return nil
	})
	return homes, err
}

func inOrder(wanted map[string][]string) []string {
	var list []string
	for home := range wanted {
		list = append(list, home)
	}
	slices.Sort(list)
	return list
}
