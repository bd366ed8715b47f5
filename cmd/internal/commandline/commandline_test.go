package commandline_test

import (
	"bytes"
	"context"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline"
)

// U-13: the help has every flag under its heading, with the variable of one as an example.
func TestTheHelpHasEveryFlagUnderItsHeading(t *testing.T) {
	t.Parallel()
	planning := commandline.NewGroup("Planning", func(flags *pflag.FlagSet) {
		flags.Duration("batch-idle-duration", time.Second, "how long to wait")
	})
	serving := commandline.NewGroup("Serving", func(flags *pflag.FlagSet) {
		flags.Int("metrics-port", 8080, "where to listen")
	})
	program := commandline.Program{Name: "joiner", Short: "It launches nodes.", Example: "batch-idle-duration",
		Groups: []commandline.Group{planning, serving}}
	var out, err bytes.Buffer
	if code := commandline.Run(t.Context(), program, []string{"--help"},
		func(string) (string, bool) { return "", false }, &out, &err); code != 0 || err.Len() > 0 {
		t.Fatalf("exit %d, %q", code, err.String())
	}
	rest := out.String()
	for _, next := range []string{"It launches nodes.", "--batch-idle-duration is BATCH_IDLE_DURATION", "Planning:",
		"--batch-idle-duration duration", "Serving:", "--metrics-port int"} {
		_, after, found := strings.Cut(rest, next)
		if !found {
			t.Fatalf("%q is not in the help, or in another place:\n%s", next, out.String())
		}
		rest = after
	}
}

// U-28: --version says which build this is, and a variable VERSION, which many a container has, is nothing to us.
func TestU28_TheVersionOfABuild(t *testing.T) {
	t.Parallel()
	started := false
	program := commandline.Program{Name: "joiner", Short: "It launches nodes.", Example: "x",
		Start: func(context.Context) error { started = true; return nil }}
	lookup := func(name string) (string, bool) { return "1.2.3", name == "VERSION" }
	var out, err bytes.Buffer
	for _, flag := range []string{"--version", "-v"} {
		out.Reset()
		if code := commandline.Run(t.Context(), program, []string{flag}, lookup, &out, &err); code != 0 || started ||
			!strings.HasPrefix(out.String(), "joiner ") || !strings.HasSuffix(out.String(), runtime.GOARCH+"\n") {
			t.Errorf("%s: exit %d, started %t, %q, %q", flag, code, started, out.String(), err.String())
		}
	}
	if code := commandline.Run(t.Context(), program, nil, lookup, &out, &err); code != 0 || !started {
		t.Errorf("with a variable VERSION: exit %d, started %t, %q", code, started, err.String())
	}
	info := &debug.BuildInfo{Main: debug.Module{Version: "v0.4.0"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}}}
	if text := commandline.Version(info, true); !strings.HasPrefix(text, "v0.4.0 commit abc go") {
		t.Errorf("the version is %q", text)
	}
	if text := commandline.Version(nil, false); !strings.HasPrefix(text, "unknown go") {
		t.Errorf("without information the version is %q", text)
	}
}
