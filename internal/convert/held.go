package convert

import (
	"encoding/json"
	"maps"
	"slices"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// hold returns the stand-in, in the given version, for an object that cannot be converted (V-24). It has the metadata
// and as much of the rest as a client can read, and does nothing. The object itself and the problems are kept in
// annotations.
//
// Notes for other versions stay in the annotations. Metadata is not converted, so that later edits of labels and
// annotations survive.
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

// fitting adds the kept object and its problem to annotations, as far as there is room. The API server gives up a
// whole list if an answer has larger annotations than it allows.
func fitting(annotations object, kept, problem string) object {
	full := maps.Clone(annotations)
	full[karpenterv1.UnconvertedAnnotationKey] = kept
	full[karpenterv1.ConversionProblemAnnotationKey] = problem
	if sizeOf(full) <= maxAnnotations {
		return full
	}
	delete(full, karpenterv1.UnconvertedAnnotationKey)
	full[karpenterv1.ConversionProblemAnnotationKey] = problem +
		"; the object is too large to be kept here: mend it before anything writes it in this version"
	if sizeOf(full) <= maxAnnotations {
		return full
	}
	return annotations
}

// standIn returns the readable part of an object, made to do nothing.
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

// unhold returns the original, in the given version, if o is a stand-in of version from. It returns nil if o is not a
// stand-in, or was edited since: then its fields win over the kept object.
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

// restNodePool makes a NodePool launch nothing, by a limit of 0 nodes, and disrupt nothing. The template stays as far
// as it can be read. So the drift hash stays too, unless the template is what is wrong (V-23).
func restNodePool(o object, version, problem string) {
	spec := o["spec"].(object)
	template := remake(remake(spec, "template"), "spec")
	setDefault(template, "requirements", []any{})
	setDefault(template, "nodeClassRef", object{"name": ""})
	spec["limits"] = object{"nodes": "0"}
	still := object{"consolidationPolicy": whenEmpty, "consolidateAfter": never,
		"budgets": []any{object{"nodes": "0"}}}
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

// restNodeClaim makes a NodeClaim valid. It needs no more: either its status says that it is launched, or launching
// finds the instance again by the claim's UID.
func restNodeClaim(o object, version, _ string) {
	spec := o["spec"].(object)
	setDefault(spec, "requirements", []any{})
	setDefault(spec, "nodeClassRef", object{"name": ""})
	if version == V1 {
		setDefault(spec, "expireAfter", never)
	}
}

// restEC2NodeClass makes a node class not ready, so that no NodePool launches with it.
func restEC2NodeClass(o object, version, problem string) {
	hops := json.Number("1")
	if version == V1beta1 {
		hops = "2"
	}
	defaultMetadataOptions(o["spec"].(object), hops)
	notReady(o, problem)
}

// notReady sets the condition Ready to False, which printed columns show. Controllers overwrite it with their own.
func notReady(o object, problem string) {
	condition := object{
		"type": karpenterv1.ConditionTypeReady, "status": "False", "reason": "ConversionFailed",
		"message": shorten(problem, 1024), "lastTransitionTime": "1970-01-01T00:00:00Z",
	}
	remake(o, "status")["conditions"] = []any{condition}
}

// remake returns the object under a key, and creates it if there is none.
func remake(o object, key string) object {
	found, isObject := child(o, key)
	if !isObject {
		found = object{}
		o[key] = found
	}
	return found
}
