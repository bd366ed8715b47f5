package e2e

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// docs/bad-input.md has the table of what these tests check.

// poolCondition waits until a condition of the pool has the status and its message holds every part.
func (r *testRig) poolCondition(pool, condition, want string, parts ...string) {
	r.t.Helper()
	r.eventually(soon, fmt.Sprintf("NodePool %s to have %s=%s", pool, condition, want),
		func(ctx context.Context) (bool, string, error) {
			var p karpenterv1.NodePool
			if err := r.Client.Get(ctx, client.ObjectKey{Name: pool}, &p); err != nil {
				return false, "", err
			}
			status, reason, message := conditionOf(p.Status.Conditions, condition)
			for _, part := range parts {
				if !strings.Contains(message, part) {
					return false, fmt.Sprintf("%s %s: %s", status, reason, message), nil
				}
			}
			return status == want, fmt.Sprintf("%s %s: %s", status, reason, message), nil
		})
}

// podEvent waits for a FailedScheduling event of ours about a pod that holds every part.
func (r *testRig) podEvent(pod string, parts ...string) {
	r.t.Helper()
	r.eventually(soon, "an event about pod "+pod, func(ctx context.Context) (bool, string, error) {
		output := r.run("get", "events", "-o", "custom-columns=ABOUT:.involvedObject.name,MESSAGE:.message",
			"--no-headers")
		for line := range strings.SplitSeq(output, "\n") {
			all := strings.HasPrefix(line, pod+" ")
			for _, part := range parts {
				all = all && strings.Contains(line, part)
			}
			if all {
				return true, "", nil
			}
		}
		return false, output, nil
	})
}

func pod(name, requests, spec string) string {
	return fmt.Sprintf(
		"\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: default}\nspec:\n  containers:\n"+
			"  - {name: main, image: example.invalid/main, resources: {requests: %s}}\n%s\n",
		name, requests, indent(spec, 2))
}

