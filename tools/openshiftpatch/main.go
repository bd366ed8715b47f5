// Command openshiftpatch puts the node scheduling policy's plugin into a checkout of openshift/kubernetes: it
// registers the plugin, puts it into the list of plugins before the mutating webhooks, adds its feature gate, and
// requires its module.
//
// It finds places in the syntax tree, and inserts text at their offsets, so that no other line changes. If a place is
// missing, it is named, and no file is written. What is already there stays as it is: a second run changes nothing.
// vendor/ is left to the checkout's own hack/update-vendor.sh.
//
// Usage: openshiftpatch --tree DIR [--check] [--version v0.0.0]
//
// It ends with 0 when the tree is patched, with 1 when --check finds that it is not, and with 2 when it is refused.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"golang.org/x/mod/module"
)

// Exit codes.
const (
	patched    = 0
	notPatched = 1
	refused    = 2
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("openshiftpatch", flag.ContinueOnError)
	flags.SetOutput(errs)
	tree := flags.String("tree", "", "the directory of a checkout of openshift/kubernetes")
	check := flags.Bool("check", false, "change nothing, and end with 0 if the tree is patched, with 1 if it is not")
	version := flags.String("version", unreleased, "the version of the plugin's module that go.mod is to require")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return patched
		}
		return refused
	}
	code, err := patch(options{*tree, *check, *version, flags.Args()}, out)
	if err != nil {
		_, _ = fmt.Fprintf(errs, "openshiftpatch: %v\nNothing was changed.\n", err)
	}
	return code
}

type options struct {
	tree    string
	check   bool
	version string
	rest    []string
}

func (o options) validate() error {
	var errs []error
	if o.tree == "" {
		errs = append(errs, errors.New("--tree is empty: want the directory of a checkout of openshift/kubernetes"))
	}
	if len(o.rest) > 0 {
		errs = append(errs, fmt.Errorf("got the argument %q: want flags only", o.rest[0]))
	}
	if err := module.Check(pluginModule, o.version); err != nil {
		errs = append(errs, fmt.Errorf("--version is %q: want a version such as v0.1.0: %w", o.version, err))
	}
	return errors.Join(errs...)
}

// patch looks at the three files, and writes them unless it only checks.
func patch(o options, out io.Writer) (int, error) {
	if err := o.validate(); err != nil {
		return refused, err
	}
	files, err := read(o.tree, o.version)
	if err != nil {
		return refused, err
	}
	code := patched
	for _, f := range files {
		for _, p := range f.parts {
			state := "is there"
			switch {
			case !p.added:
			case o.check:
				state, code = "is missing", notPatched
			default:
				state = "added"
			}
			_, _ = fmt.Fprintf(out, "%s: %s: %s\n", f.name, p.what, state)
		}
	}
	if o.check {
		return code, nil
	}
	if err := write(o.tree, files); err != nil {
		return refused, err
	}
	_, _ = fmt.Fprint(out, "vendor/ is not touched: run hack/update-vendor.sh in the checkout.\n")
	if o.version == unreleased {
		_, _ = fmt.Fprintf(out, "%s %s stands for a checkout: replace the module in go.mod first, or pin a release.\n",
			pluginModule, unreleased)
	}
	return code, nil
}
