package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/internal/takeover"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// takenAt is the time of these tests.
const takenAt = "2026-11-22T07:00:00Z"

// theirs is a cluster of Karpenter's.
func theirs(t *testing.T, manifests ...string) *fake.FakeDynamicClient {
	t.Helper()
	lists := map[schema.GroupVersionResource]string{configMaps: "List"}
	for _, r := range slices.Concat(whatif.Resources(), takeover.Resources()) {
		lists[r.GroupVersionResource] = "List"
	}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), lists)
	for _, o := range objectsOf(t, manifests...) {
		one := o.(*unstructured.Unstructured)
		resource, _ := meta.UnsafeGuessKindToResource(one.GroupVersionKind())
		if one.GetKind() == "NodeOverlay" {
			resource.Resource = "nodeoverlays" // which the guess takes for another plural
		}
		if err := client.Tracker().Create(resource, o, one.GetNamespace()); err != nil {
			t.Fatal(err)
		}
	}
	return client
}

const (
	kwokClass = "apiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata: {name: default}\n" +
		"status: {conditions: [{type: Ready, status: \"True\", reason: Ready, lastTransitionTime: \"2026-01-01T00:00:00Z\"}]}\n"
	kwokRef = "nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}"
	// karpenters runs Karpenter; %s are more arguments and variables.
	karpenters = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: karpenter, namespace: karpenter}\nspec: {template: {spec: " +
		"{serviceAccountName: karpenter, containers: [{name: controller, image: public.ecr.aws/karpenter/controller:1.15.0, args: [%s], " +
		"env: [%s]}]}}}\n"
)

// poolOf is a NodePool with more of its spec and its disruption.
func poolOf(spec, disruption string) string {
	return "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: web}\nspec: {template: {spec: {" + kwokRef +
		", requirements: []}}, disruption: {consolidateAfter: Never, consolidationPolicy: WhenEmpty, budgets: [{nodes: \"50%\"}], " +
		disruption + "}" + spec +
		"}\nstatus: {conditions: [{type: Ready, status: \"True\", reason: Ready, lastTransitionTime: " +
		"\"2026-01-01T00:00:00Z\"}]}\n"
}

// machine is a node of pool web with its claim, ready, and without pods; conditions and spec are more of the claim's.
func machine(name, conditions, spec string) []string {
	labels := "labels: {karpenter.sh/nodepool: web, kubernetes.io/hostname: " + name +
		", node.kubernetes.io/instance-type: c-2x-amd64-linux, " +
		"karpenter.sh/capacity-type: on-demand, topology.kubernetes.io/zone: test-zone-a, kubernetes.io/arch: " +
		"amd64, kubernetes.io/os: linux, " +
		"karpenter.sh/registered: \"true\", karpenter.sh/initialized: \"true\"}"
	at := "lastTransitionTime: \"2026-11-22T06:00:00Z\"}"
	is := func(kind string) string {
		return "{type: " + kind + ", status: \"True\", reason: " + kind + ", message: \"\", " + at
	}
	all := strings.Join([]string{is("Launched"), is("Registered"), is("Initialized"), is("Consolidatable"),
		is("Ready")}, ", ")
	return []string{
		"apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: " + name + ", uid: u-" + name +
			", creationTimestamp: " +
			"\"2026-11-22T05:00:00Z\", finalizers: [karpenter.sh/termination], " + labels + "}\nspec: {" + kwokRef +
			", requirements: []" + spec +
			"}\nstatus: {nodeName: " + name + ", providerID: \"kwok://" + name + "\", conditions: [" + all +
			conditions + "]}\n",
		"apiVersion: v1\nkind: Node\nmetadata: {name: " + name + ", creationTimestamp: \"2026-11-22T05:01:00Z\", " +
			labels +
			"}\nspec: {providerID: \"kwok://" + name +
			"\"}\nstatus: {capacity: {cpu: \"2\", memory: 4Gi, pods: \"110\"}, " +
			"allocatable: {cpu: \"2\", memory: 4Gi, pods: \"110\"}, conditions: [{type: Ready, status: \"True\"}]}\n",
	}
}

// aCondition is a condition of a NodeClaim that is true.
func aCondition(kind, reason string) string {
	return ", {type: " + kind + ", status: \"True\", reason: " + reason +
		", message: \"\", lastTransitionTime: \"2026-11-22T06:30:00Z\"}"
}

// foundIn is a cluster, and one finding that is to come of it.
type foundIn struct {
	row      string
	objects  []string
	values   string
	severity takeover.Severity
	object   string
	words    []string
}

func ofTheirs(args, env string) string { return fmt.Sprintf(karpenters, args, env) }

// gates is Karpenter with these feature gates.
func gates(text string) string {
	return ofTheirs("", "{name: FEATURE_GATES, value: \""+text+"\"}")
}

func overlay(requirement, spec string) string {
	return "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: dear}\nspec: {requirements: [" +
		requirement + "], " + spec + "}\n"
}

const (
	keptNode = "apiVersion: v1\nkind: Node\nmetadata: {name: kept, annotations: {karpenter.sh/do-not-disrupt: \"true\"}}\n"
	allOff   = "NodeOverlay=false,StaticCapacity=false,CapacityBuffer=false"
)

// dearer is an overlay of all machines of amd64.
func dearer() string {
	return overlay("{key: kubernetes.io/arch, operator: In, values: [amd64]}", `price: "5"`)
}

// cases has at least one for each row of the table.
func takeoverCases(t *testing.T) []foundIn {
	t.Helper()
	chart, err := os.ReadFile("../../charts/joiner/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(takeoverDangers(string(chart)), takeoverSettings(), takeoverNotes())
}

// takeoverDangers are what would go wrong, and what has to be waited for. chart are the values of our chart.
func takeoverDangers(chart string) []foundIn {
	price := dearer()
	fleet := func(limits string) []string {
		return slices.Concat([]string{kwokClass, poolOf(limits, ""), ofTheirs("", "")}, machine("a", "", ""),
			machine("b", "", ""), machine("c", "", ""))
	}
	buffer :=
		"apiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: room, namespace: shop}\n"
	asks :=
		"apiVersion: v1\nkind: Pod\nmetadata: {name: gpu, namespace: ml}\nspec: {resourceClaims: [{name: gpu, resourceClaimName: gpu}], " +
			"containers: [{name: c, image: c}]}\nstatus: {phase: Pending}\n"
	definition := func(name, more string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + more
	}
	lacking :=
		", annotations: {helm.sh/resource-policy: keep}}\nspec: {versions: [{name: v1, served: true, storage: true, schema: " +
			"{openAPIV3Schema: {properties: {spec: {properties: {fromTomorrow: {type: string}}}}}}}]}\n"
	return []foundIn{
		{"node-limits", fleet(", limits: {nodes: \"1\"}"), "", takeover.Danger, "NodePool web",
			[]string{"it has 3 nodes and its soft limit is 1: Joiner removes 2 of them",
				"raise spec.limits.nodes to 3", "joiner.sh/paused=Disrupt"}},
		{"node-limits", fleet(", limits: {nodes: \"0\"}"), "", takeover.Danger, "NodePool web",
			[]string{"spec.limits.nodes is 0, as if it were paused: Joiner removes all its 3 nodes",
				"joiner.sh/paused=Launch"}},
		{"dormant", []string{price, gates(allOff)}, "", takeover.Danger, "NodeOverlay dear",
			[]string{"the gate NodeOverlay is off in Karpenter", "FEATURE_GATES"}},
		{"dormant", []string{price, gates(allOff)}, "extraArgs: [\"--feature-gates=" + allOff + "\"]\n", takeover.Info,
			"NodeOverlay dear", []string{"none in Joiner by", "nothing has to be done"}},
		{"dormant", []string{price, gates(allOff)}, "extraArgs: [--feature-gates=NodeOverlay=true]\n", takeover.Danger,
			"NodeOverlay dear", []string{"off in Karpenter, and on in Joiner by"}},
		{"dormant", []string{price, gates(allOff)}, chart, takeover.Danger, "NodeOverlay dear",
			[]string{"off in Karpenter, and on in Joiner by"}},
		{"dormant", []string{price, gates(allOff)}, "settings: {featureGates: {nodeRepair: null}}\n", takeover.Danger,
			"NodeOverlay dear", []string{"off in Karpenter, and on in Joiner by"}},
		{"dormant", []string{kwokClass, poolOf(", replicas: 4", ""), ofTheirs("", "")}, "", takeover.Danger,
			"NodePool web", []string{"the gate StaticCapacity is off", "until it has 4"}},
		{"dormant", []string{buffer, gates(allOff)}, "", takeover.Danger, "CapacityBuffer shop/room",
			[]string{"the gate CapacityBuffer is off in Karpenter, and on in Joiner", "nodes are launched"}},
		{"devices", []string{asks, ofTheirs("", "{name: IGNORE_DRA_REQUESTS, value: \"false\"}")}, "", takeover.Danger,
			"Namespace ml", []string{"1 pod asks for devices by ResourceClaims: Joiner launches no node"}},
		{"devices", []string{ofTheirs("--ignore-dra-requests=false", "")}, "", takeover.Danger,
			"Settings ignore-dra-requests", []string{"IGNORE_DRA_REQUESTS"}},
		{"devices", []string{asks, ofTheirs("", "")}, "", takeover.Info, "Namespace ml",
			[]string{"neither launches nodes"}},
		{"node-class",
			[]string{strings.ReplaceAll(poolOf("", ""), "karpenter.kwok.sh, kind: KWOKNodeClass",
				"karpenter.azure.com, kind: AKSNodeClass")}, "",
			takeover.Danger, "NodePool web",
			[]string{"AKSNodeClass.karpenter.azure.com, of which Joiner has no provider"}},
		{"in-flight", slices.Concat([]string{kwokClass, poolOf("", "")},
			machine("a", aCondition("DisruptionReason", "Drifted"), "")), "", takeover.Wait,
			"NodeClaim a", []string{"Karpenter has chosen it to go (Drifted)"}},
		{"in-flight", slices.Concat([]string{kwokClass, poolOf("", "")},
			machine("a", aCondition("Rebooting", "Rebooting"), "")), "", takeover.Wait,
			"NodeClaim a", []string{"Joiner opens the node when it runs anew"}},
		{"in-flight",
			[]string{
				"apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nspec: {taints: [{key: karpenter.sh/rebooting, effect: NoSchedule}]}\n",
			}, "",
			takeover.Wait, "Node n1", []string{"kubectl taint node n1 karpenter.sh/rebooting-"}},
		{"in-flight",
			[]string{strings.Replace(machine("a", "", "")[0], "finalizers:",
				"deletionTimestamp: \"2026-11-22T06:59:00Z\", finalizers:", 1)}, "",
			takeover.Wait, "NodeClaim a", []string{"its node drains"}},
		{"definitions",
			[]string{definition("nodepools.karpenter.sh",
				", annotations: {meta.helm.sh/release-name: karpenter-crd, meta.helm.sh/release-namespace: karpenter}}\n")},
			"", takeover.Danger, "CustomResourceDefinition nodepools.karpenter.sh",
			[]string{"release karpenter/karpenter-crd of Helm deletes it", "joinerctl takeover adopt-crds"}},
		{"definitions", []string{definition("nodepools.karpenter.sh", "}\nstatus: {storedVersions: [v1beta1, v1]}\n")},
			"", takeover.Danger,
			"CustomResourceDefinition nodepools.karpenter.sh", []string{"v1beta1", "joinerctl migrate check"}},
		{"definitions", []string{definition("nodepools.karpenter.sh", lacking)}, "", takeover.Danger,
			"CustomResourceDefinition nodepools.karpenter.sh",
			[]string{"newer than what Joiner knows: its definition drops 1 field (spec.fromTomorrow)"}},
		{"definitions", []string{definition("nodeclaims.karpenter.sh", lacking)}, "", takeover.Danger,
			"CustomResourceDefinition nodeclaims.karpenter.sh", []string{"of a Karpenter before 1.15, and lacks"}},
	}
}

// takeoverSettings are about settings and overlays.
func takeoverSettings() []foundIn {
	price := dearer()
	return []foundIn{
		{"settings", []string{ofTheirs("--from-tomorrow=1", "")}, "", takeover.Danger, "Settings from-tomorrow",
			[]string{"--unknown-flags=warn"}},
		{"settings", []string{ofTheirs("", "")}, "extraArgs: [--price-tolerence=1]\n", takeover.Danger,
			"Settings price-tolerence", []string{"neither Joiner nor", "do you mean price-tolerance?"}},
		{"settings", nil, "extraArgs: [--from-tomorrow=1]\ncompat: {karpenter: true}\n", takeover.Info,
			"Settings from-tomorrow", []string{"Joiner ignores it, with a warning"}},
		{"settings", []string{ofTheirs("", "")}, "extraArgs: [--batch-idle-duration=1]\n", takeover.Danger,
			"Settings batch-idle-duration", []string{"does not start with it"}},
		{"settings", []string{ofTheirs("", "")}, "settings: {featureGates: {nodeRepair: perhaps}}\n", takeover.Danger,
			"Settings feature-gates", []string{"want true or false"}},
		{"settings", []string{ofTheirs("--batch-idle-duration=1", "")}, "", takeover.Danger,
			"Settings batch-idle-duration", []string{"does not start with it"}},
		{"settings", []string{gates("NodeRepair=perhaps")}, "", takeover.Danger, "Settings feature-gates",
			[]string{"want true or false"}},
		{"settings",
			[]string{ofTheirs("", "{name: BATCH_IDLE_DURATION, value: \"1\"}, {name: CPU_REQUESTS, value: \"2000\"}")},
			"", takeover.Info, "Settings batch-idle-duration", []string{"has the default, as in Karpenter"}},
		{"settings", []string{ofTheirs("", "{name: CPU_REQUESTS, value: \"2000\"}")}, "", takeover.Info,
			"Settings cpu-requests", []string{"no effect"}},
		{"settings", []string{ofTheirs("--cluster-name, prod", "")}, "", takeover.Info, "Settings cluster-name",
			[]string{"no NodePool is of EC2"}},
		{"settings", []string{ofTheirs("", "{name: BATCH_IDLE_DURATION, value: 3s}")},
			"settings: {batchIdleDuration: 5s, batchIdle: 5s}\n",
			takeover.Danger, "Settings settings.batchIdle", []string{"the chart joiner does not take", "extraArgs"}},
		{"settings", []string{ofTheirs("", "")}, "{controller: {env: []}, webhook: {enabled: false}}\n",
			takeover.Danger, "Settings webhook", []string{"the chart joiner does not take"}},
		{"dormant", []string{price, gates(allOff)}, "compat: {karpenter: true}\n", takeover.Info, "NodeOverlay dear",
			nil},
		{"settings", []string{ofTheirs("", "{name: BATCH_IDLE_DURATION, value: 3s}")},
			"extraArgs: [--batch-idle-duration=5s]\n", takeover.Info,
			"Settings batch-idle-duration", []string{`is "3s" in Deployment karpenter/karpenter, and "5s" in`}},
		{"overlays",
			[]string{kwokClass, poolOf("", ""), overlay("{key: kubernetes.io/arch, operator: Near, values: [amd64]}",
				`price: "6"`)}, "",
			takeover.Warning, "NodeOverlay dear", []string{"spec.requirements[0]", "it has no effect"}},
		{"overlays",
			[]string{kwokClass, poolOf("", ""), price,
				strings.Replace(overlay("{key: kubernetes.io/arch, operator: In, values: [amd64]}", `price: "6"`),
					"name: dear", "name: late", 1)}, "",
			takeover.Warning, "NodeOverlay late", []string{"NodeOverlay dear, of the same weight 0"}},
	}
}

// takeoverNotes are about what Joiner would begin with, and what others have that is Karpenter's.
func takeoverNotes() []foundIn {
	return []foundIn{
		{"begin", slices.Concat([]string{kwokClass, poolOf("", "")},
			machine("a", aCondition("Drifted", "NodePoolDrifted"), ""),
			machine("b", aCondition("Drifted", "NodePoolDrifted"), "")), "",
			takeover.Warning, "NodePool web",
			[]string{"2 nodes have drifted: Joiner replaces up to 1 of them at a time"}},
		{"begin", slices.Concat([]string{kwokClass, poolOf("", "")}, machine("a", "", ", expireAfter: 1h")), "",
			takeover.Warning, "NodePool web",
			[]string{"1 node is older than expireAfter", "whatever the budgets say"}},
		{"consolidation",
			slices.Concat([]string{
				kwokClass, poolOf("", "consolidateAfter: 0s, consolidationPolicy: WhenEmptyOrUnderutilized"),
			}, machine("a", "", "")), "",
			takeover.Info, "NodePool web", []string{"Joiner moves 1 node to save money", "/h now and "}},
		{"repair", []string{kwokClass, poolOf("", ""),
			ofTheirs("",
				"{name: FEATURE_GATES, value: NodeRepair=true}, {name: LEGACY_NODE_REPAIR, value: \"true\"}")}, "",
			takeover.Warning, "Settings legacy-node-repair", []string{"Joiner keeps to both"}},
		{"repair", slices.Concat([]string{kwokClass, poolOf("", ""), gates("NodeRepair=true"), keptNode},
			machine("a", "", "")), "",
			takeover.Warning, "Settings repair-veto", []string{"it keeps 1 node (kept)", "--repair-veto=Karpenter",
				"settings.repairVeto"}},
		{"repair", []string{kwokClass, poolOf("", ""), gates("NodeRepair=true")}, "settings: {repairVeto: Both}\n",
			takeover.Info, "Settings repair-veto", []string{"no node has it now"}},
		{"repair", []string{kwokClass, poolOf("", ""), gates("NodeRepair=true")}, "", takeover.Warning, "NodePool",
			[]string{"bind the repair", "(web)"}},
		{"protected",
			[]string{
				"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: none, namespace: shop}\n" +
					"status: {expectedPods: 3, desiredHealthy: 3}\n",
			}, "",
			takeover.Info, "PodDisruptionBudget shop/none", []string{"3 of 3 pods"}},
		{"protected",
			[]string{
				"apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: uncounted, namespace: shop}\nstatus: " +
					"{conditions: [{type: DisruptionAllowed, status: \"False\", reason: SyncFailed, message: no scale}]}\n",
			}, "",
			takeover.Info, "PodDisruptionBudget shop/uncounted", []string{"no scale", "minAvailable"}},
		{"protected",
			[]string{
				"apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: shop, annotations: " +
					"{karpenter.sh/do-not-disrupt: \"true\"}}\nspec: {containers: [{name: c, image: c}]}\nstatus: {phase: Running}\n",
			},
			"", takeover.Info, "Pod", []string{"1 pod and 0 nodes"}},
		{"metrics", []string{
			"apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata: {name: k, namespace: mon}\n" +
				"spec: {groups: [{rules: [{expr: " +
				"\"rate(karpenter_pod_deletion_cost_pod_annotation_writes_total[5m]) > 0 and " +
				"karpenter_pods_startup_duration_seconds_count > 0\"}]}]}\n"},
			"", takeover.Warning, "PrometheusRule mon/k",
			[]string{
				"asks for 1 metric, which Joiner does not serve: karpenter_pod_deletion_cost_pod_annotation_writes_total",
			}},
		{"metrics", []string{
			"apiVersion: v1\nkind: ConfigMap\n" +
				"metadata: {name: board, namespace: mon, labels: {grafana_dashboard: \"1\"}}\n" +
				"data: {a: \"karpenter_consolidation_score_bucket\"}\n",
		}, "",
			takeover.Warning, "ConfigMap mon/board", []string{"karpenter_consolidation_score_bucket"}},
		{"rights", []string{
			ofTheirs("", ""),
			"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: extra}\n" +
				"subjects: [{kind: ServiceAccount, name: karpenter, namespace: karpenter}]\n",
		}, "",
			takeover.Warning, "ClusterRoleBinding extra", []string{"karpenter:karpenter"}},
		{"rights", []string{
			ofTheirs("", ""),
			"apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: only}\n" +
				"spec: {validations: [{expression: \"request.userInfo.username == 'system:serviceaccount:karpenter:karpenter'\"}]}\n",
		}, "",
			takeover.Warning, "ValidatingAdmissionPolicy only",
			[]string{"Karpenter's user system:serviceaccount:karpenter:karpenter"}},
		{"rights", []string{
			"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: out, namespace: karpenter}\n" +
				"spec: {podSelector: {matchLabels: {app.kubernetes.io/name: karpenter}}}\n",
		}, "",
			takeover.Warning, "NetworkPolicy karpenter/out", []string{"app.kubernetes.io/name=karpenter"}},
	}
}

// findingsOf runs a check as JSON.
func findingsOf(t *testing.T, client *fake.FakeDynamicClient, args ...string) (code int, findings []takeover.Finding) {
	t.Helper()
	code, out, failures := run(t, client, "",
		slices.Concat([]string{"takeover", "check", "-o", "json", "--now", takenAt}, args)...)
	var answer struct{ Findings []takeover.Finding }
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatalf("exit %d, %s\n%s", code, failures, out)
	}
	return code, answer.Findings
}

// K-25: what each row of the table finds: the object, its severity, the consequence and the remedy. Nothing is
// written, and the only reads are lists.
func TestK25_WhatIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range takeoverCases(t) {
		t.Run(c.row+" "+c.object, func(t *testing.T) {
			t.Parallel()
			client, args := theirs(t, c.objects...), []string{}
			if c.values != "" {
				args = []string{"--values", file(t, "values.yaml", c.values)}
			}
			code, findings := findingsOf(t, client, args...)
			at := slices.IndexFunc(findings, func(f takeover.Finding) bool {
				said := f.Consequence + "\n" + f.Remedy
				return f.Check == c.row && f.Object() == c.object &&
					!slices.ContainsFunc(c.words, func(w string) bool { return !strings.Contains(said, w) })
			})
			if code != cli.CodeFindings || at < 0 || findings[at].Severity != c.severity {
				t.Errorf("exit %d; want %s of %s: %q; found\n%+v", code, c.severity, c.object, c.words, findings)
			}
			for _, action := range client.Actions() {
				if action.GetVerb() != "list" {
					t.Errorf("%s of %s: it only lists", action.GetVerb(), action.GetResource().Resource)
				}
			}
		})
	}
}

