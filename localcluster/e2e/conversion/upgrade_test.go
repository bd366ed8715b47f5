package conversion

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/api/crd"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/deploy"
	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	joiner "github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// upgrade is a cluster of v1beta1 that Joiner takes to v1.
type upgrade struct {
	*rig
	running *joiner.Rig
	options joiner.Options
	old     client.Client
	before  []string // the fleet, as identities gives it
}

// V-20, V-23, V-25: a cluster's CRDs have v1beta1 only, and its nodes run under the hashes of v1beta1. It gets Joiner
// with --v1beta1, is migrated, and goes on without v1beta1. On the way no node drifts, and no NodeClaim comes or goes.
func TestAnUpgradeFromV1beta1ReplacesNothing(t *testing.T) {
	t.Parallel()
	u := startUpgrade(t)
	u.beforeJoiner()

	must(t, u.running.StartJoiner(t.Context()))
	disturbed := u.watchFleet()
	u.hashesAreRewritten()
	u.calm(u.running.MetricsURL(), disturbed)
	u.migrated()
	u.calm(u.running.MetricsURL(), disturbed)

	disturbed.stop()
	must(t, u.running.StopJoiner())
	without, err := u.running.Run(t.Context(), joiner.JoinerProgram(u.options.Joiner))
	must(t, err)
	u.eventually("v1beta1 to be gone", func() (bool, string) {
		output, err := u.kubectl("", "get", "nodepools.v1beta1.karpenter.sh")
		return err != nil && strings.Contains(output, "could not find the requested resource"), output
	})
	disturbed = u.watchFleet()
	u.calm(fmt.Sprintf("http://127.0.0.1:%d/metrics", without.MetricsPort), disturbed)
	u.worksOn()
}

// startUpgrade makes the cluster: CRDs of v1beta1 alone, what a Karpenter left, and pods on its nodes. Joiner does not
// run.
func startUpgrade(t *testing.T) *upgrade {
	t.Helper()
	options, err := joiner.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	options.WithoutJoiner, options.WithoutManifests = true, true
	options.Args = []string{"--v1beta1", "--webhook-url", "https://127.0.0.1:" + port, "--webhook-port", port}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	running, err := joiner.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if log, err := os.ReadFile(running.JoinerLog()); err == nil && t.Failed() {
			lines := strings.Split(string(log), "\n")
			t.Logf("the end of joiner's log:\n%s", strings.Join(lines[max(0, len(lines)-60):], "\n"))
		}
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := running.Cluster.RESTConfig("admin")
	must(t, err)
	dynamicClient, err := dynamic.NewForConfig(config)
	must(t, err)
	u := &upgrade{rig: &rig{t: t, cluster: running.Cluster, client: dynamicClient}, running: running, options: options}
	u.must(onlyV1beta1(t), "apply", "--server-side", "-f", "-")
	u.must("", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	u.old = oldClient(t, config)
	u.must(oldPools, "apply", "-f", "-")
	for _, pool := range []string{"tidy", "full"} {
		oldMachines(t, u.old, pool)
	}
	u.must(workload("tidy", "")+"---"+workload("full", `
      tolerations: [{key: example.com/own, operator: Exists}]
      nodeSelector: {example.com/team: a}`), "apply", "-f", "-")
	u.must("", "wait", "--for=condition=Available", "--timeout=120s", "deployment", "--all")
	u.before = u.identities("v1beta1")
	return u
}

// onlyV1beta1 returns the CRDs as a Karpenter of v1beta1 installs them, and Joiner's rights.
func onlyV1beta1(t *testing.T) string {
	t.Helper()
	manifests, err := crd.Manifests()
	must(t, err)
	both, err := crd.Unconverted()
	must(t, err)
	for name, content := range both {
		o := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal(content, &o.Object))
		versions, _, err := unstructured.NestedSlice(o.Object, "spec", "versions")
		must(t, err)
		versions = slices.DeleteFunc(versions,
			func(version any) bool { return version.(map[string]any)["name"] != "v1beta1" })
		versions[0].(map[string]any)["storage"] = true
		must(t, unstructured.SetNestedSlice(o.Object, versions, "spec", "versions"))
		unstructured.RemoveNestedField(o.Object, "spec", "conversion")
		manifests[name], err = yaml.Marshal(o.Object)
		must(t, err)
	}
	var all strings.Builder
	for _, set := range []map[string][]byte{manifests, deploy.Manifests(), deploy.V1beta1()} {
		for _, content := range set {
			fmt.Fprintf(&all, "---\n%s\n", strings.TrimPrefix(string(content), "---\n"))
		}
	}
	return all.String()
}

