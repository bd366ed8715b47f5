package cluster_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

const (
	// helperDirEnv makes the test binary start a cluster in that directory,
	// print the process numbers and wait to be killed.
	helperDirEnv = "JOINER_CLUSTER_TEST_HELPER_DIR"
	startLimit   = 3 * time.Minute
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDirEnv); dir != "" {
		os.Exit(runHelper(dir))
	}
	os.Exit(m.Run())
}

// runHelper is a process that embeds the library.
func runHelper(dir string) int {
	binary, err := cluster.BinaryFromEnv()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	c, err := cluster.Start(ctx, cluster.Options{Binary: binary, Dir: dir, Log: os.Stderr})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := json.NewEncoder(os.Stdout).Encode(c.PIDs()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	<-ctx.Done()
	if err := c.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
