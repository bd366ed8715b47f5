// Package nodescheduling tests the node scheduling policy as an admission plugin of a real kube-apiserver: the requests that
// joiner-webhook is tested with (package protection) and the same answers, every way to a protected node, and that what
// does everything right is not disturbed.
//
// The ids in the names are those of docs/spec/node-scheduling-policy.md. The binary comes from the environment: see
// cluster.BinaryFromEnv. Without it the tests fail. The policy concerns the whole cluster, so tests of one cluster run one
// after another.
package nodescheduling

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

const (
	// startTimeout bounds the start of the control plane, on a machine that also compiles.
	startTimeout = 5 * time.Minute
	// within is how long the specification gives a change to be in force (N7, N10, N54, N55).
	within = 5 * time.Second
	// workloadsWithin bounds what controllers, scheduler and fake kubelets do together.
	workloadsWithin = 30 * time.Second
	poll            = 50 * time.Millisecond
)

// The two clusters of the package, each started once. TestMain owns their end.
var (
	// bare has an API server only, so that pods stay as they are.
	bare = sync.OnceValues(func() (*guarded, error) { return startGuarded(cluster.Etcd, cluster.APIServer) })
	// whole has controllers, scheduler and kubelets.
	whole = sync.OnceValues(func() (*guarded, error) { return startGuarded() })
)

// started receives the clusters that were started; TestMain reads it after the last test.
var started = make(chan *guarded, 2)

func TestMain(m *testing.M) {
	code := m.Run()
	close(started)
	for g := range started {
		if err := g.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping a control plane:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}
