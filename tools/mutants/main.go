// Command mutants changes a package in small ways, one at a time, and checks whether a test notices (docs/mutants.md).
//
// Usage: mutants [-root dir] [-list docs/mutants.txt] [-write] [-listed] [-only expression] [-v] [package...]
//
// Without packages it takes those of packages.go. It fails when a change that no test notices is not on the list, and
// when the list names one that is noticed or gone.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	root := flag.String("root", "..", "the root of the module that is mutated")
	list := flag.String("list", "docs/mutants.txt", "survivors that are known, below the root")
	write := flag.Bool("write", false, "bring the list up to date: what is new is open")
	only := flag.String("only", "",
		"try only mutants whose name this regular expression matches; the list is not compared")
	listed := flag.Bool("listed", false, "try only what is listed, after tests were added: the others count as killed")
	verbose := flag.Bool("v", false, "say what each mutant came to")
	flag.Parse()
	failed, err := run(options{*root, filepath.Join(*root, *list), *write, *only, *listed, *verbose}, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if failed {
		os.Exit(1)
	}
}

type options struct {
	root, list string
	write      bool
	only       string
	listed     bool
	verbose    bool
}

// run mutates the packages and says whether anything is not as listed.
func run(o options, packages []string) (bool, error) {
	known, err := readList(o.list)
	if err != nil {
		return false, err
	}
	subjects := subjects
	if len(packages) > 0 {
		subjects = chosen(packages)
	}
	failed := false
	for _, s := range subjects {
		result, err := try(o, s, known)
		if err != nil {
			return false, fmt.Errorf("%s: %w", s.dir, err)
		}
		if o.only != "" {
			continue
		}
		if o.write {
			known.update(s, result)
			if err := known.save(o.list); err != nil {
				return false, err
			}
		}
		complaints := known.compare(s, result)
		for _, c := range complaints {
			fmt.Println(c)
		}
		failed = failed || len(complaints) > 0
		fmt.Println(result.summary(s, known))
	}
	return failed, nil
}

// chosen returns the subjects for packages as a user names them.
func chosen(packages []string) []subject {
	var result []subject
	for _, name := range packages {
		dir := strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(name), "./"), "/")
		found := false
		for _, s := range subjects {
			if s.dir == dir {
				result, found = append(result, s), true
			}
		}
		if !found {
			result = append(result, subject{dir: dir})
		}
	}
	return result
}
