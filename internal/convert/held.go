package convert

import (
	"encoding/json"
	"maps"
	"slices"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// hold returns an object of the version that stands for one that cannot be converted (V-24): it has its metadata, as much of
// the rest as a client can read, and does nothing. The object itself is kept in an annotation, and the problems beside it.
//
// What is kept for another version in annotations stays as it is: metadata is not converted, so that edits of labels and
// annotations made meanwhile survive.
func (k *kind) hold(o object, version string, problems []Problem) object {
	annotations := cloneObject(annotationsOf(o))
	kept := object{"apiVersion": o["apiVersion"]}
	for key, value := range o {
		if key != "apiVersion" && key != "kind" && key != "metadata" {
			kept[key] = value
		}
	}
	displaced := object{}
	for _, key := range heldKeys() {
		if value, found := annotations[key]; found {
			displaced[key] = value
		}
	}
	if len(displaced) > 0 {
		kept["annotations"] = displaced
	}
	stand := k.standIn(o, version, Describe(problems))
	setAnnotations(stand, fitting(annotations, encode(kept), Describe(problems)))
	return stand
}

// fitting adds to annotations what is kept of an object and what is wrong with it, as far as there is room: the API server
// gives up a whole list for an answer with more annotations than it allows.
func fitting(annotations object, kept, problem string) object {
	full := maps.Clone(annotations)
	full[karpenterv1.UnconvertedAnnotationKey] = kept
	full[karpenterv1.ConversionProblemAnnotationKey] = problem
	if sizeOf(full) <= maxAnnotations {
		return full
	}
	delete(full, karpenterv1.UnconvertedAnnotationKey)
	full[karpenterv1.ConversionProblemAnnotationKey] = problem + "; the object is too large to be kept here: mend it before anything writes it in this version"
	if sizeOf(full) <= maxAnnotations {
		return full
	}
	return annotations
}

// standIn makes what can be read of an object, at rest.
func (k *kind) standIn(o object, version, problem string) object {
	var converted object
	if version == V1 {
		converted, _ = k.plainUp(o)
	} else {
		converted = k.plainDown(o)
	}
	if _, isObject := converted["spec"].(object); !isObject {
		converted["spec"] = object{}
	}
	for _, part := range []string{"spec", "status"} {
		if !k.schemas[version].Properties[part].repair(converted[part]) {
			converted[part] = object{}
		}
	}
	k.rest(converted, version, problem)
	if k.decode[version]([]byte(encode(object{"spec": converted["spec"], "status": converted["status"]}))) != nil {
		converted["spec"], converted["status"] = object{}, object{}
		k.rest(converted, version, problem)
	}
	return converted
}

// unhold returns the object of a version that o, which is of the version from, stands for; nil if it stands for none, or
// was edited since: then the fields win over what is kept.
func (c *Converter) unhold(k *kind, o object, from, version string) object {
	kept, err := Decode([]byte(text(annotationsOf(o), karpenterv1.UnconvertedAnnotationKey)))
	if err != nil || kept["apiVersion"] != k.group+"/"+version {
		return nil
	}
	displaced, isObject := kept["annotations"].(object)
	if kept["annotations"] != nil && (!isObject || !onlyStrings(displaced)) {
		return nil
	}
	for key := range displaced {
		if !slices.Contains(heldKeys(), key) {
			return nil // made by hand
		}
	}
	original := cloneObject(kept)
	delete(original, "annotations")
	original["kind"], original["metadata"] = o["kind"], clone(o["metadata"])
	annotations := annotationsOf(original)
	for _, key := range heldKeys() {
		delete(annotations, key)
	}
	maps.Copy(annotations, displaced)
	setAnnotations(original, annotations)

	again, err := c.Convert(original, from)
	if err != nil || len(again.Problems) == 0 || !equal(again.Object["spec"], o["spec"]) {
		return nil
	}
	return original
}

// restNodePool: nothing is launched, since the limit of nodes is 0, and nothing is disrupted. The template stays as far as
// it can be read, so that the drift hash stays too if the template is not what is wrong (V-23).
func restNodePool(o object, version, problem string) {
	spec := o["spec"].(object)
	template := remake(remake(spec, "template"), "spec")
	setDefault(template, "requirements", []any{})
	setDefault(template, "nodeClassRef", object{"name": ""})
	spec["limits"] = object{"nodes": "0"}
	still := object{"consolidationPolicy": whenEmpty, "consolidateAfter": never, "budgets": []any{object{"nodes": "0"}}}
	expiry := template
	if version == V1beta1 {
		expiry = still
	} else {
		ref := remake(template, "nodeClassRef")
		setDefault(ref, "group", "")
		setDefault(ref, "kind", "")
		setDefault(ref, "name", "")
	}
	setDefault(expiry, "expireAfter", never)
	spec["disruption"] = still
	notReady(o, problem)
}

// restNodeClaim: its status says that it is launched, or else launching finds the instance again by the claim's UID.
func restNodeClaim(o object, version, _ string) {
	spec := o["spec"].(object)
	setDefault(spec, "requirements", []any{})
	setDefault(spec, "nodeClassRef", object{"name": ""})
	if version == V1 {
		setDefault(spec, "expireAfter", never)
	}
}

// restEC2NodeClass: no NodePool launches with a node class that is not ready.
func restEC2NodeClass(o object, version, problem string) {
	hops := json.Number("1")
	if version == V1beta1 {
		hops = "2"
	}
	defaultMetadataOptions(o["spec"].(object), hops)
	notReady(o, problem)
}

// notReady shows in the printed columns that something is wrong. Controllers write their own condition over it.
func notReady(o object, problem string) {
	condition := object{
		"type": karpenterv1.ConditionTypeReady, "status": "False", "reason": "ConversionFailed",
		"message": shorten(problem, 1024), "lastTransitionTime": "1970-01-01T00:00:00Z",
	}
	remake(o, "status")["conditions"] = []any{condition}
}

// remake returns the object under a key, a new one if there is none.
func remake(o object, key string) object {
	found, isObject := child(o, key)
	if !isObject {
		found = object{}
		o[key] = found
	}
	return found
}
