// Package protection tests what only joiner-webhook has, and not the admission plugin: its certificates, what an API
// server does while the webhook is away or talks nonsense, and a configuration that the API server reads from files.
// Package nodescheduling tests the verdicts, through both doors.
//
// The ids in the names are those of docs/spec/node-scheduling-policy.md. The binaries come from the environment: see
// placingtest.Start. Without them the tests fail. The policy concerns the whole cluster, so the tests run one after
// another.
package protection

import (
	"context"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

const dry = "alice create pod app/- node=cp1 dry-run"

// guarded is a cluster of a test.
type guarded struct{ *placingtest.Guarded }

// sharedCluster is the control plane of the package.
var sharedCluster = shared.New(func(ctx context.Context) (*placingtest.Guarded, error) {
	return placingtest.Start(ctx, placingtest.Options{
		Door: placingtest.Webhook, Policy: placing.Policy, World: placing.Nodes, WithScheduler: true,
		Components: []cluster.Component{cluster.Etcd, cluster.APIServer}, AtEnd: rightsAreNeeded,
	})
}, (*placingtest.Guarded).Stop)

func TestMain(m *testing.M) { shared.Main(m, sharedCluster) }

// begin returns the guarded cluster without pods and without Scheduler.
func begin(t *testing.T) guarded {
	t.Helper()
	g := guarded{sharedCluster.Get(t)}
	g.Clear(t)
	g.Eventually(t, "deny ControlPlane/NodeName", dry)
	t.Cleanup(func() {
		g.Clear(t)
		g.ShowLog(t)
	})
	return g
}

// point makes the API server call what at says, until the test ends.
func (g guarded) point(t *testing.T, at func(i int) admissionv1.WebhookClientConfig) {
	t.Helper()
	before, err := g.WebhookConfiguration(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the test's context is over by then
		if err := g.Point(context.WithoutCancel(t.Context()), func(i int) admissionv1.WebhookClientConfig {
			return before.Webhooks[i].ClientConfig
		}); err != nil {
			t.Error(err)
		}
	})
	if err := g.Point(t.Context(), at); err != nil {
		t.Fatal(err)
	}
}
