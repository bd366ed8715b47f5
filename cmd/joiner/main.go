// Command joiner is the node autoscaler's controller. Settings are flags, or environment variables of the same name in
// capitals (--batch-idle-duration is BATCH_IDLE_DURATION); where Karpenter has the setting, it has Karpenter's name.
//
// It exits with 0 when it was asked to stop, with 2 when a flag is wrong and with 1 on any other failure, each time
// with one line for each thing that is wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// usageError is a mistake in flags, environment or the files they name.
type usageError struct{ error }

// run is main with everything it touches as an argument, and returns the exit code.
func run(ctx context.Context, args []string, lookup func(string) (string, bool), stdout, stderr io.Writer) int {
	command := newCommand(lookup, stdout)
	command.SetArgs(args)
	command.SetOut(stdout)
	command.SetErr(stderr)
	err := command.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		fmt.Fprintln(stderr, "joiner:", line)
	}
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintln(stderr, "joiner: see joiner --help")
		return 2
	}
	return 1
}
