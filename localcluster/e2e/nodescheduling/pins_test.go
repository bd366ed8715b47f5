package nodescheduling

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// made makes a namespace, and returns its UID.
func (g guarded) made(t *testing.T, name string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := g.Client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	return string(namespace.UID)
}

// madeAnew deletes a namespace and makes it again, as anyone with both rights may, and returns its new UID.
func (g guarded) madeAnew(t *testing.T, name string) string {
	t.Helper()
	g.must(t, "delete", "namespace", name)
	return g.made(t, name)
}

// bob deletes a namespace on the list and makes it again. If the entry has the namespace's UID, it authorizes
// nobody any more, and the text says which UID. If it has none, it still holds, and the metric says so. If the service
// account is made again, nothing changes. An entry for a namespace that does not exist is counted.
func TestA11_ANamespaceMadeAnewHasNoEntry(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		const agent = "sa:backup/agent create pod backup/- node=cp1 dry-run"
		first := g.made(t, "backup")
		t.Cleanup(func() {
			if err := g.Clients.CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), "backup",
				metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
		g.Set(t, "", "backup/agent@"+first, "namespace:nowhere")
		g.Eventually(t, "allow", agent)
		g.Expect(t, "allow", "system:admin create pod backup/- node=cp1 dry-run")
		g.must(t, "create", "serviceaccount", "agent", "--namespace=backup")
		g.must(t, "delete", "serviceaccount", "agent", "--namespace=backup")
		g.must(t, "create", "serviceaccount", "agent", "--namespace=backup")
		g.Expect(t, "allow", agent)
		g.sees(t, `node_scheduling_policy_entries{group="ControlPlane",state="pinned"} 1`,
			`node_scheduling_policy_entries{group="ControlPlane",state="dangling"} 1`)

		second := g.madeAnew(t, "backup")
		g.Eventually(t, "deny ControlPlane/NamespaceReplaced", agent)
		g.Expect(t, "deny ControlPlane/NamespaceReplaced", "system:admin create pod backup/- node=cp1 dry-run")
		said, err := g.Kubectl(t.Context(), strings.ReplaceAll(podManifest("said", `, "nodeName": "cp1"`), `"app"`,
			`"backup"`), "--as=system:admin", "--as-group=people", "create", "-f", "-")
		for _, want := range []string{"backup/agent@" + first, "has the UID " + second + " now"} {
			if err == nil || !strings.Contains(said, want) {
				t.Errorf("kubectl says %q, want %q (%v)", said, want, err)
			}
		}
		g.sees(t, `node_scheduling_policy_entries{group="ControlPlane",state="replaced"} 1`)

		g.Set(t, "", "backup/agent")
		g.Eventually(t, "allow", agent)
		g.madeAnew(t, "backup")
		g.Eventually(t, "allow", agent)
		// with ops/default of the file
		g.sees(t, `node_scheduling_policy_entries{group="ControlPlane",state="unpinned"} 2`)
	})
}

// an entry with only the namespace's half lets nobody place pods.
func TestA11_ANamespaceAlonePlacesNothing(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		g.made(t, "alone")
		t.Cleanup(func() {
			if err := g.Clients.CoreV1().Namespaces().Delete(context.WithoutCancel(t.Context()), "alone",
				metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
		g.Set(t, "", "namespace:alone")
		g.Eventually(t, "allow", "system:admin create pod alone/- node=cp1 dry-run")
		g.Expect(t, "deny ControlPlane/NodeName", "sa:alone/default create pod alone/- node=cp1 dry-run")
		g.Expect(t, "deny ControlPlane/NodeName", "sa:alone/namespace create pod alone/- node=cp1 dry-run")
	})
}

// sees waits for lines of the metrics.
func (g guarded) sees(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines { // in any order
		eventuallySees(t, "metrics of the "+string(g.Door), func() (string, error) { return g.Metrics(t.Context()) },
			line)
	}
}
