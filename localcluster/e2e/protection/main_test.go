// Package protection tests the protection of control plane nodes on a real API server that joiner-webhook guards: the
// requests of the evaluator's scripts, sent by the users that they name, through the manifests of the user's page.
//
// The ids in the names are those of docs/spec/node-scheduling-policy.md. Both binaries come from the environment: see
// fixtureFromEnv. Without them the tests fail. The policy concerns the whole cluster, so the tests run one after another.
package protection

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

const (
	// startTimeout bounds the start of the control plane, on a machine that also compiles.
	startTimeout = 5 * time.Minute
	// within is how long the specification gives a change to be in force (N7, N10, N54, N55).
	within = 5 * time.Second
	poll   = 50 * time.Millisecond
)

// sharedFixture starts the control plane of the package once. TestMain owns its end.
var sharedFixture = sync.OnceValues(fixtureFromEnv)

// started receives from fixtureFromEnv's success; TestMain reads it after the last test.
var started = make(chan *fixture, 1)

func TestMain(m *testing.M) {
	code := m.Run()
	select {
	case f := <-started:
		if err := f.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stopping the control plane:", err)
			code = max(code, 1)
		}
	default: // No test asked for it.
	}
	os.Exit(code)
}
