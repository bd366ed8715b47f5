package nodescheduling

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/admission/platform"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/upstream/ckao"
)

// a server configured as by cluster-kube-apiserver-operator lets everything pass until Scheduler has a
// mode. In the mode Enable it admits the pods of every component when their own actor places them, and none of them
// from alice.
func TestA40_TheWholePlatformComesToItsNodes(t *testing.T) {
	stanza, err := ckao.Configuration()
	if err != nil {
		t.Fatal(err)
	}
	list, err := platform.Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, door := range placingtest.Doors() {
		t.Run(string(door), func(t *testing.T) {
			t.Parallel()
			g := beginWith(t, placingtest.Options{Door: door, Policy: string(stanza), World: placing.Nodes +
				namespaces(list), WithScheduler: true,
				Components: []cluster.Component{cluster.Etcd, cluster.APIServer}})
			if err := g.Apply(t.Context(), accounts(list)); err != nil {
				t.Fatal(err)
			}
			g.Expect(t, "allow", dry)
			g.Set(t, configv1.Enable)
			g.Eventually(t, "deny ControlPlane/NodeName", dry)
			g.platform(t, list, "first")
			for _, row := range list.Components {
				for _, step := range row.Replay("hers", "cp1") {
					line := step.Line("alice")
					answer, err := g.Ask(t.Context(), line, placing.People)
					// She binds a pod that nobody could create: the API server judges before it looks for the pod.
					if err != nil || !strings.HasPrefix(answer, "deny ControlPlane/") {
						t.Errorf("%s: %s, %v", line, answer, err)
					}
				}
			}
		})
	}
}

// platform creates and binds the pods of the whole list, each as its actor.
func (g guarded) platform(t *testing.T, list platform.List, prefix string) {
	t.Helper()
	for _, row := range list.Components {
		for _, step := range row.Replay(prefix, "cp1") {
			g.Expect(t, "allow", step.Line(step.User))
		}
	}
}

// beginWith starts a cluster of the test's own.
func beginWith(t *testing.T, options placingtest.Options) guarded {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), shared.StartTimeout)
	defer cancel()
	options.AtEnd = noteRequests
	started, err := placingtest.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		started.ShowLog(t)
		if err := started.Stop(); err != nil {
			t.Error(err)
		}
	})
	return guarded{started}
}

// namespaces returns those of the list, as manifests.
func namespaces(list platform.List) string {
	var all strings.Builder
	for _, row := range list.Components {
		fmt.Fprintf(&all, "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", row.Namespace)
	}
	return all.String()
}

// accounts returns the service accounts of the pods: no controller makes them.
func accounts(list platform.List) string {
	var all strings.Builder
	for _, row := range list.Components {
		fmt.Fprintf(&all, "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {namespace: %s, name: default}\n",
			row.Namespace)
	}
	return all.String()
}
