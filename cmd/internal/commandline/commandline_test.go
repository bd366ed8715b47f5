package commandline_test

import (
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
