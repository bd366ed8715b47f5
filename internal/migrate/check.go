package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/convert"
)

// Object is an object to check.
type Object struct {
	// Where is the object's file, with the number of the document; empty for an object of the cluster.
	Where string
	// Content is the object in the form of convert.Decode.
	Content map[string]any
}

// Check checks objects of a cluster, of files, or of both: NodePools, NodeClaims and EC2NodeClasses of either version,
// CustomResourceDefinitions, and objects that may have a dropped annotation. Others are only counted. Objects may be
// in any order. The converter tells which v1beta1 objects can be converted.
func Check(objects []Object, converter *convert.Converter) Report {
	c := checker{checked: map[string]int{}, classes: map[string][]poolBlock{}, converter: converter}
	for _, o := range objects {
		c.look(o)
	}
	c.kubelets()
	return Report{Findings: sorted(append([]Finding{}, c.findings...)), Checked: c.checked}
}

type checker struct {
	findings  []Finding
	checked   map[string]int
	classes   map[string][]poolBlock // by group, kind and name of the node class
	converter *convert.Converter
}

func (c *checker) look(o Object) {
	kind := text(o.Content, "kind")
	c.checked[kind]++
	group, version, _ := strings.Cut(text(o.Content, "apiVersion"), "/")
	switch {
	case kind == "CustomResourceDefinition":
		c.definition(o)
	case isOurs(group, kind):
		c.ours(o, version)
	}
	c.owners(o)
	c.dropped(o, metadata(o.Content), "metadata.annotations")
	for _, path := range [][]string{{"spec", "template"}, {"spec", "jobTemplate", "spec", "template"}} {
		if template := at(o.Content, path...); template != nil && !isOurs(group, kind) {
			c.dropped(o, at(template, "metadata"), strings.Join(path, ".")+".metadata.annotations")
		}
	}
}

func isOurs(group, kind string) bool {
	return group == karpenterv1.Group && (kind == "NodePool" || kind == "NodeClaim") ||
		group == awsv1.Group && kind == awsv1.EC2NodeClassKind
}

func (c *checker) find(o Object, code Code, message, action string) {
	c.findings = append(c.findings, Finding{
		Code: code, Kind: text(o.Content, "kind"), Namespace: text(metadata(o.Content), "namespace"),
		Name: text(metadata(o.Content), "name"), Where: o.Where, Message: message, Action: action,
	})
}

// definition checks the stored versions of our CRDs.
func (c *checker) definition(o Object) {
	if !isOurs(text(at(o.Content, "spec"), "group"), text(at(o.Content, "spec", "names"), "kind")) {
		return
	}
	stored, _ := at(o.Content, "status")["storedVersions"].([]any)
	if slices.Contains(stored, any(convert.V1beta1)) {
		c.find(o, StoredVersion, "status.storedVersions has "+convert.V1beta1+": objects may still be stored in it",
			"run joinerctl migrate storage; only then the API server lets the version be taken out of the CRD")
	}
}

// ours checks a NodePool, NodeClaim or EC2NodeClass.
func (c *checker) ours(o Object, version string) {
	annotations := annotationsOf(o.Content)
	if version == convert.V1beta1 && o.Where != "" {
		c.find(o, OldManifest, "apiVersion is "+text(o.Content, "apiVersion"),
			"write it in v1: docs/migrating-v1beta1.md says what moves where")
	}
	if problem, held := annotations[karpenterv1.ConversionProblemAnnotationKey]; held {
		c.find(o, NotConvertible, "it is stored as it cannot be converted: "+problem,
			"mend the field in v1beta1, or write the whole spec in v1 and remove the annotations "+
				karpenterv1.ConversionProblemAnnotationKey+" and "+karpenterv1.UnconvertedAnnotationKey+
				"; until then nothing is launched or disrupted")
	}
	if version == convert.V1beta1 {
		if result, err := c.converter.Convert(o.Content, convert.V1); err != nil {
			c.find(o, NotConvertible, err.Error(), "mend it in v1beta1")
		} else if len(result.Problems) > 0 {
			c.find(o, NotConvertible, convert.Describe(result.Problems), "mend the field in v1beta1")
		} else {
			o.Content = result.Object // now its kubelet block is where v1 objects have it
		}
	}
	c.writers(o)
	if version != convert.V1beta1 {
		c.compatibility(o, annotations)
	}
	if text(o.Content, "kind") == "NodePool" {
		c.remember(o, version == convert.V1beta1)
	}
}

