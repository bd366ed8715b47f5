// Package e2e tests what only a real control plane can show: the CRDs as a kube-apiserver reads them, kubectl's
// output, and the controllers with real admission, scheduling and deletion.
//
// Every test that needs no cluster of its own asks sharedEnvironment.Get(t) for the one of the package. It starts at
// the first call, and TestMain stops it. It has the manifests of api/crd, and only the control plane runs in it. Tests
// run in parallel there, so a test names its objects by a prefix of its own and removes them.
//
// The binary comes from the environment variable of cluster.BinaryEnv. Without it the tests fail.
package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/joiner-autoscaler/joiner/api/crd"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

// commandTimeout bounds one kubectl command.
const commandTimeout = time.Minute

// environment is a running control plane with our manifests installed.
type environment struct {
	cluster *cluster.Cluster
	config  *rest.Config
}

// sharedEnvironment is the cluster of the package.
var sharedEnvironment = shared.New(startEnvironment, func(e *environment) error { return e.cluster.Stop() })

func TestMain(m *testing.M) { shared.Main(m, sharedEnvironment) }

func startEnvironment(ctx context.Context) (*environment, error) {
	binary, err := cluster.BinaryFromEnv()
	if err != nil {
		return nil, err
	}
	running, err := cluster.Start(ctx, cluster.Options{Binary: binary})
	if err != nil {
		return nil, err
	}
	env, err := newEnvironment(ctx, running)
	if err != nil {
		return nil, errors.Join(err, running.Stop())
	}
	return env, nil
}

// newEnvironment installs our manifests in a running cluster and waits until they are served.
func newEnvironment(ctx context.Context, running *cluster.Cluster) (*environment, error) {
	config, err := clientcmd.BuildConfigFromFlags("", running.AdminKubeconfig())
	if err != nil {
		return nil, fmt.Errorf("reading the admin's kubeconfig: %w", err)
	}
	config.QPS = -1 // Tests send as fast as they can.
	env := &environment{cluster: running, config: config}
	manifests, err := allManifests()
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(manifests)) {
		all.WriteString("---\n")
		all.Write(bytes.TrimPrefix(manifests[name], []byte("---\n")))
	}
	if _, err := run(env.cluster.Kubectl(ctx, "apply", "--server-side", "-f", "-"), all.String()); err != nil {
		return nil, err
	}
	if _, err := run(env.cluster.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"),
		""); err != nil {
		return nil, err
	}
	return env, nil
}

// allManifests returns the manifests of every kind of cluster, so that the rules of all kinds can be tested in one.
func allManifests() (map[string][]byte, error) {
	all := map[string][]byte{}
	for _, read := range []func() (map[string][]byte, error){crd.Manifests, crd.Management, crd.Guest, crd.OpenShift,
		crd.NodeScheduling} {
		manifests, err := read()
		if err != nil {
			return nil, err
		}
		maps.Copy(all, manifests)
	}
	return all, nil
}

// kubectl runs the real kubectl as the admin and returns what it printed on both outputs. input is its
// standard input. A failure of the command is an error that holds the output.
func (e *environment) kubectl(t *testing.T, input string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandTimeout)
	defer cancel()
	return run(e.cluster.Kubectl(ctx, args...), input)
}

// mustKubectl is kubectl for a command that must succeed.
func (e *environment) mustKubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	output, err := e.kubectl(t, input, args...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

func run(command *exec.Cmd, input string) (string, error) {
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("%v: %w\n%s", command.Args, err, output)
	}
	return string(output), nil
}

// dynamicClient returns a client of its own for a test, and the warnings its requests are answered with.
func (e *environment) dynamicClient(t *testing.T) (dynamic.Interface, *warnings) {
	t.Helper()
	config := rest.CopyConfig(e.config)
	received := &warnings{}
	config.WarningHandler = received
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client, received
}

// warnings collects the Warning headers of answers.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _ string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

// take returns the warnings since the last call.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts := w.texts
	w.texts = nil
	return texts
}
