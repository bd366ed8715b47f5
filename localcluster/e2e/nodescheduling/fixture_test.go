package nodescheduling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/joiner-autoscaler/joiner/api/crd"
	configv1 "github.com/joiner-autoscaler/joiner/api/openshiftconfig/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
)

// guarded is a cluster whose API server runs the plugin.
type guarded struct {
	*cluster.Cluster
	admin   *rest.Config
	clients kubernetes.Interface
}

// startGuarded starts a cluster with the world of the scripts. No components are all of them.
func startGuarded(components ...cluster.Component) (*guarded, error) {
	binary, err := cluster.BinaryFromEnv()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	running, err := cluster.Start(ctx, cluster.Options{Binary: binary, Components: components, Audit: true, NodeSchedulingPolicy: placing.Policy})
	if err != nil {
		return nil, err
	}
	g := &guarded{Cluster: running}
	if err := g.prepare(ctx); err != nil {
		return nil, errors.Join(err, g.Stop())
	}
	started <- g
	return g, nil
}

func (g *guarded) prepare(ctx context.Context) (err error) {
	if g.admin, err = g.RESTConfig("admin"); err != nil {
		return err
	}
	if g.clients, err = kubernetes.NewForConfig(g.admin); err != nil {
		return err
	}
	manifests, err := crd.OpenShift()
	if err != nil {
		return err
	}
	all := placing.World
	for _, namespace := range placing.Namespaces() {
		all += fmt.Sprintf("---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", namespace)
	}
	for _, manifest := range manifests {
		all += string(manifest)
	}
	if err := g.apply(ctx, all); err != nil {
		return err
	}
	if _, err := g.kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"); err != nil {
		return err
	}
	accounts := ""
	for _, namespace := range placing.Namespaces() {
		accounts += fmt.Sprintf("---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default, namespace: %s}\n", namespace)
	}
	return g.apply(ctx, accounts)
}

func (g *guarded) apply(ctx context.Context, manifests string) error {
	_, err := g.kubectl(ctx, manifests, "apply", "--server-side", "--force-conflicts", "-f", "-")
	return err
}

func (g *guarded) kubectl(ctx context.Context, input string, args ...string) (string, error) {
	command := g.Kubectl(ctx, args...)
	command.Stdin = strings.NewReader(input)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out), nil
}

// begin returns a cluster without pods of the scripts' namespaces and without Scheduler.
func begin(t *testing.T, start func() (*guarded, error)) *guarded {
	t.Helper()
	g, err := start()
	if err != nil {
		t.Fatal(err)
	}
	g.clear(t)
	g.eventually(t, "deny ControlPlane/NodeName", "alice create pod app/- node=cp1 dry-run")
	t.Cleanup(func() {
		g.clear(t)
		if log, err := os.ReadFile(filepath.Join(g.Dir(), "logs", string(cluster.APIServer)+".log")); err == nil && t.Failed() {
			t.Logf("the API server's log:\n%s", log[max(0, len(log)-4000):])
		}
	})
	return g
}

func (g *guarded) clear(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, namespace := range placing.Namespaces() {
		for _, kinds := range []string{"deployments,daemonsets,statefulsets,replicasets,jobs,cronjobs,replicationcontrollers", "pods"} {
			if _, err := g.kubectl(ctx, "", "delete", kinds, "--all", "--namespace="+namespace, "--force", "--grace-period=0"); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := g.kubectl(ctx, "", "delete", "schedulers.config.openshift.io", "--all"); err != nil {
		t.Error(err)
	}
}

// expect sends a line of the script language and compares the answer.
func (g *guarded) expect(t *testing.T, want, line string) {
	t.Helper()
	got, err := placing.Ask(t.Context(), g.admin, line, placing.People)
	if err != nil || got != want {
		t.Errorf("%s: %s (%v), want %s", line, got, err, want)
	}
}

// eventually sends a line until the answer is as wanted, within the time that the specification gives.
func (g *guarded) eventually(t *testing.T, want, line string) {
	t.Helper()
	var got string
	var err error
	for began := time.Now(); time.Since(began) < within; time.Sleep(poll) {
		if got, err = placing.Ask(t.Context(), g.admin, line, placing.People); err == nil && got == want {
			return
		}
	}
	t.Errorf("%s: still %s (%v) after %s, want %s", line, got, err, within, want)
}

// set writes Scheduler.
func (g *guarded) set(t *testing.T, mode configv1.GroupMode, users ...string) {
	t.Helper()
	manifest := fmt.Sprintf("apiVersion: config.openshift.io/v1\nkind: Scheduler\nmetadata: {name: %s}\nspec: {schedulingGroups: [{name: %s, mode: %q, authorizedUsers: [%s]}]}\n",
		configv1.SchedulerName, configv1.ControlPlane, mode, strings.Join(users, ", "))
	if err := g.apply(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
}
