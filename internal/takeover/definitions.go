package takeover

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/api/crd"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// Annotations by which Helm knows which release owns an object, and whether to keep it.
const (
	helmRelease   = "meta.helm.sh/release-name"
	helmNamespace = "meta.helm.sh/release-namespace"
	helmPolicy    = "helm.sh/resource-policy"
)

// OwnFields returns the fields of our definitions that those of Karpenter 1.15 lack, by the name of the definition.
// Each includes all fields below it. A test in the module bench compares them with Karpenter's.
func OwnFields() map[string][]string {
	return map[string][]string{"nodepools." + karpenterv1.Group: {
		"spec.disruption.budgets[].timeZone", "spec.hardLimits", "status.disruption",
	}}
}

// Kinds reports whether a definition belongs to Karpenter: to its core, or to a provider that Joiner has too.
func Kinds(definition string) bool {
	_, group, _ := strings.Cut(definition, ".")
	return slices.Contains([]string{karpenterv1.Group, "karpenter.k8s.aws", "karpenter.kwok.sh"}, group)
}

// Shared is the definition of CapacityBuffers. Karpenter's charts contain it, and so does Cluster Autoscaler.
const Shared = "capacitybuffers.autoscaling.x-k8s.io"

// definitions checks the CustomResourceDefinitions of Karpenter's kinds.
func definitions(p *picture) (found []Finding) {
	ours, err := shipped()
	if err != nil {
		p.err = err
		return nil
	}
	for _, o := range p.others["CustomResourceDefinition"] {
		if !Kinds(o.GetName()) {
			continue
		}
		add := func(consequence, remedy string) {
			found = append(found, Finding{Severity: Danger, Kind: "CustomResourceDefinition", Name: o.GetName(),
				Consequence: consequence, Remedy: remedy})
		}
		annotations := o.GetAnnotations()
		if release := annotations[helmRelease]; release != "" && annotations[helmPolicy] != "keep" {
			add(fmt.Sprintf(
				"release %s/%s of Helm deletes it when it is uninstalled, and with it every object of its kind",
				annotations[helmNamespace], release), "joinerctl takeover adopt-crds, before that release is removed")
		}
		stored, _, _ := unstructured.NestedStringSlice(o.Object, "status", "storedVersions")
		if slices.Contains(stored, "v1beta1") {
			add("objects may be stored in v1beta1, which the definitions of Joiner serve only with --v1beta1",
				"joinerctl migrate check, and docs/migrating-v1beta1.md")
		}
		found = append(found, compared(o, ours[o.GetName()])...)
	}
	return found
}

// compared says by its fields from which release a definition may be.
func compared(o unstructured.Unstructured, ours map[string]bool) (found []Finding) {
	theirs := FieldsOf(o.Object)
	if len(ours) == 0 || len(theirs) == 0 {
		return nil
	}
	var lost, lacks []string
	for _, path := range slices.Sorted(maps.Keys(theirs)) {
		if !ours[path] {
			lost = append(lost, path)
		}
	}
	core := strings.HasSuffix(o.GetName(), "."+karpenterv1.Group)
	for _, path := range slices.Sorted(maps.Keys(ours)) {
		if core && !theirs[path] && !OwnField(o.GetName(), path) {
			lacks = append(lacks, path)
		}
	}
	if len(lost) > 0 {
		found = append(found, Finding{Severity: Danger, Kind: "CustomResourceDefinition", Name: o.GetName(),
			Consequence: fmt.Sprintf("it is newer than what Joiner knows: its definition drops %s (%s)",
				count(len(lost), "field", "fields"), some(lost)),
			Remedy: "use a Joiner that knows them, or see that no object needs them"})
	}
	if len(lacks) > 0 {
		found = append(found, Finding{Severity: Danger, Kind: "CustomResourceDefinition", Name: o.GetName(),
			Consequence: fmt.Sprintf(
				"it is of a Karpenter before 1.15, and lacks %s (%s): what Joiner writes there is lost until its own "+
					"definitions are applied", count(len(lacks), "field", "fields"), some(lacks)),
			Remedy: "apply Joiner's definitions before it starts (docs/takeover.md)"})
	}
	return found
}

// OwnField reports whether a path is one of OwnFields, or below one.
func OwnField(definition, path string) bool {
	return slices.ContainsFunc(OwnFields()[definition], func(own string) bool {
		return path == own || strings.HasPrefix(path, own+".") || strings.HasPrefix(path, own+"[")
	})
}

// shipped returns the fields of our definitions, by the names of these.
func shipped() (map[string]map[string]bool, error) {
	manifests, err := crd.Manifests()
	if err != nil {
		return nil, err
	}
	fields := map[string]map[string]bool{}
	for name, data := range manifests {
		var o unstructured.Unstructured
		if err := yaml.Unmarshal(data, &o.Object); err != nil {
			return nil, fmt.Errorf("our own %s: %w", name, err)
		}
		if o.GetKind() == "CustomResourceDefinition" {
			fields[o.GetName()] = FieldsOf(o.Object)
		}
	}
	return fields, nil
}

// FieldsOf returns the paths of all fields in a definition's storage version.
func FieldsOf(definition map[string]any) map[string]bool {
	paths := map[string]bool{}
	versions, _, _ := unstructured.NestedSlice(definition, "spec", "versions")
	for _, entry := range versions {
		version, _ := entry.(map[string]any)
		if version["storage"] != true {
			continue
		}
		if schema, is, _ := unstructured.NestedMap(version, "schema", "openAPIV3Schema"); is {
			walk(schema, "", paths)
		}
	}
	return paths
}

func walk(schema map[string]any, at string, paths map[string]bool) {
	properties, _ := schema["properties"].(map[string]any)
	for name, entry := range properties {
		inner, _ := entry.(map[string]any)
		path := strings.TrimPrefix(at+"."+name, ".")
		paths[path] = true
		walk(inner, path, paths)
	}
	if items, is := schema["items"].(map[string]any); is {
		walk(items, at+"[]", paths)
	}
	if values, is := schema["additionalProperties"].(map[string]any); is {
		walk(values, at+"{}", paths)
	}
}
