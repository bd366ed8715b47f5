package takeover

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/bench/internal/peer"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

const (
	// roundsEnv names how many times the cluster goes there and back; the default is 3.
	roundsEnv = "JOINER_SWITCH_ROUNDS"
	helmEnv   = "JOINER_HELM4"
	// space is the namespace of Karpenter's release, and name its name.
	space, name = "karpenter", "karpenter"
	// phase is how long pods come and go under each controller.
	phase = 20 * time.Second
)

// given is a file of values as a user of Karpenter's chart for KWOK has it.
const given = `
controller:
  image: {repository: registry.example.com/kwok, tag: v1.15.0}
  resources: {requests: {cpu: 500m, memory: 512Mi}, limits: {memory: 1Gi}}
  env: [{name: KUBE_CLIENT_QPS, value: "150"}]
logLevel: debug
podAnnotations: {example.com/owner: platform}
serviceMonitor: {enabled: false}
settings:
  batchMaxDuration: 5s
  featureGates: {nodeRepair: false, spotToSpotConsolidation: false, staticCapacity: false, capacityBuffer: false}
`

// tight is a pool whose limit Karpenter exceeds in one batch, with a budget of one node at a time.
const tight = `
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: tight}
spec:
  limits: {nodes: "2"}
  disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: Never, budgets: [{nodes: "1"}]}
  template:
    metadata: {labels: {example.com/pool: tight}}
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}
      taints: [{key: example.com/tight, effect: NoSchedule}]
      requirements: [{key: kubernetes.io/os, operator: In, values: [linux]}]
`

const ontight = `
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: tight}}}
      tolerations: [{key: example.com/tight, operator: Exists}]
      nodeSelector: {example.com/pool: tight}`

// release is the release of Karpenter's chart in a cluster. It is upgraded to Joiner's chart, and back to Karpenter's.
// No pod of it runs: the test runs the program that its Deployment describes, with its variables, arguments and
// rights.
type release struct {
	*cluster
	*ledger
	helm, chart, values string
	running             *rig.Controller
}

// K-31, K-23, K-24: while pods come and go, a release of Karpenter's chart is upgraded to Joiner's, with its own file
// of values, and back, several times. Only what was foretold happens: no machine is lost, none is launched twice,
// nothing drifts.
func TestK31_ThereAndBackUnderLoad(t *testing.T) {
	t.Parallel()
	r := startRelease(t)
	r.upgrade(r.chart, "install", "--create-namespace", "--skip-crds", "--values", r.values)
	r.takesOver("karpenter", binary(t), "LEADER_ELECTION_NAMESPACE="+space)
	r.must(r.Apply(t.Context(), pools+tight))
	r.must(r.Apply(t.Context(), deployment("tight", 5, ontight)))
	r.allOf("tight", 5)
	r.ends(10, 3)
	r.ledger = openLedger(t, r.Client)
	removed := r.foretold()
	stop := r.underLoad()
	for round := range rounds(t) {
		r.toJoiner(round)
		if round == 0 {
			r.comesTrue(removed)
		}
		r.lasts(phase)
		r.hashesAreEqual()
		r.back(round)
		r.lasts(phase)
		r.hashesAreEqual()
	}
	stop()
	r.ends(10, 3)
	r.settled()
	if err := r.running.Kill(); err != nil {
		t.Error(err)
	}
}

func rounds(t *testing.T) int {
	text := os.Getenv(roundsEnv)
	if text == "" {
		return 3
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: want a number from 1", roundsEnv, text)
	}
	return n
}

// startRelease starts a cluster with Karpenter's definitions, as its chart of definitions installs them, and finds its
// chart.
func startRelease(t *testing.T) *release {
	t.Helper()
	r := &release{cluster: start(t), helm: os.Getenv(helmEnv), values: filepath.Join(t.TempDir(), "values.yaml")}
	if r.helm == "" {
		t.Fatalf("%s is not set: run `make bin/helm4` and set it to the absolute path of that file", helmEnv)
	}
	r.must(os.WriteFile(r.values, []byte(given), 0o600))
	r.chart = filepath.Join(module(t), "kwok", "charts")
	r.must(peer.Install(t.Context(), r.Rig))
	return r
}

