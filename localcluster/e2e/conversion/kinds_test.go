package conversion

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// journey is what is done with objects of a kind: one written in v1beta1, and one written in v1. Values are by path,
// as fmt prints them; <none> means that there is no such field.
type journey struct {
	plural, group    string
	old, fresh       string            // manifests of the objects old and fresh
	oldInV1          map[string]string // old as v1 shows it
	editInV1         string            // a merge patch of old
	subresource      string            // the patches are of it
	oldAfter         map[string]string // old in v1beta1 after that
	oldStill         map[string]string // old in v1 after it was edited in v1beta1 too
	freshInV1beta1   map[string]string // fresh as v1beta1 shows it
	editInV1beta1    string            // a merge patch of fresh
	freshAfter       map[string]string // fresh in v1 after that
	freshManifestOld string            // a manifest of v1beta1 that says the same as fresh, as far as v1beta1 can
	oldManifestV1    string            // a manifest of v1 that says the same as old, as far as v1 can
}

func (j journey) resource(version string) string { return j.plural + "." + version + "." + j.group }

func journeys() []journey { return []journey{poolJourney(), claimJourney(), classJourney()} }

const none = "<none>"

func poolJourney() journey {
	const fresh = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: fresh}
spec:
  hardLimits: {nodes: 3}
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 2m, budgets: [{nodes: "0", reasons: [Drifted]}, {nodes: "5"}]}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements: [{key: kubernetes.io/arch, operator: In, values: [amd64]}]
      expireAfter: 24h
      terminationGracePeriod: 1h
`
	return journey{
		plural: "nodepools", group: "karpenter.sh",
		old:   pool("old", "{consolidationPolicy: WhenEmpty, consolidateAfter: 30s, expireAfter: 24h}"),
		fresh: fresh,
		oldInV1: map[string]string{
			"spec.template.spec.expireAfter": "24h", "spec.disruption.expireAfter": none,
			"spec.disruption.consolidateAfter":      "30s",
			"spec.template.spec.nodeClassRef.group": "karpenter.k8s.aws", "spec.template.spec.kubelet": none,
			"spec.template.spec.resources": none, "spec.limits.memory": "8192Mi",
		},
		editInV1: `{"spec":{"weight":5,"template":{"spec":{"expireAfter":"48h","terminationGracePeriod":"1h"}}}}`,
		oldAfter: map[string]string{
			"spec.disruption.expireAfter": "48h", "spec.weight": "5", "spec.template.spec.kubelet.maxPods": "20",
			"spec.template.spec.resources.requests.cpu":  "1",
			"spec.template.spec.nodeClassRef.apiVersion": "karpenter.k8s.aws/v1beta1",
			"spec.disruption.consolidationPolicy":        "WhenEmpty",
			"spec.template.spec.terminationGracePeriod":  none,
		},
		oldStill: map[string]string{"spec.template.spec.terminationGracePeriod": "1h",
			"spec.template.spec.expireAfter": "48h"},
		freshInV1beta1: map[string]string{
			"spec.disruption.expireAfter": "24h", "spec.disruption.consolidationPolicy": "WhenUnderutilized",
			"spec.disruption.consolidateAfter": none,
			"spec.disruption.budgets.0.nodes":  "0", "spec.disruption.budgets.0.reasons": none,
			"spec.hardLimits": none, "spec.template.spec.nodeClassRef.apiVersion": "karpenter.k8s.aws/v1beta1",
		},
		editInV1beta1: `{"spec":{"weight":7,"disruption":{"expireAfter":"72h"},"template":{"spec":{"kubelet":{"maxPods":7}}}}}`,
		freshAfter: map[string]string{
			"spec.weight": "7", "spec.template.spec.expireAfter": "72h",
			"spec.template.spec.terminationGracePeriod": "1h", "spec.hardLimits.nodes": "3",
			"spec.disruption.consolidateAfter": "2m", "spec.disruption.budgets.0.reasons.0": "Drifted",
			"spec.disruption.budgets.1.reasons":                                          none,
			"metadata.annotations.compatibility.karpenter.sh/v1beta1-kubelet-conversion": `{"maxPods":7}`,
		},
		oldManifestV1: strings.NewReplacer("name: fresh", "name: old", "  hardLimits: {nodes: 3}\n",
			"  limits: {cpu: \"10\", memory: 8192Mi}\n",
			`{consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 2m, budgets: [{nodes: "0", reasons: `+
				`[Drifted]}, {nodes: "5"}]}`,
			"{consolidationPolicy: WhenEmpty, consolidateAfter: 30s}",
			"      terminationGracePeriod: 1h\n", "").Replace(fresh),
		freshManifestOld: strings.NewReplacer("karpenter.sh/v1\n", "karpenter.sh/v1beta1\n",
			"  hardLimits: {nodes: 3}\n", "",
			`{consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 2m, budgets: [{nodes: "0", reasons: `+
				`[Drifted]}, {nodes: "5"}]}`,
			`{consolidationPolicy: WhenUnderutilized, expireAfter: 24h, budgets: [{nodes: "0"}, {nodes: "5"}]}`,
			"group: karpenter.k8s.aws", "apiVersion: karpenter.k8s.aws/v1beta1",
			"      expireAfter: 24h\n      terminationGracePeriod: 1h\n", "").Replace(fresh),
	}
}

// claimJourney: the spec of a NodeClaim cannot be changed, so its status is edited.
func claimJourney() journey {
	const fresh = `
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: fresh}
spec:
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
  requirements: []
  resources: {requests: {cpu: "1", memory: 8192Mi}}
  expireAfter: 5h
  terminationGracePeriod: 1h
