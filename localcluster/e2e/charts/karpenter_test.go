package charts

import (
	"bytes"
	"embed"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	ours "github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/internal/cli"
)

// releaseOfKarpenter is a chart of our own. Its objects have the names of Karpenter's chart for AWS, its selectors,
// and everything else that cannot be changed in place.
//
//go:embed testdata/karpenter
var releaseOfKarpenter embed.FS

const claim = `
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: kept}
spec: {requirements: [], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}
`

// joinerctl runs our program against the cluster of the package, and demands one of these exit codes.
func (h *helm) joinerctl(codes []int, args ...string) string {
	h.t.Helper()
	config, err := h.Cluster.RESTConfig("admin")
	if err != nil {
		h.t.Fatal(err)
	}
	var out, failures bytes.Buffer
	code := cli.Run(h.t.Context(), cli.Config{
		Client: func(cli.Connection) (dynamic.Interface, error) { return dynamic.NewForConfig(config) },
		In:     strings.NewReader(""), Out: &out, Err: &failures,
	}, args)
	for _, want := range codes {
		if code == want {
			return out.String()
		}
	}
	h.t.Fatalf("%v ends with %d, want one of %v: %s\n%s", args, code, codes, &failures, &out)
	return ""
}

// definitionsChart writes a chart with Karpenter's definitions as templates, like Karpenter's chart of definitions:
// without an annotation that keeps them, and with a value for further annotations.
func definitionsChart(t *testing.T) (folder string, definitions []string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "karpenter-crd")
	files := map[string]string{"Chart.yaml": "{apiVersion: v2, name: karpenter-crd, version: 1.14.0}\n",
		"values.yaml": "additionalAnnotations: {}\n"}
	found, err := fs.Glob(ours.Files(), ours.Joiner+"/crds/karpenter.*")
	if err != nil || len(found) != 5 {
		t.Fatalf("definitions %v, error %v", found, err)
	}
	for _, name := range found {
		text, err := fs.ReadFile(ours.Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		further := "\n  annotations:\n{{- range $name, $value := .Values.additionalAnnotations }}\n" +
			"    {{ $name }}: {{ quote $value }}\n{{- end }}\n"
		files["templates/"+filepath.Base(name)] = strings.Replace(string(text), "\n  annotations:\n", further, 1)
		plural, group, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), ".yaml"), "_")
		definitions = append(definitions, "CustomResourceDefinition/"+group+"."+plural)
	}
	if err := os.MkdirAll(folder+"/templates", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder, definitions
}

// K-24: a release of Karpenter's chart of definitions takes all pools and claims with it when it is uninstalled (F2).
// Once its definitions are ours, each one is the same object as before: with Helm 4 by uninstalling, with Helm 3 after
// its value has kept them, or by taking away its record; and our chart upgrades them without asking.
func TestK24_KarpentersDefinitionsGoWithoutTheirObjects(t *testing.T) {
	eachHelm(t, func(h *helm) {
		folder, definitions := definitionsChart(h.t)
		objects := append(definitions[:len(definitions):len(definitions)], "NodePool/kept", "KWOKNodeClass/kept",
			"NodeClaim/kept")
		begin := func() map[string]string {
			h.run("install", "karpenter-crd", folder)
			if _, err := h.Kubectl(h.t.Context(), "", "wait", "--for=condition=Established", "--timeout=60s", "crd",
				"--all"); err != nil {
				h.t.Fatal(err)
			}
			if err := h.Apply(h.t.Context(), pool+claim); err != nil {
				h.t.Fatal(err)
			}
			return h.identities(objects...)
		}
		begin()
		h.run("uninstall", "karpenter-crd", "--wait")
		if live := h.inventory(h.t); live["NodePool/kept"] != nil || live[definitions[0]] != nil {
			h.t.Fatalf("%s: the definitions stayed without being adopted: the rest of this test would show nothing",
				h.name)
		}
		ways := map[string]func(){"by uninstalling": func() { h.run("uninstall", "karpenter-crd") }}
		if h.name == "Helm 3" {
			ways = map[string]func(){
				"by its value": func() { h.run("uninstall", "karpenter-crd") },
				"by its record": func() {
					_, err := h.Kubectl(h.t.Context(), "", "delete", "secret", "-n", space, "-l",
						"owner=helm,name=karpenter-crd")
					if err != nil {
						h.t.Fatal(err)
					}
				},
			}
		}
		for way, remove := range ways {
			first := begin()
			if way == "by its value" {
				h.run("upgrade", "karpenter-crd", folder, "--reset-then-reuse-values", "--set-string",
					`additionalAnnotations.helm\.sh/resource-policy=keep`)
			}
			said := h.joinerctl([]int{1}, "takeover", "adopt-crds", "--release", ours.CRDs, "--release-namespace",
				space, "--dry-run")
			if !strings.Contains(said, "kubectl patch crd nodepools.karpenter.sh") ||
				!strings.Contains(said, "never uninstall it with Helm 3") {
				h.t.Errorf("%s: adopt-crds --dry-run says\n%s", h.name, said)
			}
			h.joinerctl([]int{1}, "takeover", "adopt-crds", "--release", ours.CRDs, "--release-namespace", space)
			remove()
			h.put("upgrade", ours.CRDs, nil, append(h.again(), "--install")...)
			if last := h.identities(objects...); !maps.Equal(first, last) {
				h.t.Errorf("%s: %s: objects are other ones now: %v, were %v", h.name, way, last, first)
			}
			h.run("uninstall", ours.CRDs)
			if last := h.identities(objects...); !maps.Equal(first, last) {
				h.t.Errorf("%s: %s: without our chart objects are other ones: %v, were %v", h.name, way, last, first)
			}
			h.joinerctl([]int{0}, "takeover", "adopt-crds", "--release", ours.CRDs, "--release-namespace", space)
			h.removeDefinitions(append(definitions[:len(definitions):len(definitions)], h.left(definitions)...))
		}
	})
}

