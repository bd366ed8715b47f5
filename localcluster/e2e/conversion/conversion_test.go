// Package conversion tests what only a real API server can show about v1beta1: it accepts the CRDs with both versions,
// and handles the answers of the conversion webhook. The test serves the webhook; nothing else runs.
package conversion

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/joiner-autoscaler/joiner/api/crd"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/internal/convert"
	"github.com/joiner-autoscaler/joiner/internal/webhook"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

const timeout = 3 * time.Minute

// oldDefinition is a CRD of v1beta1 that accepts everything, as a much older one could.
const oldDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: nodepools.karpenter.sh}
spec:
  group: karpenter.sh
  scope: Cluster
  names: {kind: NodePool, listKind: NodePoolList, plural: nodepools, singular: nodepool, categories: [karpenter]}
  versions:
  - name: v1beta1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// pool returns a NodePool of v1beta1 with this name and block disruption.
func pool(name, disruption string) string {
	return fmt.Sprintf(`
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: %s}
spec:
  template:
    spec:
      nodeClassRef: {apiVersion: karpenter.k8s.aws/v1beta1, kind: EC2NodeClass, name: default}
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
      kubelet: {maxPods: 20}
      resources: {requests: {cpu: "1"}}
  disruption: %s
  limits: {cpu: "10", memory: 8192Mi}
`, name, disruption)
}

type rig struct {
	t       *testing.T
	cluster *cluster.Cluster
	client  dynamic.Interface
}

// start runs an API server, and the webhook that its CRDs will name.
func start(t *testing.T) (r *rig, manifests map[string][]byte) {
	t.Helper()
	binary, err := cluster.BinaryFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	running, err := cluster.Start(ctx,
		cluster.Options{Binary: binary, Components: []cluster.Component{cluster.Etcd, cluster.APIServer}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := clientcmd.BuildConfigFromFlags("", running.AdminKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	converter, err := convert.New(convert.Config{})
	if err != nil {
		t.Fatal(err)
	}
	door, err := webhook.NewConversion(webhook.ConversionConfig{Converter: converter})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(door)
	t.Cleanup(server.Close)
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	manifests, err = crd.Converting(crd.Webhook{URL: server.URL + webhook.ConversionPath, CABundle: bundle})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t: t, cluster: running, client: client}, manifests
}

// kubectl runs kubectl and returns both outputs.
func (r *rig) kubectl(input string, args ...string) (string, error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), timeout)
	defer cancel()
	command := r.cluster.Kubectl(ctx, args...)
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	return string(output), err
}

func (r *rig) must(input string, args ...string) string {
	r.t.Helper()
	output, err := r.kubectl(input, args...)
	if err != nil {
		r.t.Fatalf("kubectl %v: %v\n%s", args, err, output)
	}
	return output
}

// joinerctl runs a command of ours against the cluster.
func (r *rig) joinerctl(args ...string) (int, string) {
	r.t.Helper()
	var out bytes.Buffer
	code := cli.Run(r.t.Context(), cli.Config{
		Client: func(cli.Connection) (dynamic.Interface, error) { return r.client, nil }, In: strings.NewReader(""),
		Out: &out, Err: &out,
	}, args)
	return code, out.String()
}

func (r *rig) get(version, name string) map[string]any {
	r.t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(r.must("", "get", "nodepools."+version+".karpenter.sh", name, "-o", "json")),
		&o); err != nil {
		r.t.Fatal(err)
	}
	return o
}

// install applies the CRDs with both versions and waits until v1 is served.
func (r *rig) install(manifests map[string][]byte) {
	r.t.Helper()
	var all bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(manifests)) {
		all.WriteString("---\n")
		all.Write(bytes.TrimPrefix(manifests[name], []byte("---\n")))
	}
	r.must(all.String(), "apply", "--server-side", "--force-conflicts", "-f", "-")
	r.must("", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	r.eventually("v1 to be served", func() (bool, string) {
		output, err := r.kubectl("", "get", "nodepools.v1.karpenter.sh")
		return err == nil, output
	})
}

func (r *rig) eventually(what string, done func() (bool, string)) {
	r.t.Helper()
	last := ""
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		ok, seen := done()
		if ok {
			return
		}
		last = seen
	}
	r.t.Fatalf("waited in vain for %s: %s", what, last)
}

