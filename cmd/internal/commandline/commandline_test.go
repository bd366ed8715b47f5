package commandline_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline"
)

func TestTheEnvironmentSetsWhatFlagsDoNot(t *testing.T) {
	t.Parallel()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	idle := flags.Duration("batch-idle-duration", time.Second, "")
	port := flags.Int("metrics-port", 8080, "")
	if err := flags.Parse([]string{"--metrics-port", "1"}); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{"BATCH_IDLE_DURATION": "3s", "METRICS_PORT": "2"}
	lookup := func(name string) (string, bool) { value, found := environment[name]; return value, found }
	if err := commandline.FromEnvironment(flags, lookup); err != nil || *idle != 3*time.Second || *port != 1 {
		t.Fatalf("idle %s, port %d, error %v: want 3s from the environment and 1 from the flag", *idle, *port, err)
	}
}

// U-13: the help has every flag under its heading, with the variable of one as an example.
func TestTheHelpHasEveryFlagUnderItsHeading(t *testing.T) {
	t.Parallel()
	planning := commandline.NewGroup("Planning", func(flags *pflag.FlagSet) {
		flags.Duration("batch-idle-duration", time.Second, "how long to wait")
	})
	serving := commandline.NewGroup("Serving", func(flags *pflag.FlagSet) {
		flags.Int("metrics-port", 8080, "where to listen")
	})
	program := commandline.Program{Name: "joiner", Short: "It launches nodes.", Example: "batch-idle-duration", Groups: []commandline.Group{planning, serving}}
	var out, err bytes.Buffer
	if code := commandline.Run(t.Context(), program, []string{"--help"}, func(string) (string, bool) { return "", false }, &out, &err); code != 0 || err.Len() > 0 {
		t.Fatalf("exit %d, %q", code, err.String())
	}
	rest := out.String()
	for _, next := range []string{"It launches nodes.", "--batch-idle-duration is BATCH_IDLE_DURATION", "Planning:", "--batch-idle-duration duration", "Serving:", "--metrics-port int"} {
		_, after, found := strings.Cut(rest, next)
		if !found {
			t.Fatalf("%q is not in the help, or in another place:\n%s", next, out.String())
		}
		rest = after
	}
}
