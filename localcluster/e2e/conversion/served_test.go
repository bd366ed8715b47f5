package conversion

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/joiner-autoscaler/joiner/api/crd"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/deploy"
	"github.com/joiner-autoscaler/joiner/internal/cli"
	joiner "github.com/joiner-autoscaler/joiner/localcluster/rig"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

// simulated is a NodePool of v1beta1 of simulated nodes, and a pod for one of them.
const simulated = `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: old}
spec:
  template:
    spec:
      nodeClassRef: {apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, name: default}
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
      kubelet: {maxPods: 20}
  disruption: {consolidationPolicy: WhenUnderutilized, expireAfter: 24h}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: example.invalid/main, resources: {requests: {cpu: "1"}}}]
`

// V-20, V-23: joiner itself serves v1beta1 on a cluster whose NodePools are stored in it. It launches for them and
// drifts nothing. It can be switched off once nothing is stored in v1beta1 any more, and not before.
func TestJoinerServesV1beta1(t *testing.T) {
	t.Parallel()
	options, err := joiner.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	options.WithoutJoiner, options.WithoutManifests = true, true
	options.Args = []string{"--v1beta1", "--webhook-url", "https://127.0.0.1:" + port, "--webhook-port", port}
	ctx, cancel := context.WithTimeout(t.Context(), 2*timeout)
	defer cancel()
	running, err := joiner.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := running.Cluster.RESTConfig("admin")
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, cluster: running.Cluster, client: client}
	r.old()
	if err := running.StartJoiner(ctx); err != nil {
		t.Fatal(err)
	}
	claim := r.launches()
	if err := running.StopJoiner(); err != nil {
		t.Fatal(err)
	}
	_, err = running.Run(ctx, joiner.JoinerProgram(options.Joiner))
	if err == nil || !strings.Contains(err.Error(),
		"CustomResourceDefinition nodepools.karpenter.sh has v1beta1 in status.storedVersions") ||
		!strings.Contains(err.Error(), "joinerctl migrate storage") {
		t.Fatalf("switched off while stored: %v", err)
	}
	if err := running.StartJoiner(ctx); err != nil {
		t.Fatal(err)
	}
	if code, out := r.joinerctl("migrate", "storage", "--yes"); code != cli.CodeFine {
		t.Fatalf("storage: exit %d\n%s", code, out)
	}
	if err := running.StopJoiner(); err != nil {
		t.Fatal(err)
	}
	if _, err = running.Run(ctx, joiner.JoinerProgram(options.Joiner)); err != nil {
		t.Fatal(err)
	}
	r.eventually("the CRDs without v1beta1", func() (bool, string) {
		versions := r.must("", "get", "crd", "nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "-o",
			"jsonpath={.items[*].spec.versions[*].name} {.items[*].spec.conversion.strategy}")
		return versions == "v1 v1 None None", versions
	})
	if again := r.must("", "get", "nodeclaims", "-o", "name"); again != claim {
		t.Errorf("the claims were %s and are %s", claim, again)
	}
}

// old makes a cluster whose NodePools have v1beta1 only.
func (r *rig) old() {
	manifests, err := crd.Manifests()
	if err != nil {
		r.t.Fatal(err)
	}
	manifests["karpenter.sh_nodepools.yaml"] = []byte(oldDefinition)
	for _, rights := range []map[string][]byte{deploy.Manifests(), deploy.V1beta1()} {
		for name, content := range rights {
			manifests[name] = content
		}
	}
	var all strings.Builder
	for _, content := range manifests {
		fmt.Fprintf(&all, "---\n%s\n", strings.TrimPrefix(string(content), "---\n"))
	}
	r.must(all.String(), "apply", "--server-side", "-f", "-")
	r.must("", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	r.must(simulated, "apply", "-f", "-")
}

// launches waits for the node of the pod, and returns the NodeClaim.
func (r *rig) launches() (claim string) {
	r.must("", "wait", "--for=condition=Available", "--timeout=120s", "deployment/web")
	inV1 := r.get("v1", "old")
	if spec := fmt.Sprint(inV1["spec"]); !strings.Contains(spec, "expireAfter:24h") ||
		!strings.Contains(spec, "group:karpenter.kwok.sh") {
		r.t.Errorf("in v1 it is %s", spec)
	}
	if again := fmt.Sprint(r.get("v1beta1", "old")["spec"]); !strings.Contains(again, "maxPods:20") {
		r.t.Errorf("in v1beta1 it is %s", again)
	}
	// A second manifest of v1beta1, now that Joiner converts.
	r.must(strings.Replace(simulated[strings.Index(simulated, "---")+4:strings.LastIndex(simulated, "---")],
		"name: old", "name: second", 1), "apply", "-f", "-")
	if output, err := r.kubectl(pool("broken", "{expireAfter: banana}"), "apply", "-f", "-"); err == nil {
		r.t.Errorf("banana is answered with %s", output)
	}
	claim = r.must("", "get", "nodeclaims", "-o", "name")
	if strings.Count(claim, "nodeclaim.karpenter.sh/") != 1 {
		r.t.Errorf("claims %s", claim)
	}
	r.must("", "wait", "--for=condition=Initialized", "--timeout=60s", strings.TrimSpace(claim))
	if conditions := r.must("", "get", "nodeclaims", "-o",
		"jsonpath={.items[*].status.conditions[*].type} {.items[*].spec.expireAfter}"); strings.Contains(conditions,
		karpenterv1.ConditionTypeDrifted) || !strings.HasSuffix(conditions, " 24h") {
		r.t.Errorf("the claim has %s", conditions)
	}
	return claim
}

func freePort(t *testing.T) string {
	t.Helper()
	return fmt.Sprint(shared.Port(t))
}