// module returns the directory of Karpenter's module.
func module(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"sigs.k8s.io/karpenter").Output()
	if err != nil || len(out) == 0 {
		t.Fatalf("go list -m sigs.k8s.io/karpenter: %v: run `go mod download` in bench", err)
	}
	return strings.TrimSpace(string(out))
}

// runs runs a program of ours or Helm as the admin. want says which exit codes are right.
func (r *release) runs(path string, want func(code int) bool, args ...string) string {
	r.t.Helper()
	command := r.Cluster.Program(r.t.Context(), path, args...)
	home := r.t.TempDir()
	command.Env = append(command.Env, "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := command.CombinedOutput()
	if command.ProcessState == nil || !want(command.ProcessState.ExitCode()) {
		r.t.Fatalf("%s %v: %v\n%s", filepath.Base(path), args, err, out)
	}
	return string(out)
}

func zero(code int) bool { return code == 0 }

// findings reports whether a code of joinerctl is no failure.
func findings(code int) bool { return code < 2 }

// upgrade installs or upgrades the release of the program to a chart.
func (r *release) upgrade(chart, verb string, args ...string) string {
	r.t.Helper()
	return r.runs(r.helm, zero, append([]string{verb, name, chart, "--namespace", space}, args...)...)
}

func (r *release) joinerctl(args ...string) string {
	r.t.Helper()
	return r.runs(os.Getenv(joinerctlEnv), findings, append(args, "--kubeconfig", r.Cluster.AdminKubeconfig())...)
}

// described returns the program that the Deployment of the release describes.
func (r *release) described(called, path string, more ...string) rig.Program {
	r.t.Helper()
	var d appsv1.Deployment
	r.must(r.Client.Get(r.t.Context(), client.ObjectKey{Namespace: space, Name: name}, &d))
	pod := d.Spec.Template.Spec
	container := pod.Containers[0]
	return rig.Program{Name: called, User: "system:serviceaccount:" + space + ":" + pod.ServiceAccountName, Path: path,
		Command: func(at rig.Place) ([]string, []string) {
			env := append([]string{"KUBECONFIG=" + at.Kubeconfig}, more...)
			for _, v := range container.Env {
				value := v.Value
				switch {
				case v.Name == "METRICS_PORT":
					value = fmt.Sprint(at.MetricsPort)
				case v.Name == "HEALTH_PROBE_PORT":
					value = fmt.Sprint(at.HealthPort)
				case v.ValueFrom != nil && v.ValueFrom.FieldRef != nil:
					value = space
				case v.ValueFrom != nil && v.Name == "CPU_REQUESTS":
					value = "500"
				case v.ValueFrom != nil:
					value = "1073741824"
				}
				env = append(env, v.Name+"="+value)
			}
			args := container.Args
			if len(args) > 0 { // ours; Karpenter's has none, and finds the cluster by the variable
				args = append(args, "--kubeconfig", at.Kubeconfig)
			}
			return args, env
		}}
}

// takesOver starts the release's program beside the running one, as a Deployment does. Then it ends the old one and
// waits until the new one leads. The new one must not lead before.
func (r *release) takesOver(called, path string, more ...string) {
	r.t.Helper()
	before := r.holder()
	next, err := r.Run(r.t.Context(), r.described(called, path, more...))
	r.must(err)
	old := r.running
	r.running, r.log = next, next.Log()
	r.t.Cleanup(func() { r.tail(next) })
	if old != nil {
		if now := r.holder(); now != before {
			r.t.Errorf("%s led as soon as it started, beside %s: the lease was %s and is %s", called, path, before,
				now)
		}
		if called == "joiner" { // Karpenter does not handle SIGTERM, and keeps the lease
			r.must(old.Kill())
		} else {
			r.must(old.Stop())
		}
	}
	ended := time.Now()
	r.must(r.Eventually(r.t.Context(), within, called+" to lead", func(context.Context) (bool, string, error) {
		now := r.holder()
		return now != "" && now != before, "the lease is held by " + now, nil
	}))
	// This is only a figure: a lease that was not released expires after 15 s, and how soon that is seen depends on
	// the machine.
	r.t.Logf("%s leads, %s after the other one ended", called, time.Since(ended).Round(100*time.Millisecond))
}

func (r *release) tail(of *rig.Controller) {
	if !r.t.Failed() {
		return
	}
	log, _ := os.ReadFile(of.Log())
	lines := strings.Split(string(log), "\n")
	r.t.Logf("the end of %s:\n%s", of.Log(), strings.Join(lines[max(0, len(lines)-40):], "\n"))
}

// holder returns who holds the lease, or "".
func (r *release) holder() string {
	r.t.Helper()
	var lease coordinationv1.Lease
	key := client.ObjectKey{Namespace: space, Name: "karpenter-leader-election"}
	if err := r.Client.Get(r.t.Context(), key, &lease); client.IgnoreNotFound(err) != nil {
		r.must(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// toJoiner switches as docs/takeover.md says: definitions move to a release of ours, then the release is upgraded. The
// first time that is with Karpenter's own file of values, later with the release's values.
func (r *release) toJoiner(round int) {
	r.t.Helper()
	r.joinerctl("takeover", "adopt-crds", "--release", "joiner-crds", "--release-namespace", space)
	r.runs(r.helm, zero, "upgrade", "--install", "joiner-crds", "../../charts/joiner-crds", "--namespace", space,
		"--force-conflicts")
	r.settledWatches()
	args := []string{"--values", r.values, "--reset-values"}
	if round > 0 {
		args = []string{"--reset-then-reuse-values"}
	}
	notes := r.upgrade("../../charts/joiner", "upgrade", append(args, "--set", "image=registry.example.com/joiner:1",
		"--set", "compat.karpenter=true,compat.kwok=true,settings.takeover.grace=10s", "--force-conflicts")...)
	for _, says := range []string{"controller.image.repository: image is given", "deployment/karpenter"} {
		if !strings.Contains(notes, says) {
			r.t.Errorf("the notes do not say %q:\n%s", says, notes)
		}
	}
	r.takesOver("joiner", r.options.Joiner)
}

// back goes back. While Joiner runs, what Karpenter cannot read is patched, and the check finds nothing more. Then the
// release is upgraded to Karpenter's chart, or rolled back, and its definitions are applied.
func (r *release) back(round int) {
	r.t.Helper()
	r.joinerctl("takeover", "check", "--back", "--fix", "--yes")
	r.runs(os.Getenv(joinerctlEnv), zero, "takeover", "check", "--back", "--fail-on", "danger", "--kubeconfig",
		r.Cluster.AdminKubeconfig())
	if round%2 == 0 {
		r.upgrade(r.chart, "upgrade", "--skip-crds", "--values", r.values, "--reset-values", "--force-conflicts")
	} else {
		r.runs(r.helm, zero, "rollback", name, "1", "--namespace", space, "--force-conflicts")
	}
	r.must(peer.Install(r.t.Context(), r.Rig))
	r.settledWatches()
	r.takesOver("karpenter", os.Getenv(peer.BinaryEnv), "LEADER_ELECTION_NAMESPACE="+space)
	r.nothingOfOurs()
}

// foretold asks, while Karpenter leads, the check and a process that only observes what would be done. It returns how
// many nodes of the pool tight Joiner will remove, according to the check.
func (r *release) foretold() int {
	r.t.Helper()
	var said struct {
		Findings []struct{ Severity, Kind, Name, Consequence string }
	}
	out := r.joinerctl("takeover", "check", "--values", r.values, "--from-deployment", space+"/"+name, "-o", "json")
	r.must(json.Unmarshal([]byte(out), &said))
	removed := 0
	for _, f := range said.Findings {
		r.t.Logf("foretold: %s %s %s: %s", f.Severity, f.Kind, f.Name, f.Consequence)
		if f.Kind == "NodePool" && f.Name == "tight" && strings.Contains(f.Consequence, "Joiner removes") {
			_, err := fmt.Sscanf(f.Consequence[strings.Index(f.Consequence, "Joiner removes"):], "Joiner removes %d",
				&removed)
			r.must(err)
		}
		if strings.Contains(f.Consequence, "which the chart joiner does not take") {
			r.t.Errorf("a value of Karpenter's is refused: %s", f.Consequence)
		}
	}
	r.must(r.Apply(r.t.Context(), readRights(r.t)))
	observer, err := r.Run(r.t.Context(), rig.JoinerProgram(r.options.Joiner, "--observe-only"))
	r.must(err)
	r.until(observer, "the pool at its limit, as it would come to rest", func(m map[string]float64) bool {
		return m[`joiner_observed_nodes{nodepool="tight"}`] == 2
	})
	for series, value := range metricsOf(r.cluster, observer) {
		if strings.HasPrefix(series, "joiner_observed_") {
			r.t.Logf("observed: %s %v", series, value)
		}
	}
	r.must(observer.Stop())
	return removed
}

// comesTrue waits until the pool tight has lost as many nodes as foretold, and is at its limit.
func (r *release) comesTrue(removed int) {
	r.t.Helper()
	r.must(r.Eventually(r.t.Context(), within, "the pool tight at its limit",
		func(context.Context) (bool, string, error) {
			left := 0
			for _, claim := range r.cluster.claims() {
				if claim.Labels[karpenterv1.NodePoolLabelKey] == "tight" && claim.DeletionTimestamp == nil {
					left++
				}
			}
			return left == 2, fmt.Sprintf("%d nodes", left), nil
		}))
	if gone := r.wentOf("tight"); gone != removed || removed != 3 {
		r.t.Errorf("%d nodes of the pool tight went, %d were foretold, want 3", gone, removed)
	}
}

// underLoad makes pods come and go until stop is called.
func (r *release) underLoad() (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		plain, apart := []string{"16", "4", "22", "9", "1"}, []string{"4", "1", "5", "2"}
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-time.After(2 * time.Second):
			}
			for app, replicas := range map[string]string{"plain": plain[i%len(plain)], "apart": apart[i%len(apart)]} {
				if out, err := r.Kubectl(ctx, "", "scale", "deployment", app, "--replicas", replicas); err != nil &&
					ctx.Err() == nil {
					r.t.Errorf("%v: %s", err, out)
					return
				}
			}
		}
	}()
	return func() { cancel(); <-done }
}

// lasts lets the load go on for a while.
func (r *release) lasts(length time.Duration) {
	select {
	case <-time.After(length):
	case <-r.t.Context().Done():
	}
	r.faultless()
}

// allOf waits until all pods of a Deployment run.
func (r *release) allOf(app string, n int) {
	r.t.Helper()
	r.must(r.Eventually(r.t.Context(), within, fmt.Sprintf("%d pods of %s", n, app),
		func(ctx context.Context) (bool, string, error) {
			var pods corev1.PodList
			err := r.Client.List(ctx, &pods, client.InNamespace("default"), client.MatchingLabels{"app": app})
			running := 0
			for _, pod := range pods.Items {
				if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
					running++
				}
			}
			return running == n, fmt.Sprintf("%d run", running), err
		}))
}