// P-12, V-11, V-12: for objects that the API server accepts but that cannot work, a condition or an event names the
// field, the value and the remedy. Nothing is launched, nothing loops.
func TestBadObjects(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *rig.Options) { o.Audit = true })
	r.apply(kwokPool("good", amd64Linux, quick))
	r.apply(strings.ReplaceAll(kwokPool("classless", amd64Linux, ""), "name: default}\n      ",
		"name: no-such-class}\n      "))
	r.apply(strings.Replace(kwokPool("foreign", amd64Linux, ""),
		"{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}",
		"{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}", 1))
	r.apply(kwokPool("contradicting", amd64Linux+"\n- {key: kubernetes.io/arch, operator: In, values: [arm64]}", ""))
	r.apply(kwokPool("nowhere", "requirements:\n- {key: topology.kubernetes.io/zone, operator: In, values: [mars-1a]}",
		""))
	r.apply(kwokPool("twice",
		"requirements: []\ntaints:\n- {key: a, effect: NoSchedule}\n- {key: a, value: b, effect: NoSchedule}", ""))
	r.apply(strings.Replace(kwokPool("mistyped", amd64Linux, ""), "name: mistyped",
		"name: mistyped, annotations: {joiner.sh/min-node: '3', joiner.sh/spot-ratio: '70', joiner.sh/node-overhead-price: 1ct}",
		1))
	for _, text := range []string{
		`annotation joiner.sh/min-node is "3" and has no effect: a NodePool has none of that name; do you mean joiner.sh/min-nodes?`,
		`annotation joiner.sh/spot-ratio is "70": want a whole percentage`,
		`annotation joiner.sh/node-overhead-price is "1ct": want a decimal number`,
	} {
		r.told("NodePool", "mistyped", "IgnoredField", text)
	}
	r.run("delete", "nodepool", "mistyped")
	r.apply(faultyPool("unlucky", "slowBoot: [{delay: soon}]", ""))
	r.poolCondition("unlucky", "NodeClassReady", "False", "karpenter.kwok.sh/faults",
		`slowBoot[0].delay: got "soon"; want a duration`)
	r.poolCondition("good", "Ready", "True")
	r.poolCondition("classless", "NodeClassReady", "False", "no-such-class")
	r.poolCondition("classless", "Ready", "False")
	r.poolCondition("contradicting", "InstanceTypesCompatible", "False", "kubernetes.io/arch")
	r.poolCondition("contradicting", "Ready", "False")
	r.poolCondition("nowhere", "InstanceTypesCompatible", "False", "topology.kubernetes.io/zone")
	r.poolCondition("twice", "ValidationSucceeded", "False", "a", "NoSchedule")

	r.apply(pod("giant", "{cpu: '4000'}", "") +
		pod("elsewhere", "{cpu: '1'}", "nodeSelector: {topology.kubernetes.io/zone: mars-1a}") +
		pod("teamless", "{cpu: '1'}", "nodeSelector: {example.com/team: red}"))
	r.podEvent("giant", "PoolNotReady: pool ", "To do: ", "Other pools: ", "1 PodTooLarge")
	r.podEvent("elsewhere", "PoolNotReady: pool ", "Other pools: ", "1 LabelMismatch")
	r.podEvent("teamless", "PoolNotReady: pool ", "Other pools: ", "1 LabelUnknown")
	if claims, err := r.claims(t.Context()); err != nil || len(claims) != 0 {
		t.Errorf("%d claims were created for pods that nothing can hold (%v)", len(claims), err)
	}

	// If nobody here serves a pool's class, the pool is another program's: nothing is written to it.
	if written := r.run("get", "nodepool", "foreign", "-o",
		"jsonpath={.status.conditions}{.metadata.annotations}"); strings.Contains(written, "Ready") ||
		strings.Contains(written, "hash") {
		t.Errorf("another program's pool has %s", written)
	}

	// The class appears after all: the pool recovers by itself.
	r.apply("apiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata: {name: no-such-class}\n")
	r.poolCondition("classless", "Ready", "True")
	// No hot loop: with all this wrong, Joiner is quiet.
	before, err := r.Requests()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Second)
	after, err := r.Requests()
	if err != nil {
		t.Fatal(err)
	}
	if made := changes(after) - changes(before); made > 10 {
		t.Errorf("%d requests in ten quiet seconds; want at most 10\n%s", made, table(after))
	}
}

// V-15: the annotations that v1 dropped do nothing, and an event says what to use instead.
func TestDroppedAnnotations(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, quick))
	r.apply(strings.Replace(pod("old", "{cpu: '1'}", ""), "namespace: default}",
		"namespace: default, annotations: {karpenter.sh/do-not-evict: 'true'}}", 1))
	r.podEvent("old", "karpenter.sh/do-not-evict", "karpenter.sh/do-not-disrupt")
}

