// Command joiner is the node autoscaler's controller. Settings are flags, or environment variables of the same name in
// capitals (--batch-idle-duration is BATCH_IDLE_DURATION); where Karpenter has the setting, it has Karpenter's name.
//
// It exits with 0 when it was asked to stop, with 2 when a flag is wrong and with 1 on any other failure, each time
// with one line for each thing that is wrong.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.LookupEnv, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main with everything it touches as an argument, and returns the exit code.
func run(ctx context.Context, args []string, lookup func(string) (string, bool), stdout, stderr io.Writer) int {
	return commandline.Run(ctx, newProgram(stdout), args, lookup, stdout, stderr)
}