// V-20, V-21, V-24, V-25: a cluster has objects of v1beta1, one of them broken. It gets the CRDs with both versions,
// works on in both, and ends without v1beta1.
func TestAClusterOfV1beta1(t *testing.T) {
	t.Parallel()
	r, manifests := start(t)
	r.must(oldDefinition, "apply", "-f", "-")
	r.must("", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	r.must(pool("good", "{consolidationPolicy: WhenEmpty, consolidateAfter: 30s}")+"---"+
		pool("broken", "{expireAfter: banana}"), "apply", "-f", "-")
	r.install(manifests)

	r.bothAreListed()
	r.brokenSurvives()
	r.writes()
	r.applies()
	r.migrates()
}

// v1Pool is the pool of pool(name, "{expireAfter: 24h}"), written in v1.
const v1Pool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: gitops}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
      expireAfter: 24h
  limits: {cpu: "10", memory: 8192Mi}
`

// applies: V-21, server-side apply of the same manifest changes nothing, and its manager can switch to v1.
func (r *rig) applies() {
	apply := func(manifest string) map[string]any {
		r.must(manifest, "apply", "--server-side", "--field-manager=gitops", "-f", "-")
		return r.get("v1", "gitops")
	}
	version := func(o map[string]any) any { return o["metadata"].(map[string]any)["resourceVersion"] }
	first := apply(pool("gitops", "{expireAfter: 24h}"))
	if again := apply(pool("gitops", "{expireAfter: 24h}")); version(again) != version(first) {
		r.t.Errorf("applied again it changes:\n%v\n%v", first, again)
	}
	later := apply(v1Pool)
	if fmt.Sprint(later["spec"]) != fmt.Sprint(first["spec"]) {
		r.t.Errorf("in v1 its spec changes:\n%v\n%v", first["spec"], later["spec"])
	}
	annotations := later["metadata"].(map[string]any)["annotations"].(map[string]any)
	if annotations[karpenterv1.ConversionProblemAnnotationKey] != nil ||
		annotations[karpenterv1.KubeletCompatibilityAnnotationKey] != nil {
		r.t.Errorf("annotations in v1 are %v", annotations) // docs/migrating-v1beta1.md: the kubelet block goes
	}
	if again := apply(v1Pool); version(again) != version(later) {
		r.t.Errorf("applied again in v1 it changes:\n%v\n%v", later, again)
	}
}

// bothAreListed: V-24, the broken object does not prevent a list of both, and says what is wrong.
func (r *rig) bothAreListed() {
	var list karpenterv1.NodePoolList
	if err := json.Unmarshal([]byte(r.must("", "get", "nodepools.v1.karpenter.sh", "-o", "json")), &list); err != nil {
		r.t.Fatal(err)
	}
	if len(list.Items) != 2 || list.Items[1].Name != "good" ||
		list.Items[1].Annotations[karpenterv1.ConversionProblemAnnotationKey] != "" {
		r.t.Fatalf("list %+v", list)
	}
	problem := list.Items[0].Annotations[karpenterv1.ConversionProblemAnnotationKey]
	if !strings.HasPrefix(problem,
		`spec.disruption.expireAfter is "banana": it must be a string. ExpireAfter is how long`) {
		r.t.Errorf("problem %q", problem)
	}
	if table := r.must("", "get", "nodepools.v1.karpenter.sh"); !strings.Contains(table, "False") {
		r.t.Errorf("READY does not tell:\n%s", table)
	}
	good := list.Items[1]
	if good.Spec.Template.Spec.ExpireAfter.String() != "720h" ||
		good.Spec.Disruption.ConsolidateAfter.String() != "30s" ||
		good.Spec.Template.Spec.NodeClassRef.Group != "karpenter.k8s.aws" ||
		good.Annotations[karpenterv1.KubeletCompatibilityAnnotationKey] != `{"maxPods":20}` {
		r.t.Errorf("good is %+v", good)
	}
}

// brokenSurvives: V-24, a write through v1 leaves the broken object as it is, and it can be repaired in v1beta1.
func (r *rig) brokenSurvives() {
	r.must("", "annotate", "nodepools.v1.karpenter.sh", "broken", "example.com/touched=yes")
	broken := r.get("v1beta1", "broken")
	if got := field(broken, "spec.disruption.expireAfter"); got != "banana" {
		r.t.Errorf("expireAfter is %s after a write in v1", got)
	}
	annotations := broken["metadata"].(map[string]any)["annotations"].(map[string]any)
	if annotations["example.com/touched"] != "yes" || annotations[karpenterv1.UnconvertedAnnotationKey] != nil {
		r.t.Errorf("annotations %v", annotations)
	}
	r.must("", "patch", "nodepools.v1beta1.karpenter.sh", "broken", "--type=merge", "-p",
		`{"spec":{"disruption":{"expireAfter":"1h"}}}`)
	mended := r.get("v1", "broken")
	if got := field(mended, "spec.template.spec.expireAfter"); got != "1h" {
		r.t.Errorf("mended, expireAfter is %s", got)
	}
	if got := field(mended, "metadata.annotations."+karpenterv1.ConversionProblemAnnotationKey); got != none {
		r.t.Errorf("mended, the problem is %v", got)
	}
}

// writes: V-21, V-24, an object written in one version is read back in it, with the other version's fields. What could
// not be converted is refused.
func (r *rig) writes() {
	if output, err := r.kubectl(pool("new", "{expireAfter: banana}"), "apply", "-f", "-"); err == nil ||
		!strings.Contains(output, "spec.disruption.expireAfter") {
		r.t.Errorf("banana is answered with %s", output)
	}
	r.must(pool("new", "{consolidationPolicy: WhenUnderutilized, expireAfter: 24h}"), "apply", "-f", "-")
	before := r.get("v1beta1", "new")
	if again := r.get("v1beta1", "new"); fmt.Sprint(again) != fmt.Sprint(before) ||
		!strings.Contains(fmt.Sprint(before["spec"]), "maxPods:20") ||
		!strings.Contains(fmt.Sprint(before["spec"]), "requests:map[cpu:1]") {
		r.t.Errorf("read back as %v", before)
	}
	r.must("", "patch", "nodepools.v1.karpenter.sh", "new", "--type=merge", "-p",
		`{"spec":{"hardLimits":{"nodes":3},"disruption":{"consolidateAfter":"2m","budgets":[{"nodes":"0",`+
			`"reasons":["Drifted"]}]},"template":{"spec":{"terminationGracePeriod":"1h"}}}}`)
	r.must("", "patch", "nodepools.v1beta1.karpenter.sh", "new", "--type=merge", "-p", `{"spec":{"weight":7}}`)
	spec := fmt.Sprint(r.get("v1", "new")["spec"])
	for _, want := range []string{"weight:7", "nodes:3", "consolidateAfter:2m", "reasons:[Drifted]",
		"terminationGracePeriod:1h", "expireAfter:24h", "memory:8192Mi"} {
		if !strings.Contains(spec, want) {
			r.t.Errorf("%s is lost: %s", want, spec)
		}
	}
}

// migrates: V-25, the check tells what is left, the storage is rewritten, and then v1beta1 can be removed from the
// CRD.
func (r *rig) migrates() {
	if code, out := r.joinerctl("migrate", "check"); code != cli.CodeFindings ||
		!strings.Contains(out, "nodepools.karpenter.sh: StoredVersion") || !strings.Contains(out, "OldWriter") {
		r.t.Errorf("check: exit %d\n%s", code, out)
	}
	if code, out := r.joinerctl("migrate", "storage", "--yes"); code != cli.CodeFine || !strings.Contains(out,
		"nodepools.karpenter.sh: 4 rewritten; all is stored in v1") {
		r.t.Fatalf("storage: exit %d\n%s", code, out)
	}
	if code, out := r.joinerctl("migrate", "check"); code != cli.CodeFindings ||
		strings.Contains(out, "StoredVersion") {
		r.t.Errorf("check after it: exit %d\n%s", code, out)
	}
	installed, err := crd.Manifests()
	if err != nil {
		r.t.Fatal(err)
	}
	r.must(string(installed["karpenter.sh_nodepools.yaml"]), "replace", "-f", "-")
	r.eventually("the pools without v1beta1", func() (bool, string) {
		output, err := r.kubectl("", "get", "nodepools", "-o", "name")
		return err == nil && strings.Count(output, "nodepool.karpenter.sh/") == 4, output
	})
}

// V-20: the API server refuses manifests that name no webhook. Without conversion it would mistake one version for the
// other.
func TestManifestsWithoutAWebhookAreRefused(t *testing.T) {
	t.Parallel()
	r, _ := start(t)
	manifests, err := crd.Unconverted()
	if err != nil {
		t.Fatal(err)
	}
	if output, err := r.kubectl(string(manifests["karpenter.sh_nodepools.yaml"]), "apply", "--server-side", "-f",
		"-"); err == nil || !strings.Contains(output, "spec.conversion.webhookClientConfig: Required value") {
		t.Errorf("answered with %s", output)
	}
}
