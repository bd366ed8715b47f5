package charts

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	ours "github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/charts/chartstest"
)

const pool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: kept}
spec:
  template: {spec: {requirements: [], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}
---
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: kept}
`

// identities returns the UIDs of objects, which tell whether they are still the same objects.
func (h *helm) identities(names ...string) map[string]string {
	h.t.Helper()
	live, uids := h.inventory(h.t), map[string]string{}
	for _, name := range names {
		if live[name] == nil {
			h.t.Fatalf("%s: %s is gone", h.name, name)
		}
		uids[name] = string(live[name].GetUID())
	}
	return uids
}

// takeOver returns the flags with which this version of Helm takes over existing objects.
func (h *helm) takeOver() []string {
	if h.name == "Helm 4" {
		return []string{"--take-ownership", "--force-conflicts"}
	}
	return []string{"--take-ownership"}
}

// U-11: definitions move from the folder crds to the chart of definitions as its page says. The chart upgrades them,
// and they stay when it goes. All along, their objects are the same.
func TestU11_DefinitionsGetToAChartOfTheirOwn(t *testing.T) {
	eachHelm(t, func(h *helm) {
		h.put("install", ours.Joiner, chartstest.Needed(ours.Joiner))
		apply := func(manifest string) {
			if err := h.Apply(h.t.Context(), manifest); err != nil {
				h.t.Fatal(err)
			}
		}
		apply(pool)
		objects := append(definitions(h.t, ours.Joiner), "NodePool/kept", "KWOKNodeClass/kept")
		first := h.identities(objects...)
		h.makeOlder("nodepools.karpenter.sh")

		h.put("upgrade", ours.Joiner, chartstest.Needed(ours.Joiner))
		if !h.isOlder("nodepools.karpenter.sh") {
			h.t.Errorf("%s: the chart joiner changed a definition of its folder crds: its page says otherwise", h.name)
		}
		_, err := h.try("install", ours.CRDs, source(ours.CRDs))
		if err == nil || !strings.Contains(err.Error(), "ownership") {
			h.t.Errorf("%s: definitions of nobody's are taken over without being asked: %v", h.name, err)
		}
		h.put("upgrade", ours.CRDs, nil, append(h.takeOver(), "--install")...)
		if h.isOlder("nodepools.karpenter.sh") {
			h.t.Errorf("%s: the chart of definitions did not upgrade an older one", h.name)
		}
		h.run("uninstall", ours.CRDs)
		h.makeOlder("nodepools.karpenter.sh")
		h.put("install", ours.CRDs, nil, h.again()...) // its own definitions need no asking
		if h.isOlder("nodepools.karpenter.sh") {
			h.t.Errorf("%s: the release that was installed again did not upgrade", h.name)
		}
		h.run("uninstall", ours.Joiner)
		h.run("uninstall", ours.CRDs)
		if last := h.identities(objects...); !maps.Equal(first, last) {
			h.t.Errorf("%s: objects are other ones now: %v, were %v", h.name, last, first)
		}
		h.removeDefinitions(append(definitions(h.t, ours.Joiner), definitions(h.t, ours.Webhook)...))
	})
}

// again returns the flags with which this version of Helm installs a release over definitions that it kept and that
// somebody changed.
func (h *helm) again() []string {
	if h.name == "Helm 4" {
		return []string{"--force-conflicts"}
	}
	return nil
}

func crds() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
}

func (h *helm) definition(name string) *unstructured.Unstructured {
	h.t.Helper()
	found, err := h.client.Resource(crds()).Get(h.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		h.t.Fatal(err)
	}
	return found
}

// makeOlder removes the categories from a definition, as if it were from an earlier release.
func (h *helm) makeOlder(name string) {
	h.t.Helper()
	found := h.definition(name)
	names, _, err := unstructured.NestedStringSlice(found.Object, "spec", "names", "categories")
	if err != nil || len(names) == 0 {
		h.t.Fatalf("%s has no categories to take away (%v)", name, err)
	}
	unstructured.RemoveNestedField(found.Object, "spec", "names", "categories")
	if _, err := h.client.Resource(crds()).Update(h.t.Context(), found, metav1.UpdateOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

func (h *helm) isOlder(name string) bool {
	h.t.Helper()
	names, _, err := unstructured.NestedStringSlice(h.definition(name).Object, "spec", "names", "categories")
	if err != nil {
		h.t.Fatal(err)
	}
	return len(names) == 0
}

// U-11: a definition whose value is switched off stays with its objects, and the release takes it again.
func TestU11_ADefinitionThatIsSwitchedOffStays(t *testing.T) {
	eachHelm(t, func(h *helm) {
		for chart, value := range map[string]string{ours.CRDs: "kwok", ours.Operator: "crds.install",
			ours.Guest: "crds.install"} {
			on := chartstest.Needed(chart)
			on[value] = true
			stays := kept(h.t, chart, on)
			h.put("install", chart, on)
			first := h.identities(stays...)
			off := chartstest.Needed(chart)
			off[value] = false
			h.put("upgrade", chart, off)
			h.put("upgrade", chart, on)
			if last := h.identities(stays...); !maps.Equal(first, last) {
				h.t.Errorf("%s: %s: %v are other ones, were %v", h.name, chart, last, first)
			}
			h.run("uninstall", chart)
			h.removeDefinitions(stays)
		}
	})
}

// U-11: Helm leaves alone what the programs write into objects of their charts: the webhook's caBundle and path, and
// the certificates of the conversion.
func TestU11_WhatTheProgramsWriteSurvives(t *testing.T) {
	eachHelm(t, func(h *helm) {
		webhook, joiner := chartstest.Needed(ours.Webhook), chartstest.Needed(ours.Joiner)
		joiner["v1beta1.mode"] = "Enable"
		h.put("install", ours.Webhook, webhook)
		h.put("install", ours.Joiner, joiner)
		write := func(kind, name, patch string) {
			if _, err := h.Kubectl(h.t.Context(), "", "patch", kind, name, "-n", space, "--type=json", "-p", patch,
				"--field-manager=joiner"); err != nil {
				h.t.Fatal(err)
			}
		}
		var patch []map[string]any
		for _, i := range []string{"0", "1", "2"} {
			at := "/webhooks/" + i + "/clientConfig/"
			patch = append(patch, map[string]any{"op": "add", "path": at + "caBundle", "value": "eHh4"},
				map[string]any{"op": "add", "path": at + "service/path", "value": "/node-scheduling/secret"})
		}
		text, err := json.Marshal(patch)
		if err != nil {
			h.t.Fatal(err)
		}
		write("validatingwebhookconfigurations", "node-scheduling-policy", string(text))
		write("secrets", "joiner-v1beta1-certificates",
			`[{"op": "add", "path": "/data", "value": {"tls.key": "eHh4"}}]`)
		survives := func(when string) {
			live := h.inventory(h.t)
			configuration := live["ValidatingWebhookConfiguration/node-scheduling-policy"].Object
			webhooks, _, err := unstructured.NestedSlice(configuration, "webhooks")
			if err != nil || len(webhooks) != 3 {
				h.t.Fatalf("%s: %d webhooks, error %v", when, len(webhooks), err)
			}
			for _, one := range webhooks {
				config := one.(map[string]any)["clientConfig"].(map[string]any)
				if config["caBundle"] != "eHh4" ||
					config["service"].(map[string]any)["path"] != "/node-scheduling/secret" {
					h.t.Errorf("%s: %s: the API server is told %v", h.name, when, config)
				}
			}
			secret := live["Secret/joiner-v1beta1-certificates"].Object
			if key, _, err := unstructured.NestedString(secret, "data", "tls.key"); err != nil || key != "eHh4" {
				h.t.Errorf("%s: %s: the key of the certificates is %q (%v)", h.name, when, key, err)
			}
		}
		webhook["failurePolicy"], joiner["replicas"] = "Ignore", 3
		h.put("upgrade", ours.Webhook, webhook)
		h.put("upgrade", ours.Joiner, joiner)
		survives("upgraded")
		h.run("rollback", ours.Webhook, "1")
		h.run("rollback", ours.Joiner, "1")
		survives("rolled back")
		h.run("uninstall", ours.Webhook)
		h.run("uninstall", ours.Joiner)
		h.removeDefinitions(append(definitions(h.t, ours.Joiner), definitions(h.t, ours.Webhook)...))
	})
}