// K-49: nothing is found if Joiner reads do-not-disrupt as Karpenter does, or if no node is repaired.
func TestK49_TheCheckSaysWhatKeepsNodesFromRepair(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]bool{
		"settings: {repairVeto: Karpenter}\n":                false,
		"extraArgs: [--repair-veto=Karpenter]\n":             false,
		"extraArgs: [--repair-veto, Karpenter]\n":            false,
		"env: [{name: REPAIR_VETO, value: Karpenter}]\n":     false,
		"env: [{name: REPAIR_VETO, value: Both}]\n":          true,
		"settings: {repairVeto: \"\"}\n":                     true,
		"settings: {featureGates: {nodeRepair: \"true\"}}\n": true,
	} {
		for _, gate := range []string{"true", "false"} {
			client := theirs(t, kwokClass, poolOf("", ""), gates("NodeRepair="+gate))
			_, findings := findingsOf(t, client, "--values", file(t, "values.yaml", values))
			found := slices.ContainsFunc(findings, func(f takeover.Finding) bool {
				return f.Object() == "Settings repair-veto"
			})
			if found != (want && gate == "true") {
				t.Errorf("%sNodeRepair=%s in Karpenter: said: %t", values, gate, found)
			}
		}
	}
}

// K-25: no row of the table is without a test, and none without its line on the page.
func TestK25_EachRowIsTestedAndTold(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/takeover.md")
	if err != nil {
		t.Fatal(err)
	}
	cases := takeoverCases(t)
	for _, row := range takeover.Checks() {
		if !slices.ContainsFunc(cases, func(c foundIn) bool { return c.row == row.Name && c.severity == row.Worst }) {
			t.Errorf("nothing tests %s as %s", row.Name, row.Worst)
		}
		if line := fmt.Sprintf("| `%s` | %s | %s |", row.Name, row.About, row.Worst); !strings.Contains(string(page),
			line) {
			t.Errorf("docs/takeover.md lacks\n%s", line)
		}
		for _, c := range cases {
			if c.row == row.Name && !row.Worst.AtLeast(c.severity) {
				t.Errorf("%s weighs %s, above the %s of its row", c.object, c.severity, row.Worst)
			}
		}
	}
}