// left returns the definitions, besides these, that our chart of definitions leaves.
func (h *helm) left(beside []string) (names []string) {
	h.t.Helper()
	known := map[string]bool{}
	for _, name := range beside {
		known[name] = true
	}
	for _, name := range append(definitions(h.t, ours.Joiner), definitions(h.t, ours.Webhook)...) {
		if !known[name] {
			names = append(names, name)
		}
	}
	return names
}

// K-23: the release of Karpenter's chart is upgraded in place to ours, and back. Objects on which others rely stay the
// same: account, Service, Deployment with its selector and budget. The release keeps its values. Those of the old
// chart's own image do not pass with --reuse-values.
func TestK23_AReleaseOfKarpentersIsUpgradedInPlace(t *testing.T) {
	eachHelm(t, func(h *helm) {
		folder := h.t.TempDir()
		chart, err := fs.Sub(releaseOfKarpenter, "testdata/karpenter")
		if err == nil {
			err = os.CopyFS(folder, chart)
		}
		if err != nil {
			h.t.Fatal(err)
		}
		before := h.inventory(h.t)
		values := filepath.Join(folder, "user.yaml")
		text :=
			"replicas: 3\nserviceAccount: {annotations: {eks.amazonaws.com/role-arn: 'arn:aws:iam::123456789012:role/karpenter'}}\n" +
				"settings: {clusterName: prod, featureGates: {nodeRepair: true}}\n"
		if err := os.WriteFile(values, []byte(text), 0o600); err != nil {
			h.t.Fatal(err)
		}
		h.run("install", "karpenter", folder, "--values", values)
		same := []string{"ServiceAccount/karpenter", "Service/karpenter", "Deployment/karpenter",
			"PodDisruptionBudget/karpenter",
			"ClusterRole/karpenter", "ClusterRoleBinding/karpenter", "Role/karpenter", "RoleBinding/karpenter"}
		first := h.identities(same...)
		on := []string{"--set", "image=registry.example.com/joiner:1", "--set", "compat.karpenter=true"}
		_, err = h.try(append([]string{"upgrade", "karpenter", source(ours.Joiner), "--reuse-values"}, on...)...)
		if err == nil || !strings.Contains(err.Error(), "/controller/image/repository") ||
			!strings.Contains(err.Error(), "--reset-then-reuse-values") {
			h.t.Errorf("%s: --reuse-values is not refused as it should be: %v", h.name, err)
		}
		h.run(append([]string{"upgrade", "karpenter", source(ours.Joiner), "--reset-then-reuse-values"}, on...)...)
		if last := h.identities(same...); !maps.Equal(first, last) {
			h.t.Errorf("%s: objects are other ones now: %v, were %v", h.name, last, first)
		}
		h.isJoiners()
		h.run("rollback", "karpenter", "1")
		if last := h.identities(same...); !maps.Equal(first, last) {
			h.t.Errorf("%s: after the way back objects are other ones: %v, were %v", h.name, last, first)
		}
		if container := h.container(); container["image"] != "public.ecr.aws/karpenter/controller:1.14.1" {
			h.t.Errorf("%s: after the way back the container is %v", h.name, container)
		}
		h.run("uninstall", "karpenter")
		if got := added(before, h.inventory(h.t)); len(got) != 0 {
			h.t.Errorf("%s: %v are left", h.name, got)
		}
	})
}

// container returns the first one of the Deployment karpenter.
func (h *helm) container() map[string]any {
	h.t.Helper()
	found, _, err := unstructured.NestedSlice(h.inventory(h.t)["Deployment/karpenter"].Object, "spec", "template",
		"spec", "containers")
	if err != nil || len(found) == 0 {
		h.t.Fatalf("%s: containers %v, error %v", h.name, found, err)
	}
	return found[0].(map[string]any)
}

// isJoiners demands that the release runs our program, with what its user had given.
func (h *helm) isJoiners() {
	h.t.Helper()
	live := h.inventory(h.t)
	replicas, _, _ := unstructured.NestedInt64(live["Deployment/karpenter"].Object, "spec", "replicas")
	role := live["ServiceAccount/karpenter"].GetAnnotations()["eks.amazonaws.com/role-arn"]
	container := h.container()
	env := map[string]any{}
	for _, one := range container["env"].([]any) {
		variable := one.(map[string]any)
		env[variable["name"].(string)] = variable["value"]
	}
	gates, _ := env["FEATURE_GATES"].(string)
	if replicas != 3 || role != "arn:aws:iam::123456789012:role/karpenter" || container["name"] != "controller" ||
		container["image"] != "registry.example.com/joiner:1" || env["CLUSTER_NAME"] != "prod" ||
		!strings.HasPrefix(gates, "NodeRepair=true,") || !strings.Contains(gates, "StaticCapacity=false") ||
		env["DISABLE_WEBHOOK"] != nil {
		h.t.Errorf("%s: %d replicas, role %q, the container is %v", h.name, replicas, role, container)
	}
	if live["ClusterRole/karpenter-core"] != nil {
		h.t.Errorf("%s: a ClusterRole of Karpenter's is left", h.name)
	}
}