// hashesAreEqual demands that the claims of a pool have its hash, if neither is being changed.
func (r *release) hashesAreEqual() {
	r.t.Helper()
	const hash, version = karpenterv1.Group + "/nodepool-hash", karpenterv1.Group + "/nodepool-hash-version"
	var pools karpenterv1.NodePoolList
	r.must(r.Client.List(r.t.Context(), &pools))
	seen := 0
	for _, claim := range r.cluster.claims() {
		for _, pool := range pools.Items {
			if claim.Labels[karpenterv1.NodePoolLabelKey] != pool.Name || pool.Annotations[hash] == "" {
				continue
			}
			seen++
			if claim.Annotations[hash] != pool.Annotations[hash] ||
				claim.Annotations[version] != pool.Annotations[version] {
				r.t.Errorf("NodeClaim %s has the hash %s %s, its pool %s %s", claim.Name, claim.Annotations[hash],
					claim.Annotations[version], pool.Annotations[hash], pool.Annotations[version])
			}
		}
	}
	if seen == 0 {
		r.t.Error("no NodeClaim has a pool with a hash")
	}
}

// ends sets the number of pods, and waits until all with room run: the pool tight is at its limit.
func (r *release) ends(plain, each int) {
	r.t.Helper()
	r.must(r.Apply(r.t.Context(), deployment("plain", plain, "")+deployment("apart", each, apart)))
	r.allOf("plain", plain)
	r.allOf("apart", each)
}