// workload returns a Deployment with a pod for each machine of a pool, which fills the machine.
func workload(pool, more string) string {
	return fmt.Sprintf(`
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
      containers: [{name: main, image: example.invalid/main, resources: {requests: {cpu: 1500m}}}]%[3]s
`, pool, machinesOfEach, more)
}

// identities returns names and UIDs of NodeClaims, nodes and pods, and the node of each pod.
func (u *upgrade) identities(version string) []string {
	u.t.Helper()
	const columns = `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.spec.nodeName}{"\n"}{end}`
	all := u.must("", "get", "nodeclaims."+version+".karpenter.sh", "-o", columns) +
		u.must("", "get", "nodes,pods", "-n", "default", "-o", columns)
	return slices.Sorted(strings.SplitSeq(strings.TrimSpace(all), "\n"))
}

// beforeJoiner: V-25, the check works on a cluster that has v1beta1 only, the migration does not begin too early, and
// the CRDs of v1 alone cannot be installed by mistake.
func (u *upgrade) beforeJoiner() {
	if code, out := u.joinerctl("migrate", "check"); code != cli.CodeFindings ||
		!strings.Contains(out, "nodepools.karpenter.sh: StoredVersion") ||
		!strings.Contains(out, "NodePool full: DifferentKubelets") {
		u.t.Errorf("check: exit %d\n%s", code, out)
	}
	if code, out := u.joinerctl("migrate", "storage", "--yes"); code != cli.CodeFailed || !strings.Contains(out,
		"apply the CRD that stores v1 first") {
		u.t.Errorf("storage: exit %d\n%s", code, out)
	}
	manifests, err := crd.Manifests()
	must(u.t, err)
	if output, err := u.kubectl(string(manifests["karpenter.sh_nodepools.yaml"]), "replace", "-f", "-"); err == nil ||
		!strings.Contains(output, "status.storedVersions[0]: Invalid value: \"v1beta1\"") {
		u.t.Errorf("the CRD of v1 alone is answered with %s", output)
	}
}

// hashesAreRewritten: V-23, the hashes of v1beta1 become those of v1 on every NodePool and NodeClaim.
func (u *upgrade) hashesAreRewritten() {
	u.t.Helper()
	u.eventually("the hashes of v1", func() (bool, string) {
		var pools karpenterv1.NodePoolList
		var claims karpenterv1.NodeClaimList
		for _, list := range []client.ObjectList{&pools, &claims} {
			if err := u.running.Client.List(u.t.Context(), list); err != nil {
				return false, err.Error()
			}
		}
		want := map[string]string{}
		for i := range pools.Items {
			pool := &pools.Items[i]
			want[pool.Name] = translate.Hash(pool)
			if got := pool.Annotations; got[hash] != want[pool.Name] || got[hashVersion] != translate.HashVersion {
				return false, fmt.Sprintf("pool %s has %v", pool.Name, got)
			}
		}
		for _, claim := range claims.Items {
			if got := claim.Annotations; got[hash] != want[claim.Labels[karpenterv1.NodePoolLabelKey]] ||
				got[hashVersion] != translate.HashVersion {
				return false, fmt.Sprintf("claim %s has %v", claim.Name, got)
			}
		}
		return len(pools.Items) == 2 && len(claims.Items) == 2*machinesOfEach,
			fmt.Sprintf("%d pools, %d claims", len(pools.Items), len(claims.Items))
	})
}

