package takeover

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/bench/internal/peer"
)

// joinerctlEnv names the program that asks, and framesEnv a folder for its output, for people who want to see it.
const (
	joinerctlEnv = "JOINER_JOINERCTL"
	framesEnv    = "JOINER_FRAMES"
)

// huge is a pod that fits no machine.
const huge = `
---
apiVersion: v1
kind: Pod
metadata: {name: huge, namespace: default}
spec: {containers: [{name: main, image: example.invalid/main, resources: {requests: {cpu: '900'}}}]}
`

// top is what the test checks in the answer.
type top struct {
	Items []struct {
		Name, Pool, State string
		Pods              *int
		PricePerHour      *json.Number
	}
	Status struct {
		Controller struct{ Program string }
		Pools      []struct {
			Name  string
			Nodes int
		}
		Waiting []struct {
			Code  string
			Count int
		}
	}
}

// U-05, U-20: in a cluster that Karpenter's own controller runs, top and status show the nodes, what runs on them, how
// many each pool has, and what waits.
func TestU05_TopWhereKarpenterDecides(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.must(peer.Install(t.Context(), c.Rig))
	c.controlledBy(peer.Program(binary(t)), func() {
		c.must(c.Apply(t.Context(), pools))
		c.workload(28, 6)
		c.must(c.Apply(t.Context(), huge))
		var nodes corev1.NodeList
		var pods corev1.PodList
		c.must(c.Client.List(t.Context(), &nodes))
		c.must(c.Client.List(t.Context(), &pods))
		on, of := map[string]int{}, map[string]int{}
		for _, pod := range pods.Items {
			on[pod.Spec.NodeName]++
		}
		for _, node := range nodes.Items {
			of[node.Labels[karpenterv1.NodePoolLabelKey]]++
		}
		var said top
		c.must(json.Unmarshal(c.asked("top", "-o", "json"), &said))
		if len(said.Items) != len(nodes.Items) {
			t.Errorf("%d nodes, top has %d", len(nodes.Items), len(said.Items))
		}
		for _, node := range said.Items {
			if node.Pods == nil || *node.Pods != on[node.Name] || node.PricePerHour == nil || node.State != "ready" {
				t.Errorf("%+v: %d pods are on it", node, on[node.Name])
			}
		}
		for _, pool := range said.Status.Pools {
			if pool.Nodes != of[pool.Name] {
				t.Errorf("%+v: it has %d nodes", pool, of[pool.Name])
			}
		}
		if w := said.Status.Waiting; len(w) != 1 || w[0].Count != 1 || w[0].Code != "PodTooLarge" {
			t.Errorf("waiting: %+v, want the pod that is too large", w)
		}
		status := string(c.asked("status"))
		// The peer runs without leader election here, so there is no lease, and status says that.
		if !strings.HasPrefix(status, "no leader ") || !strings.Contains(status, "1 PodTooLarge") {
			t.Errorf("status says\n%s", status)
		}
		c.shown("top.txt", c.asked("top"))
		c.shown("status.txt", []byte(status))
	})
}

// asked returns what joinerctl prints; it must end with 0 or 1.
func (c *cluster) asked(args ...string) []byte {
	c.t.Helper()
	var out, failures bytes.Buffer
	command := exec.CommandContext(c.t.Context(), os.Getenv(joinerctlEnv), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.Cluster.AdminKubeconfig())
	command.Stdout, command.Stderr = &out, &failures
	err := command.Run()
	var ended *exec.ExitError
	if err != nil && !(errors.As(err, &ended) && ended.ExitCode() == 1) {
		c.t.Fatalf("joinerctl %s: %v, %s: run `make bin/joinerctl` and set %s to its absolute path",
			strings.Join(args, " "), err, failures.String(), joinerctlEnv)
	}
	return out.Bytes()
}

// shown keeps what was shown.
func (c *cluster) shown(name string, data []byte) {
	c.t.Helper()
	if folder := os.Getenv(framesEnv); folder != "" {
		c.must(os.WriteFile(filepath.Join(folder, name), data, 0o600))
	}
}
