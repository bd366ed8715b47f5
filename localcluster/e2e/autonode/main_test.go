// Package autonode tests AutoNodePolicy on two real control planes: the management cluster, where the policy lives,
// and a guest cluster, where the wrappers and Karpenter's objects live. joiner-operator runs between them as a process
// of its own, with the identities and the rights that it has in production; nothing else runs.
//
// The ids in the names (R1 to R50) are those of docs/spec/autonode-policy.md. A test says begin(t) first, which gives
// it a guest without pools and a management cluster without policies. The policy of a hosted cluster concerns all of
// its pools, so the tests run one after another.
//
// Both binaries come from the environment: see newFixture. Without them the tests fail.
package autonode

import (
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

const (
	// within is how long the specification gives a change to arrive, in machine time; unchanged is how long a state
	// must stay.
	within    = 10 * time.Second
	unchanged = 3 * time.Second
	poll      = 50 * time.Millisecond
)

// sharedFixture has the control planes of the package.
var sharedFixture = shared.New(newFixture, (*fixture).stop)

func TestMain(m *testing.M) { shared.Main(m, sharedFixture) }