// K-25: a cluster without differences is 0. --fail-on ignores findings of less weight. What may not be read is named,
// and then finding nothing is no answer.
func TestK25_HowItEnds(t *testing.T) {
	t.Parallel()
	quiet := slices.Concat([]string{kwokClass, poolOf("", ""), ofTheirs("", "")}, machine("a", "", ""))
	if code, findings := findingsOf(t, theirs(t, quiet...)); code != cli.CodeFine || len(findings) > 0 {
		t.Errorf("where nothing differs: exit %d, %+v", code, findings)
	}
	warned := append(slices.Clone(quiet), machine("b", aCondition("Drifted", "NodePoolDrifted"), "")...)
	for level, want := range map[string]int{"info": cli.CodeFindings, "warning": cli.CodeFindings,
		"danger": cli.CodeFine, "wait": cli.CodeFailed} {
		code, out, failures := run(t, theirs(t, warned...), "", "takeover", "check", "--now", takenAt, "--fail-on",
			level)
		if code != want || code == cli.CodeFailed && !strings.Contains(failures, "info, warning or danger") {
			t.Errorf("--fail-on %s: exit %d, want %d: %s%s", level, code, want, out, failures)
		}
	}
	client := theirs(t, quiet...)
	client.PrependReactor("list", "prometheusrules", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", nil)
	})
	code, out, failures := run(t, client, "", "takeover", "check", "--now", takenAt)
	if code != cli.CodeFailed ||
		!strings.Contains(out+failures, "prometheusrules.monitoring.coreos.com, for want of the right") {
		t.Errorf("without a right: exit %d, %s%s", code, out, failures)
	}
	for args, want := range map[string]string{
		"--from-deployment a/b":         "there is no Deployment a/b",
		"--from-deployment karpenter":   "want NAMESPACE/NAME",
		"--values no-such-file":         "--values",
		"--from-deployment karpenter/x": "there is no Deployment karpenter/x",
	} {
		code, _, failures := run(t, theirs(t, quiet...), "",
			slices.Concat([]string{"takeover", "check"}, strings.Fields(args))...)
		if code != cli.CodeFailed || !strings.Contains(failures, want) {
			t.Errorf("%s: exit %d, %s; want %q", args, code, failures, want)
		}
	}
	two := append(slices.Clone(quiet), strings.Replace(ofTheirs("", ""), "namespace: karpenter", "namespace: other",
		1))
	if code, _, failures := run(t, theirs(t, two...), "", "takeover", "check"); code != cli.CodeFailed ||
		!strings.Contains(failures, "karpenter/karpenter, other/karpenter") {
		t.Errorf("two Karpenters: exit %d, %s", code, failures)
	}
	if code, _ := findingsOf(t, theirs(t, two...), "--from-deployment", "other/karpenter"); code != cli.CodeFine {
		t.Errorf("two Karpenters, one named: exit %d", code)
	}
}