// migrated: V-25, the check says what is left, the storage is rewritten, and only v1 is stored.
func (u *upgrade) migrated() {
	code, out := u.joinerctl("migrate", "check")
	for _, want := range []string{
		"nodepools.karpenter.sh: StoredVersion", "nodeclaims.karpenter.sh: StoredVersion",
		"ec2nodeclasses.karpenter.k8s.aws: StoredVersion",
		"NodePool full: CompatibilityAnnotation", "NodePool full: OldWriter", "NodeClaim tidy-0: OldOwner",
		"Node kwok-tidy-0-7: OldOwner",
	} {
		if code != cli.CodeFindings || !strings.Contains(out, want) {
			u.t.Errorf("check: exit %d, without %s\n%s", code, want, out)
		}
	}
	if code, out := u.joinerctl("migrate", "storage", "--yes"); code != cli.CodeFine || !strings.Contains(out,
		fmt.Sprintf(
			"nodeclaims.karpenter.sh: %d rewritten; all is stored in v1\n"+
				"ec2nodeclasses.karpenter.k8s.aws: 0 rewritten; all is stored in v1\nnodes: %[1]d rewritten",
			2*machinesOfEach)) {
		u.t.Fatalf("storage: exit %d\n%s", code, out)
	}
	stored := u.must("", "get", "crd", "nodepools.karpenter.sh", "nodeclaims.karpenter.sh",
		"ec2nodeclasses.karpenter.k8s.aws", "-o", "jsonpath={.items[*].status.storedVersions}")
	if stored != `["v1"] ["v1"] ["v1"]` {
		u.t.Errorf("stored versions are %s", stored)
	}
	if code, out := u.joinerctl("migrate", "check"); code != cli.CodeFindings ||
		strings.Contains(out, "StoredVersion") || strings.Contains(out, "OldOwner") ||
		strings.Contains(out, "OldWriter") {
		u.t.Errorf("check after it: exit %d\n%s", code, out)
	}
}

// calm waits until every controller that could disturb the fleet has gone over it several times, and demands that none
// did.
func (u *upgrade) calm(metrics string, disturbed *journal) {
	u.t.Helper()
	for round := range 3 {
		start := reconciles(u.t, metrics)
		// Nodes are not made from the limits.
		u.must("", "patch", "nodepools", "tidy", "full", "--type=merge", "-p",
			fmt.Sprintf(`{"spec":{"limits":{"cpu":"10%d"}}}`, round))
		u.eventually("the controllers to go round", func() (bool, string) {
			now := reconciles(u.t, metrics)
			for name, steps := range map[string]float64{"nodepool": 2, "nodeclaim.lifecycle": 2 * machinesOfEach,
				"disruption": 1} {
				if done := now[name] - start[name]; done < steps {
					return false, fmt.Sprintf("%s: %v of %v", name, done, steps)
				}
			}
			return true, ""
		})
	}
	if what := disturbed.read(); len(what) > 0 {
		u.t.Fatalf("the fleet is not left as it is:\n%s", strings.Join(what, "\n"))
	}
	if now := u.identities("v1"); !slices.Equal(now, u.before) {
		u.t.Fatalf("the fleet was\n%s\nand is\n%s", strings.Join(u.before, "\n"), strings.Join(now, "\n"))
	}
	events := u.must("", "get", "events", "-A", "-o",
		`jsonpath={range .items[*]}{.reason} {.involvedObject.name}{"\n"}{end}`)
	for line := range strings.SplitSeq(events, "\n") {
		reason, _, _ := strings.Cut(line, " ")
		if slices.Contains([]string{"Drifted", "Expired", "DisruptionLaunching", "DisruptionTerminating", "Disrupted",
			"Evicted", "InstanceGone"}, reason) {
			u.t.Errorf("event %s", line)
		}
	}
}

// worksOn: without v1beta1, Joiner launches from a pool that was written in it. And it ends the machines of a deleted
// pool whose NodeClaims were made in v1beta1.
func (u *upgrade) worksOn() {
	u.must("", "scale", "deployment", "tidy", "--replicas", fmt.Sprint(machinesOfEach+1))
	u.must("", "delete", "deployment", "full")
	u.must("", "delete", "nodepool", "full", "--wait=false")
	u.eventually("a machine more for tidy and none for full", func() (bool, string) {
		var nodes corev1.NodeList
		if err := u.running.Client.List(u.t.Context(), &nodes); err != nil {
			return false, err.Error()
		}
		count := map[string]int{}
		for _, node := range nodes.Items {
			count[node.Labels[karpenterv1.NodePoolLabelKey]]++
		}
		return count["tidy"] == machinesOfEach+1 && count["full"] == 0, fmt.Sprint(count)
	})
	u.must("", "wait", "--for=condition=Available", "--timeout=120s", "deployment/tidy")
}