// compatibility checks the annotations that keep v1beta1 fields.
func (c *checker) compatibility(o Object, annotations map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		action := ""
		switch key {
		case karpenterv1.KubeletCompatibilityAnnotationKey, karpenterv1.MisspelledKubeletCompatibilityAnnotationKey:
			action = "move the block to spec.kubelet of the node class, then remove the annotation"
			if _, readable := convert.Kubelet(map[string]string{key: annotations[key]}); !readable {
				c.find(o, UnreadableAnnotation,
					"metadata.annotations["+key+"] is "+shorten(annotations[key])+
						": it must be a kubelet block as JSON", "remove the annotation: it does nothing")
				continue
			}
			if text(o.Content, "kind") == "NodeClaim" {
				action = "nothing, once its NodePool does not have it any more: it goes with the node"
			}
		case karpenterv1.NodeClassReferenceAnnotationKey, karpenterv1.MisspelledNodeClassReferenceAnnotationKey,
			karpenterv1.V1beta1FieldsAnnotationKey, karpenterv1.V1FieldsAnnotationKey:
			action = "remove the annotation once nobody reads or writes the object in v1beta1"
			if text(o.Content, "kind") == "NodeClaim" {
				action = "nothing: it goes with the node"
			}
		case awsv1.UbuntuCompatibilityAnnotationKey:
			action =
				"choose an image in spec.amiSelectorTerms, with the amiFamily that fits its user data, then remove the annotation"
		default:
			continue
		}
		c.find(o, CompatibilityAnnotation, "metadata.annotations has "+key, action)
	}
}

// writers checks who wrote fields of the object in v1beta1.
func (c *checker) writers(o Object) {
	entries, _ := metadata(o.Content)["managedFields"].([]any)
	for _, value := range entries {
		entry, _ := value.(map[string]any)
		if _, version, _ := strings.Cut(text(entry, "apiVersion"), "/"); version == convert.V1beta1 {
			action := "let it write v1; joinerctl migrate storage then forgets what it wrote before"
			if text(entry, "operation") == "Apply" {
				action = "let it apply v1 (for GitOps: change the manifests): that replaces the entry"
			}
			c.find(o, OldWriter, "fields were last written in v1beta1 by "+shorten(text(entry, "manager")), action)
		}
	}
}

// owners checks the owner references to NodePools, NodeClaims and EC2NodeClasses.
func (c *checker) owners(o Object) {
	references, _ := metadata(o.Content)["ownerReferences"].([]any)
	for i, value := range references {
		owner, _ := value.(map[string]any)
		if IsOldOwner(text(owner, "apiVersion"), text(owner, "kind")) {
			c.find(o, OldOwner,
				fmt.Sprintf(
					"metadata.ownerReferences[%d] names %s %s in %s: without v1beta1 the object is not deleted with its owner",
					i, text(owner, "kind"), shorten(text(owner, "name")), text(owner, "apiVersion")),
				"run joinerctl migrate storage while v1beta1 is served")
		}
	}
}

// IsOldOwner reports whether an owner reference with this apiVersion and kind refers to one of our kinds in v1beta1.
func IsOldOwner(apiVersion, kind string) bool {
	group, version, _ := strings.Cut(apiVersion, "/")
	return version == convert.V1beta1 && isOurs(group, kind)
}

// dropped looks for annotations that no longer have an effect.
func (c *checker) dropped(o Object, metadata map[string]any, field string) {
	annotations := at(metadata, "annotations")
	for _, key := range []string{karpenterv1.DroppedDoNotConsolidateAnnotationKey,
		karpenterv1.DroppedDoNotEvictAnnotationKey} {
		if _, found := annotations[key]; found {
			c.find(o, DroppedAnnotation, field+" has "+key+", which does nothing",
				"use "+karpenterv1.DoNotDisruptAnnotationKey+`: "true"`)
		}
	}
}
