package protection

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

// A kube-apiserver reads the configuration from a file, as joiner-webhook prints it. The verdicts are the same. Nobody
// can see or delete it through the API, or pose as it. It holds from the API server's first answer on, before a
// webhook runs.
func TestAConfigurationInFilesCannotBeDeleted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), shared.StartTimeout)
	defer cancel()
	started, err := placingtest.Start(ctx, placingtest.Options{
		Door: placingtest.Webhook, FromFiles: t.TempDir(), Policy: placing.Policy, World: placing.Nodes,
		Components: []cluster.Component{cluster.Etcd, cluster.APIServer},
	})
	if err != nil {
		t.Fatal(err)
	}
	g := guarded{started}
	t.Cleanup(func() {
		g.ShowLog(t)
		if err := g.Stop(); err != nil {
			t.Error(err)
		}
	})
	g.ExpectAll(t, placing.Created())
	g.ExpectAll(t, placing.Waiting())
	g.Expect(t, "deny ControlPlane/Binding", "system:kube-scheduler bind app/a to=cp1")

	known := &admissionv1.ValidatingWebhookConfigurationList{}
	if err := g.Client.List(t.Context(), known); err != nil || len(known.Items) > 0 {
		t.Errorf("the API shows %d configurations (%v)", len(known.Items), err)
	}
	if _, err := g.Kubectl(t.Context(), "", "delete", "validatingwebhookconfigurations", "--all"); err != nil {
		t.Error(err)
	}
	posing := &admissionv1.ValidatingWebhookConfiguration{}
	posing.Name = placingtest.Configuration + ".static.k8s.io"
	if err := g.Client.Create(t.Context(), posing); err == nil || !strings.Contains(err.Error(), "static.k8s.io") {
		t.Errorf("a configuration that poses as the file's: %v", err)
	}
	g.Expect(t, "deny ControlPlane/NodeName", dry)

	if err := g.KillWebhook(); err != nil {
		t.Fatal(err)
	}
	if err := g.Cluster.KillComponent(cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	ready := make(chan error, 1)
	go func() { ready <- g.Cluster.StartComponent(ctx, cluster.APIServer) }()
	for up := false; !up; {
		select {
		case err := <-ready:
			if err != nil {
				t.Fatal(err)
			}
			up = true
		default:
		}
		if got, err := g.Ask(t.Context(), dry, placing.People); err == nil && got != "unanswered" {
			t.Fatalf("an API server without its webhook answers %s", got)
		}
	}
	g.Expect(t, "allow", "alice create pod app/ordinary")
	if err := g.StartWebhook(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.Eventually(t, "deny ControlPlane/NodeName", dry)
	g.Eventually(t, "allow", "alice bind app/ordinary to=w1")
}