`
	return journey{
		plural: "nodeclaims", group: "karpenter.sh", subresource: "status",
		old: strings.Replace(nodeClaim, "name: claim}", "name: old}", 1), fresh: fresh,
		oldInV1: map[string]string{
			"spec.expireAfter": "Never", "spec.nodeClassRef.group": "karpenter.k8s.aws",
			"spec.nodeClassRef.kind": "EC2NodeClass", "spec.kubelet": none, "spec.resources.requests.memory": "8192Mi",
		},
		editInV1: `{"status":{"nodeName":"a","providerID":"kwok://a","lastPodEventTime":"2026-01-02T03:04:05Z",` +
			`"conditions":[{"type":"Launched","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`,
		oldAfter: map[string]string{"status.nodeName": "a", "status.conditions.0.type": "Launched",
			"status.lastPodEventTime": none, "spec.expireAfter": none, "spec.nodeClassRef.apiVersion": none,
			"spec.kubelet.evictionSoft.memory.available": "5%"},
		oldStill: map[string]string{"status.lastPodEventTime": "2026-01-02T03:04:05Z", "status.nodeName": "a",
			"spec.expireAfter": "Never"},
		freshInV1beta1: map[string]string{"spec.expireAfter": none, "spec.terminationGracePeriod": none,
			"spec.nodeClassRef.apiVersion": "karpenter.k8s.aws/v1beta1"},
		editInV1beta1: `{"status":{"nodeName":"b","conditions":[{"type":"Ready","status":"False","severity":"Warning"}]}}`,
		freshAfter: map[string]string{"status.nodeName": "b", "status.conditions.0.type": "Ready",
			"status.conditions.0.severity": none, "spec.expireAfter": "5h", "spec.terminationGracePeriod": "1h"},
		oldManifestV1: strings.NewReplacer("name: fresh", "name: old",
			"  expireAfter: 5h\n  terminationGracePeriod: 1h\n", "  expireAfter: Never\n").Replace(fresh),
		freshManifestOld: strings.NewReplacer("karpenter.sh/v1\n", "karpenter.sh/v1beta1\n",
			"group: karpenter.k8s.aws", "apiVersion: karpenter.k8s.aws/v1beta1",
			"  expireAfter: 5h\n  terminationGracePeriod: 1h\n", "").Replace(fresh),
	}
}

func classJourney() journey {
	const fresh = `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: fresh}
spec:
  role: nodes
  amiSelectorTerms: [{alias: bottlerocket@v1.20.3}]
  subnetSelectorTerms: [{tags: {discovery: demo}}]
  securityGroupSelectorTerms: [{id: sg-1}]
  ipPrefixCount: 2
  kubelet: {maxPods: 30, featureGates: {A: true}}
`
	return journey{
		plural: "ec2nodeclasses", group: "karpenter.k8s.aws",
		old: fmt.Sprintf(nodeClass, "old", "AL2023"), fresh: fresh,
		oldInV1: map[string]string{"spec.amiSelectorTerms.0.alias": "al2023@latest", "spec.amiFamily": none,
			"spec.metadataOptions.httpPutResponseHopLimit": "2", "spec.role": "nodes"},
		editInV1: `{"spec":{"role":"others","amiSelectorTerms":[{"alias":"al2023@v20240807"}],"kubelet":{"maxPods":9}}}`,
		oldAfter: map[string]string{"spec.role": "others", "spec.amiFamily": "AL2023",
			"spec.amiSelectorTerms": none, "spec.kubelet": none},
		oldStill: map[string]string{"spec.amiSelectorTerms.0.alias": "al2023@v20240807",
			"spec.kubelet.maxPods": "9", "spec.role": "others"},
		freshInV1beta1: map[string]string{"spec.amiFamily": "Bottlerocket", "spec.amiSelectorTerms": none,
			"spec.ipPrefixCount": none, "spec.kubelet": none, "spec.metadataOptions.httpPutResponseHopLimit": "1"},
		editInV1beta1: `{"spec":{"detailedMonitoring":true,"role":"others"}}`,
		freshAfter: map[string]string{
			"spec.role": "others", "spec.detailedMonitoring": "true",
			"spec.amiSelectorTerms.0.alias": "bottlerocket@v1.20.3", "spec.amiFamily": none, "spec.ipPrefixCount": "2",
			"spec.kubelet.maxPods": "30", "spec.kubelet.featureGates.A": "true",
		},
		oldManifestV1: strings.NewReplacer("name: fresh", "name: old", "bottlerocket@v1.20.3", "al2023@latest",
			"  ipPrefixCount: 2\n  kubelet: {maxPods: 30, featureGates: {A: true}}\n",
			"  metadataOptions: {httpPutResponseHopLimit: 2}\n").Replace(fresh),
		freshManifestOld: strings.NewReplacer("karpenter.k8s.aws/v1\n", "karpenter.k8s.aws/v1beta1\n",
			"amiSelectorTerms: [{alias: bottlerocket@v1.20.3}]", "amiFamily: Bottlerocket",
			"  ipPrefixCount: 2\n  kubelet: {maxPods: 30, featureGates: {A: true}}\n",
			"  metadataOptions: {httpPutResponseHopLimit: 1}\n").Replace(fresh),
	}
}

// V-20, V-21: each kind on a real API server. Manifests of either version are applied, read and edited in the other
// one, and read back. Then once more in the first version.
func TestEachKindIsWrittenAndReadInBothVersions(t *testing.T) {
	t.Parallel()
	r, manifests := start(t)
	r.install(manifests)
	for _, j := range journeys() {
		r.must(j.old+"---"+j.fresh, "apply", "-f", "-")
		r.has(j, "v1", "old", j.oldInV1)
		r.edit(j, "v1", "old", j.editInV1)
		r.has(j, "v1beta1", "old", j.oldAfter)
		r.must("", "annotate", j.resource("v1beta1"), "old", "example.com/touched=yes")
		r.has(j, "v1", "old", j.oldStill)

		r.has(j, "v1beta1", "fresh", j.freshInV1beta1)
		r.edit(j, "v1beta1", "fresh", j.editInV1beta1)
		r.has(j, "v1", "fresh", j.freshAfter)
	}
	r.tables()
}

// tables: V-20, kubectl get in v1beta1 shows the columns of v1beta1.
func (r *rig) tables() {
	for command, want := range map[string][]string{
		"nodepools.v1beta1.karpenter.sh": {"NAME NODECLASS", "fresh default", "old default"},
		"nodepools.v1beta1.karpenter.sh -o wide": {"NAME NODECLASS WEIGHT", "fresh default 7",
			"old default 5"},
		"nodepools": {"NAME NODECLASS NODES READY AGE", "fresh default 0 ",
			"old default 0 "},
		"nodeclaims.v1beta1.karpenter.sh": {"NAME TYPE ZONE NODE READY AGE", "fresh b False ",
			"old a "},
		"ec2nodeclasses.v1beta1.karpenter.k8s.aws":         {"NAME", "fresh", "old"},
		"ec2nodeclasses.v1beta1.karpenter.k8s.aws -o wide": {"NAME", "fresh", "old"},
	} {
		lines := strings.Split(strings.TrimSpace(r.must("", append([]string{"get"}, strings.Fields(command)...)...)),
			"\n")
		for i, line := range lines {
			if len(lines) != len(want) || !strings.HasPrefix(strings.Join(strings.Fields(line), " ")+" ", want[i]) {
				r.t.Errorf("kubectl get %s prints\n%s\nwant %q", command, strings.Join(lines, "\n"), want)
				break
			}
		}
	}
}

func (r *rig) edit(j journey, version, name, patch string) {
	r.t.Helper()
	args := []string{"patch", j.resource(version), name, "--type=merge", "-p", patch}
	if j.subresource != "" {
		args = append(args, "--subresource="+j.subresource)
	}
	r.must("", args...)
}

// has reads an object in a version and compares fields.
func (r *rig) has(j journey, version, name string, want map[string]string) map[string]any {
	r.t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(r.must("", "get", j.resource(version), name, "-o", "json")), &o); err != nil {
		r.t.Fatal(err)
	}
	for path, value := range want {
		if got := field(o, path); got != value {
			r.t.Errorf("%s %s: %s is %s, want %s", j.resource(version), name, path, got, value)
		}
	}
	return o
}

// field returns the value at a path whose parts are joined by dots; keys may have dots too.
func field(value any, path string) string {
	if path == "" {
		return fmt.Sprint(value)
	}
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			if rest, found := strings.CutPrefix(path+".", key+"."); found {
				return field(child, strings.TrimSuffix(rest, "."))
			}
		}
	case []any:
		first, rest, _ := strings.Cut(path, ".")
		if i, err := strconv.Atoi(first); err == nil && i < len(value) {
			return field(value[i], rest)
		}
	}
	return none
}