// TestBadStarts: if joiner is started wrongly, it soon exits with a non-zero code and one line on standard error.
func TestBadStarts(t *testing.T) {
	t.Parallel()
	options, err := rig.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	nowhere := write("nowhere",
		"apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n"+
			"contexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {}}]\ncurrent-context: a\n")
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() }) // after the subtests
	port := fmt.Sprint(taken.Addr().(*net.TCPAddr).Port)
	env := sharedEnvironment.Get(t)
	alive := env.cluster.AdminKubeconfig()
	// The ports of joiner's defaults may be in use on this machine. The last of equal flags counts.
	none := []string{"--disable-leader-election", "--metrics-port", "0", "--health-probe-port", "0"}
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"no such flag", []string{"--batch-idle", "1s"}, []string{"--batch-idle"}},
		{"a bad value", []string{"--batch-idle-duration", "soon"}, []string{"batch-idle-duration", "soon"}},
		{"no kubeconfig", []string{"--kubeconfig", filepath.Join(dir, "none")}, []string{filepath.Join(dir, "none")}},
		{"a kubeconfig that is none", []string{"--kubeconfig", write("bad", "{")},
			[]string{filepath.Join(dir, "bad")}},
		{"a kubeconfig that points nowhere", []string{"--kubeconfig", nowhere},
			[]string{"https://127.0.0.1:1", "cannot be reached"}},
		{"no catalogue file", []string{"--kubeconfig", alive, "--instance-types-file-path",
			filepath.Join(dir, "none.json")}, []string{"none.json"}},
		{"a malformed catalogue file", []string{"--kubeconfig", alive, "--instance-types-file-path",
			write("types.json",
				`[{"name": "m1", "architecture": "amd64", "operatingSystems": ["linux"], "resources": {"cpu": "2", `+
					`"memory": "4Gi"}, "offerings": [{"Price": -1}]}]`)},
			[]string{"types.json", "m1", "Price", "-1"}},
		{"a malformed faults file", []string{"--kubeconfig", alive, "--kwok-faults-file-path",
			write("faults.yaml", "slowBoot: [{delay: soon}]")}, []string{"--kwok-faults-file-path", "faults.yaml",
			`slowBoot[0].delay: got "soon"; want a duration`}},
		{"a bad file of commitments (K-55)", []string{"--kubeconfig", alive, "--commitments-file",
			write("commitments.yaml", strings.Replace(twoCommitments, "instances: 1", "instances: 0", 1))},
			[]string{"--commitments-file", "commitments.yaml",
				"commitments[0].instances is 0: want a number above 0"}},
		{"an empty file of commitments (K-55)", []string{"--kubeconfig", alive, "--commitments-file",
			write("empty.yaml", "")},
			[]string{"--commitments-file", "empty.yaml",
				"it is empty: want YAML with the list commitments, in which [] stands for none"}},
		{"a second document", []string{"--config", write("two.yaml",
			"apiVersion: config.joiner.sh/v1\nkind: JoinerConfig\n---\nmax-nodes: 5\n")},
			[]string{"two.yaml: it has 2 YAML documents"}},
		{"the value of a switch without =", []string{"--condition-events", "no"},
			[]string{`it takes no argument, and "no" is one`}},
		{"no number of requests", []string{"--kube-client-qps", "NaN"}, []string{"--kube-client-qps is NaN"}},
		{"a port in use", []string{"--kubeconfig", alive, "--metrics-port", port}, []string{"--metrics-port", port}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
			defer cancel()
			command := exec.CommandContext(ctx, options.Joiner, slices.Concat(none, c.args)...)
			output, err := command.CombinedOutput()
			if err == nil || ctx.Err() != nil {
				t.Fatalf("ended with %v (%v); want a failure at once\n%s", err, ctx.Err(), output)
			}
			for _, part := range c.want {
				if !strings.Contains(string(output), part) {
					t.Errorf("the message does not say %q:\n%s", part, output)
				}
			}
			if lines := strings.Count(strings.TrimSpace(string(output)), "\n") + 1; lines > 2 ||
				strings.Contains(string(output), "goroutine ") {
				t.Errorf("%d lines; want one that a person understands:\n%s", lines, output)
			}
			t.Logf("%s", strings.TrimSpace(string(output)))
		})
	}
}

// TestMissingCRDs: on a cluster without its CRDs, Joiner names them and says what to do.
func TestMissingCRDs(t *testing.T) {
	t.Parallel()
	options, err := rig.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	empty, err := cluster.Start(t.Context(), cluster.Options{Binary: options.ControlPlane})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := empty.Stop(); err != nil {
			t.Error(err)
		}
	}()
	output, err := exec.CommandContext(t.Context(), options.Joiner, "--kubeconfig", empty.AdminKubeconfig(),
		"--disable-leader-election", "--metrics-port", "0", "--health-probe-port", "0").CombinedOutput()
	if err == nil || !strings.Contains(string(output), "nodepools.karpenter.sh") ||
		!strings.Contains(string(output), "api/crd") {
		t.Errorf("%v: %s", err, output)
	}
}
