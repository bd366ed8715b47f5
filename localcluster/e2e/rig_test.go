package e2e

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

// Generous bounds: they only matter when something is wrong, or the machine is busy with something else.
const (
	soon  = time.Minute
	later = 4 * time.Minute
)

// testRig is a rig with the test's own way to fail.
type testRig struct {
	*rig.Rig
	t *testing.T
}

// newRig starts a cluster with Joiner for this test alone. When the test fails, the end of Joiner's log is printed.
func newRig(t *testing.T, change func(*rig.Options)) *testRig {
	t.Helper()
	options, err := rig.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	options.Log = io.Discard
	if change != nil {
		change(&options)
	}
	ctx, cancel := context.WithTimeout(t.Context(), shared.StartTimeout)
	defer cancel()
	r, err := rig.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			if log, err := os.ReadFile(r.JoinerLog()); err == nil {
				lines := strings.Split(string(log), "\n")
				t.Logf("the end of joiner's log:\n%s", strings.Join(lines[max(0, len(lines)-60):], "\n"))
			}
		}
		if err := r.Stop(); err != nil {
			t.Errorf("stopping the rig: %v", err)
		}
		if _, err := os.Stat(r.Cluster.Dir()); !os.IsNotExist(err) {
			t.Errorf("the cluster's directory %s is left behind (%v)", r.Cluster.Dir(), err)
		}
	})
	return &testRig{Rig: r, t: t}
}

func (r *testRig) apply(manifests string) {
	r.t.Helper()
	if err := r.Apply(r.t.Context(), manifests); err != nil {
		r.t.Fatal(err)
	}
}

func (r *testRig) run(args ...string) string {
	r.t.Helper()
	output, err := r.Kubectl(r.t.Context(), "", args...)
	if err != nil {
		r.t.Fatal(err)
	}
	return output
}

// eventually waits for a condition; look says what it saw.
func (r *testRig) eventually(within time.Duration, what string, look func(context.Context) (bool, string, error)) {
	r.t.Helper()
	if err := r.Eventually(r.t.Context(), within, what, look); err != nil {
		r.t.Fatalf("%v\n%s", err, r.standing())
	}
}

// standing returns what a failed wait has to show: the objects, with the pods that may keep a node, and what the first
// NodeClaims and nodes say of themselves.
func (r *testRig) standing() string {
	const most = 20_000 // bytes of YAML: some three claims and nodes
	ctx := context.WithoutCancel(r.t.Context())
	table, _ := r.Kubectl(ctx, "", "get", "nodepools,nodeclaims,nodes,pods", "-A", "-o", "wide")
	whole, _ := r.Kubectl(ctx, "", "get", "nodeclaims,nodes", "-o", "yaml")
	return table + "\n" + whole[:min(len(whole), most)]
}

func (r *testRig) claims(ctx context.Context) ([]karpenterv1.NodeClaim, error) {
	var list karpenterv1.NodeClaimList
	err := r.Client.List(ctx, &list)
	return list.Items, err
}

func (r *testRig) nodes(ctx context.Context) (map[string]corev1.Node, error) {
	var list corev1.NodeList
	err := r.Client.List(ctx, &list)
	byName := map[string]corev1.Node{}
	for _, node := range list.Items {
		byName[node.Name] = node
	}
	return byName, err
}

func (r *testRig) pods(ctx context.Context, options ...client.ListOption) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := r.Client.List(ctx, &list, append([]client.ListOption{client.InNamespace("default")}, options...)...)
	return list.Items, err
}

// allRunning waits until there are n pods in the default namespace and all of them run.
func (r *testRig) allRunning(n int, within time.Duration) {
	r.t.Helper()
	r.eventually(within, fmt.Sprintf("%d running pods", n), func(ctx context.Context) (bool, string, error) {
		pods, err := r.pods(ctx)
		running := 0
		for _, pod := range pods {
			if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
				running++
			}
		}
		return running == n && len(pods) == n, fmt.Sprintf("%d of %d pods run", running, len(pods)), err
	})
}

