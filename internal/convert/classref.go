package convert

import (
	"encoding/json"
	"strings"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1beta1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1beta1"
)

// class is a kind of node class. References of v1beta1 name its version, those of v1 only its group.
type class struct{ group, version, kind string }

// defaultClass is the class of a v1beta1 reference without kind and apiVersion.
func defaultClass() class { return class{"karpenter.k8s.aws", "v1beta1", "EC2NodeClass"} }

// classes returns the known node classes. A reference to one of them may leave out group, version or kind.
func classes() []class {
	return []class{defaultClass(), {"karpenter.kwok.sh", "v1alpha1", "KWOKNodeClass"},
		{"karpenter.azure.com", "v1alpha2", "AKSNodeClass"}}
}

// otherVersion is the version in references to unknown kinds. Nothing ever read it.
const otherVersion = "v1"

// refUp converts a reference of v1beta1 to v1.
func refUp(field string, ref object) (object, *Problem) {
	version, kind := text(ref, "apiVersion"), text(ref, "kind")
	group, _, _ := strings.Cut(version, "/")
	if version != "" && !strings.Contains(version, "/") {
		return nil, &Problem{field + ".apiVersion", encode(version),
			"it must be a group and a version, for example karpenter.k8s.aws/v1beta1"}
	}
	for _, c := range classes() {
		switch {
		case group == "" && kind == c.kind, group == "" && kind == "":
			group, kind = c.group, c.kind
		case group == c.group && kind == "":
			kind = c.kind
		}
	}
	if group == "" {
		return nil, &Problem{field + ".apiVersion", encode(version), "it is missing, and the group of the kind " +
			encode(kind) + " is not known: give a group and a version, for example karpenter.k8s.aws/v1beta1"}
	}
	if kind == "" {
		return nil, &Problem{field + ".kind", encode(kind), "it is missing, and the kind of the group " +
			encode(group) + " is not known: give a kind, for example EC2NodeClass"}
	}
	up := object{"group": group, "kind": kind}
	move(ref, up, "name")
	return up, nil
}

// refDown converts a reference of v1 to v1beta1. It returns the reference of the annotation if that means the same,
// otherwise one with the version in which the kind is served.
func refDown(ref object, kept string) object {
	if original, err := Decode([]byte(kept)); err == nil && onlyStrings(original) {
		if same, problem := refUp("", original); problem == nil && equal(same["group"], ref["group"]) &&
			equal(same["kind"], ref["kind"]) && equal(same["name"], ref["name"]) {
			return original
		}
	}
	version := otherVersion
	for _, c := range classes() {
		if c.group == text(ref, "group") && c.kind == text(ref, "kind") {
			version = c.version
		}
	}
	down := object{}
	move(ref, down, "name")
	move(ref, down, "kind")
	if group := text(ref, "group"); group != "" {
		down["apiVersion"] = group + "/" + version
	}
	return down
}

// specUp converts the parts that the spec of a NodeClaim and the template of a NodePool share. field is the path of
// spec. What v1 has no place for goes into annotations.
func specUp(field string, spec, annotations object) *Problem {
	if kubelet, isObject := spec["kubelet"].(object); isObject {
		annotations[karpenterv1.KubeletCompatibilityAnnotationKey] = encode(kubelet)
		delete(spec, "kubelet")
	}
	ref, isObject := spec["nodeClassRef"].(object)
	if !isObject || !onlyStrings(ref) {
		return nil // the schema says what is wrong
	}
	up, problem := refUp(field+".nodeClassRef", ref)
	if problem != nil {
		return problem
	}
	annotations[karpenterv1.NodeClassReferenceAnnotationKey] = encode(ref)
	spec["nodeClassRef"] = up
	return nil
}

// specDown is the reverse of specUp. kept are the original annotations of conversion.
func specDown(spec, kept object) {
	for _, key := range []string{karpenterv1.MisspelledKubeletCompatibilityAnnotationKey,
		karpenterv1.KubeletCompatibilityAnnotationKey} {
		if kubelet, ok := readKubelet(text(kept, key)); ok {
			spec["kubelet"] = kubelet
		}
	}
	ref, isObject := spec["nodeClassRef"].(object)
	if !isObject {
		return
	}
	reference := text(kept, karpenterv1.NodeClassReferenceAnnotationKey)
	if reference == "" {
		reference = text(kept, karpenterv1.MisspelledNodeClassReferenceAnnotationKey)
	}
	spec["nodeClassRef"] = refDown(ref, reference)
}

// move copies a field if it exists. Server-side apply asks for objects that lack some fields.
func move(from, to object, key string) {
	if value, found := from[key]; found {
		to[key] = value
	}
}

func onlyStrings(o object) bool {
	for _, value := range o {
		if _, isString := value.(string); !isString {
			return false
		}
	}
	return true
}

// readKubelet reads the kubelet block of an annotation. An invalid one is kept as a note, and not obeyed.
func readKubelet(kept string) (block object, ok bool) {
	block, err := Decode([]byte(kept))
	return block, err == nil && decodes[karpenterv1beta1.KubeletConfiguration]([]byte(kept)) == nil
}

// Kubelet returns the kubelet block that a v1 object keeps from v1beta1, as JSON, empty if there is none. The
// correctly spelled annotation comes before the misspelled one. Its nodes obey the block (V-23). ok is false if the
// annotation cannot be read.
func Kubelet(annotations map[string]string) (block json.RawMessage, ok bool) {
	for _, key := range []string{karpenterv1.KubeletCompatibilityAnnotationKey,
		karpenterv1.MisspelledKubeletCompatibilityAnnotationKey} {
		if kept, found := annotations[key]; found {
			_, ok = readKubelet(kept)
			return json.RawMessage(kept), ok
		}
	}
	return nil, true
}
