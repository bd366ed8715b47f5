package autonode

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// The kinds of this package. Tests use no Go types for them: they check what the API server stores.
var (
	policyKind    = hypershift("AutoNodePolicy")
	poolWrapper   = hypershift("OpenshiftNodePool")
	classWrapper  = hypershift("OpenshiftEC2NodeClass")
	nodePoolKind  = schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"}
	nodeClaimKind = schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodeClaim"}
	overlayKind   = schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1alpha1", Kind: "NodeOverlay"}
	nodeClassKind = schema.GroupVersionKind{Group: "karpenter.k8s.aws", Version: "v1", Kind: "EC2NodeClass"}
	vapKind       = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1",
		Kind: "ValidatingAdmissionPolicy"}
	bindingKind = schema.GroupVersionKind{Group: "admissionregistration.k8s.io", Version: "v1",
		Kind: "ValidatingAdmissionPolicyBinding"}
	nodeKind = schema.GroupVersionKind{Version: "v1", Kind: "Node"}
	crdKind  = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
		Kind: "CustomResourceDefinition"}
)

// kindOfObject is one of these.
type kindOfObject = schema.GroupVersionKind

func hypershift(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "karpenter.hypershift.openshift.io", Version: "v1beta1", Kind: kind}
}

const (
	instanceType = "node.kubernetes.io/instance-type"
	zone         = "topology.kubernetes.io/zone"
	arch         = "kubernetes.io/arch"
	capacityType = "karpenter.sh/capacity-type"
)

type object = map[string]any

// entry returns one requirement as the API server stores it.
func entry(key, operator string, values ...string) object {
	e := object{"key": key, "operator": operator}
	if len(values) > 0 {
		list := make([]any, len(values))
		for i, value := range values {
			list[i] = value
		}
		e["values"] = list
	}
	return e
}

func in(key string, values ...string) object { return entry(key, "In", values...) }

// atLeast returns an entry with minValues.
func atLeast(n int, e object) object {
	e["minValues"] = int64(n)
	return e
}

func list(entries ...object) []any {
	all := make([]any, len(entries))
	for i, e := range entries {
		all[i] = e
	}
	return all
}

// restrict returns the spec of a policy with requirements only.
func restrict(entries ...object) object {
	return object{"nodePoolDefaults": object{"requirements": list(entries...)}}
}

// root returns the spec of a policy with a root volume only; volume is YAML.
func root(volume string) object {
	return object{"ec2NodeClassDefaults": object{"rootVolume": parse(volume)}}
}

// both returns a spec with the parts of all.
func both(specs ...object) object {
	sum := object{}
	for _, spec := range specs {
		for key, value := range spec {
			sum[key] = value
		}
	}
	return sum
}

// wants returns the spec of an OpenshiftNodePool with requirements only.
func wants(entries ...object) object {
	return object{"template": object{"spec": object{"requirements": list(entries...)}}}
}

// numbered returns n different entries of one key that exclude nothing else.
func numbered(n int, prefix string) []object {
	entries := make([]object, n)
	for i := range entries {
		entries[i] = entry(instanceType, "NotIn", fmt.Sprintf("%s-%d", prefix, i))
	}
	return entries
}

// parse reads a YAML mapping. Tests only have constant ones, so it panics if one is wrong.
func parse(text string) object {
	var result object
	if err := yaml.Unmarshal([]byte(text), &result); err != nil {
		panic(fmt.Sprintf("%v in\n%s", err, text))
	}
	return result
}

// newObject returns an object of a kind with a spec; namespace is empty for kinds of the cluster.
func newObject(kind schema.GroupVersionKind, namespace, name string, spec object) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: object{}}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	if spec != nil {
		o.Object["spec"] = spec
	}
	return o
}

// field returns the value at a path, or nil.
func field(o *unstructured.Unstructured, path ...string) any {
	value, _, _ := unstructured.NestedFieldCopy(o.Object, path...)
	return value
}

// condition returns the condition of a type, or nil.
func condition(o *unstructured.Unstructured, kind string) object {
	conditions, _ := field(o, "status", "conditions").([]any)
	for _, c := range conditions {
		if c, ok := c.(object); ok && c["type"] == kind {
			return c
		}
	}
	return nil
}