// nothingLeft waits until there is no NodeClaim and no Node.
func (r *testRig) nothingLeft(within time.Duration) {
	r.t.Helper()
	r.eventually(within, "no NodeClaim and no Node", func(ctx context.Context) (bool, string, error) {
		claims, err := r.claims(ctx)
		if err != nil {
			return false, "", err
		}
		nodes, err := r.nodes(ctx)
		return len(claims)+len(nodes) == 0, fmt.Sprintf("%d NodeClaims, %d nodes", len(claims), len(nodes)), err
	})
}

// oneNodePerClaim demands that our claims and nodes correspond one to one: no second instance for a claim, and none
// without a claim.
func (r *testRig) oneNodePerClaim() {
	r.t.Helper()
	var wrong []string
	r.eventually(soon, "the claims to go whose nodes are gone", func(ctx context.Context) (bool, string, error) {
		claims, err := r.claims(ctx)
		if err != nil {
			return false, "", err
		}
		nodes, err := r.nodes(ctx)
		if err != nil {
			return false, "", err
		}
		byProvider := map[string]int{}
		for _, node := range nodes {
			byProvider[node.Spec.ProviderID]++
		}
		wrong = nil
		for _, claim := range claims {
			n := byProvider[claim.Status.ProviderID]
			if n == 0 && claim.DeletionTimestamp != nil {
				return false, claim.Name, nil // a claim goes a moment after its node
			}
			if n != 1 {
				wrong = append(wrong, fmt.Sprintf("NodeClaim %s (%s) has %d nodes, want 1", claim.Name,
					claim.Status.ProviderID, n))
			}
		}
		if len(nodes) != len(claims) {
			wrong = append(wrong, fmt.Sprintf("%d nodes for %d NodeClaims", len(nodes), len(claims)))
		}
		return true, "", nil
	})
	for _, problem := range wrong {
		r.t.Error(problem)
	}
}

// price sums the nodes' prices, in dollars per hour.
func (r *testRig) price() float64 {
	r.t.Helper()
	nodes, err := r.nodes(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	sum := 0.0
	for name, node := range nodes {
		price, err := strconv.ParseFloat(node.Labels["eks-node-viewer/instance-price"], 64)
		if err != nil {
			r.t.Fatalf("node %s has no price: %v", name, err)
		}
		sum += price
	}
	return sum
}

// kwokPool returns a NodePool of KWOK nodes with further lines under spec.template.spec and under spec.
func kwokPool(name, template, spec string) string {
	return fmt.Sprintf(`
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %s}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
%s
%s
`, name, indent(template, 6), indent(spec, 2))
}

const amd64Linux = `requirements:
- {key: kubernetes.io/arch, operator: In, values: [amd64]}
- {key: kubernetes.io/os, operator: In, values: [linux]}`

// quick lets empty nodes go at once.
const quick = `disruption:
  consolidateAfter: 0s
  budgets: [{nodes: "100%"}]`

func indent(text string, by int) string {
	if text == "" {
		return ""
	}
	return strings.Repeat(" ", by) + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+strings.Repeat(" ", by))
}

// deployment returns a Deployment with further lines in its pods' spec.
func deployment(name string, replicas int, requests, podSpec string) string {
	return fmt.Sprintf(`
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: main, image: example.invalid/main, resources: {requests: %[3]s}}
%[4]s
`, name, replicas, requests, indent(podSpec, 6))
}

// guard returns a PodDisruptionBudget for a deployment's pods; rule is one line such as maxUnavailable: 0.
func guard(app, rule string) string {
	return fmt.Sprintf(
		"\n---\napiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: %[1]s, namespace: default}\n"+
			"spec: {%[2]s, selector: {matchLabels: {app: %[1]s}}}\n",
		app, rule)
}

func conditionOf(conditions []karpenterv1.Condition, name string) (status, reason, message string) {
	for _, c := range conditions {
		if string(c.Type) == name {
			return string(c.Status), c.Reason, c.Message
		}
	}
	return "", "", ""
}
