package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

// beforeV1 is a CRD of a Karpenter that is older than v1.
const beforeV1 = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: nodepools.karpenter.sh}
spec: {group: karpenter.sh, names: {kind: NodePool}, versions: [{name: v1beta1, served: true, storage: true}]}
status: {storedVersions: [v1beta1]}
`

// withLeases is a cluster with these objects in which CRDs, leases, and what a shell completes can be read.
func withLeases(t *testing.T, manifests ...string) *fake.FakeDynamicClient {
	t.Helper()
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		definitions: "CustomResourceDefinitionList",
		{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}: "LeaseList",
		{Version: "v1", Resource: "pods"}:                                 "PodList",
		{Version: "v1", Resource: "nodes"}:                                "NodeList",
		{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}:     "NodePoolList",
		{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}:    "NodeClaimList",
		{Group: "apps", Version: "v1", Resource: "deployments"}:           "DeploymentList",
		{Group: "batch", Version: "v1", Resource: "jobs"}:                 "JobList",
	}, objectsOf(t, manifests...)...)
}

// TestU28_VersionSaysWhatRunsTogether, and what does not. Without a cluster it shows this program alone, which is no
// failure.
func TestU28_VersionSaysWhatRunsTogether(t *testing.T) {
	t.Parallel()
	const (
		lease = "apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: karpenter-leader-election, namespace: joiner}\n" +
			"spec: {holderIdentity: joiner-a_1, leaseDurationSeconds: 15, renewTime: \"2999-01-01T00:00:00.000000Z\"}\n"
		leader = "apiVersion: v1\nkind: Pod\nmetadata: {name: joiner-a, namespace: joiner, labels: {app.kubernetes.io/name: joiner, " +
			"app.kubernetes.io/version: 0.4.0}}\n"
	)
	unserved := strings.Replace(definition, "{name: v1beta1, served: true}", "{name: v1beta1, served: false}", 1)
	for name, c := range map[string]struct {
		manifests []string
		code      int
		want      string
	}{
		"all of it": {[]string{definition, lease, leader}, cli.CodeFine,
			"Joiner                  0.4.0 (leader joiner-a)\nnodepools.karpenter.sh  served v1, v1beta1; stored v1beta1, v1\n"},
		"no leader": {[]string{definition}, cli.CodeFine,
			"note: nobody leads: no controller is asked for its version\n"},
		"nothing": {nil, cli.CodeFine, "note: the cluster has no CRDs of Joiner or Karpenter\n"},
		"older": {[]string{beforeV1}, cli.CodeFindings,
			"does not go together: the CRD nodepools.karpenter.sh does not serve v1, which " +
				"Joiner and joinerctl read: apply Joiner's CRDs\n"},
		"not served": {[]string{unserved}, cli.CodeFindings,
			"may be stored in v1beta1, which is not served: joinerctl migrate storage\n"},
	} {
		code, out, failures := run(t, withLeases(t, c.manifests...), "", "version")
		if code != c.code || failures != "" || !strings.HasPrefix(out, "joinerctl  ") ||
			!strings.Contains(out, c.want) {
			t.Errorf("%s: exit %d, %q\n%s", name, code, failures, out)
		}
	}
	code, out, failures := run(t, nil, "", "version", "-o", "json")
	var v struct {
		Client struct{ Version, Go, Platform string }
		Notes  []string
	}
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != cli.CodeFine || failures != "" ||
		v.Client.Version == "" ||
		!strings.HasPrefix(v.Client.Go, "go1.") || len(v.Notes) != 1 || v.Notes[0] != "no usable kubeconfig" {
		t.Errorf("without a cluster: exit %d, %q\n%s", code, failures, out)
	}
	if code, out, _ := run(t, nil, "", "version", "--client"); code != cli.CodeFine ||
		strings.Contains(out, "note: ") {
		t.Errorf("--client: exit %d\n%s", code, out)
	}
}

// TestU28_AShellGetsNames: completion offers names of the cluster's objects. Without a cluster it offers none, and
// does not complain. The scripts for shells exist.
func TestU28_AShellGetsNames(t *testing.T) {
	t.Parallel()
	pod := func(namespace, name string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: " + name + ", namespace: " + namespace + "}\n"
	}
	client := withLeases(t, pod("shop", "web-0"), pod("shop", "web-1"), pod("ml", "train"),
		"apiVersion: v1\nkind: Node\nmetadata: {name: ip-10-0-7-4}\n",
		"apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: gpu}\n",
		"apiVersion: karpenter.sh/v1\nkind: NodeClaim\nmetadata: {name: gpu-aaaa}\n",
		"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop}\n",
		"apiVersion: batch/v1\nkind: Job\nmetadata: {name: once, namespace: ml}\n")
	for want, args := range map[string][]string{
		"shop/web-0\nshop/web-1\n:4\n":           {"explain", "pod", "shop/"},
		"ml/train\nshop/web-0\nshop/web-1\n:4\n": {"explain", "pod", ""},
		"ip-10-0-7-4\n:4\n":                      {"explain", "node", "ip"},
		":4\n":                                   {"explain", "node", "ip-10-0-7-4", ""},
		"gpu\n:4\n":                              {"explain", "nodepool", ""},
		"gpu-aaaa\n:4\n":                         {"explain", "nodeclaim", "g"},
		"shop/web\n:4\n":                         {"explain", "deployment", "shop/"},
		"ml/once\n:4\n":                          {"explain", "job", ""},
		"status\tShow the state of the cluster on one screen": {"sta"},
	} {
		if code, out, _ := run(t, client, "", append([]string{"__complete"}, args...)...); code != cli.CodeFine ||
			!strings.HasPrefix(out, want) {
			t.Errorf("%v: exit %d, %q; want %q", args, code, out, want)
		}
	}
	if code, out, _ := run(t, nil, "", "__complete", "explain", "pod", ""); code != cli.CodeFine || out != ":4\n" {
		t.Errorf("without a cluster: exit %d, %q", code, out)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, out, failures := run(t, nil, "", "completion", shell); code != cli.CodeFine || failures != "" ||
			!strings.Contains(out, "joinerctl") {
			t.Errorf("%s: exit %d, %q", shell, code, failures)
		}
	}
}

// TestU28_WhatMayNotBeReadIsANote: what may not be read is a note.
func TestU28_WhatMayNotBeReadIsANote(t *testing.T) {
	t.Parallel()
	client := standing(t, []string{"leases", "customresourcedefinitions"})
	code, out, failures := run(t, client, "", "version")
	if code != cli.CodeFine || failures != "" ||
		!strings.Contains(out, "note: listing leases.coordination.k8s.io: ") ||
		!strings.Contains(out, "note: reading the CRD nodepools.karpenter.sh: ") {
		t.Errorf("exit %d, %q\n%s", code, failures, out)
	}
}
