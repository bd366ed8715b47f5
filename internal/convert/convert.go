package convert

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	kjson "sigs.k8s.io/json"

	"github.com/joiner-autoscaler/joiner/api/crd"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1beta1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1beta1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	awsv1beta1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1beta1"
)

// The versions that can be converted into each other.
const (
	V1      = karpenterv1.Version
	V1beta1 = karpenterv1beta1.Version
)

// maxAnnotations is the API server's limit on the bytes of an object's annotations. It refuses an answer with more.
const maxAnnotations = 256 << 10

// Config is what conversion needs beside the object.
type Config struct {
	// Expiry returns the spec.template.spec.expireAfter of a NodePool of v1, as text; false if the pool is unknown. It
	// must not convert a NodeClaim. If it is nil, no pool is known, and NodeClaims of v1beta1 never expire.
	Expiry func(pool string) (expireAfter string, found bool)
}

// Converter converts objects. It is immutable and safe for concurrent use.
type Converter struct {
	config Config
	kinds  map[string]*kind
}

// kind is how one kind is converted.
type kind struct {
	group   string
	plural  string
	schemas map[string]*schema // by version
	// up and down convert in place what both versions can express. up puts what v1 has no place for into annotations,
	// and down reads it from kept.
	up   func(o, annotations object) *Problem
	down func(o, kept object)
	// fill, if not nil, sets the expireAfter of a v1 object, which v1beta1 has no place for, and returns it; "" if the
	// object has its own.
	fill func(o object, expiry func(pool string) (string, bool)) string
	// ours are the annotations that belong to conversion.
	ours []string
	// coupled maps fields to the field without which their value has no meaning.
	coupled map[string]string
	// decode returns the error of a client that reads an object of a version.
	decode map[string]func([]byte) error
	// rest makes a stand-in object do nothing.
	rest func(o object, version, problem string)
}

// New returns a converter. It fails only if the embedded CRDs cannot be read, which the tests of a build exclude.
func New(config Config) (*Converter, error) {
	if config.Expiry == nil {
		config.Expiry = func(string) (string, bool) { return "", false }
	}
	c := &Converter{config: config, kinds: kinds()}
	manifests, err := crd.Unconverted()
	if err != nil {
		return nil, err
	}
	for name, k := range c.kinds {
		if k.schemas, err = readSchemas(manifests[k.group+"_"+k.plural+".yaml"]); err != nil {
			return nil, fmt.Errorf("reading the schema of %s: %w", name, err)
		}
		if k.schemas[V1] == nil || k.schemas[V1beta1] == nil {
			return nil, fmt.Errorf("the manifest of %s does not have both versions", name)
		}
	}
	return c, nil
}

// heldKeys returns the annotations of a stand-in object.
func heldKeys() []string {
	return []string{karpenterv1.UnconvertedAnnotationKey, karpenterv1.ConversionProblemAnnotationKey}
}

// ownKeys returns the annotations of conversion on every kind; referenceKeys those on kinds that refer to a node
// class.
func ownKeys() []string {
	return append(heldKeys(), karpenterv1.V1beta1FieldsAnnotationKey, karpenterv1.V1FieldsAnnotationKey)
}

func referenceKeys() []string {
	return []string{
		karpenterv1.KubeletCompatibilityAnnotationKey, karpenterv1.NodeClassReferenceAnnotationKey,
		karpenterv1.MisspelledKubeletCompatibilityAnnotationKey, karpenterv1.MisspelledNodeClassReferenceAnnotationKey,
	}
}

// ours returns all annotations of conversion.
func ours() []string {
	return append(slices.Concat(ownKeys(), referenceKeys()), awsv1.UbuntuCompatibilityAnnotationKey)
}

func kinds() map[string]*kind {
	reference := slices.Concat(ownKeys(), referenceKeys())
	return map[string]*kind{
		"NodePool": {
			group: karpenterv1.Group, plural: "nodepools", up: nodePoolUp, down: nodePoolDown, ours: reference,
			rest:    restNodePool,
			coupled: map[string]string{"/spec/disruption/consolidateAfter": "/spec/disruption/consolidationPolicy"},
			decode: map[string]func([]byte) error{V1: decodes[karpenterv1.NodePool],
				V1beta1: decodes[karpenterv1beta1.NodePool]},
		},
		"NodeClaim": {
			group: karpenterv1.Group, plural: "nodeclaims", up: nodeClaimUp, down: nodeClaimDown, ours: reference,
			rest: restNodeClaim, fill: fillExpiry,
			decode: map[string]func([]byte) error{V1: decodes[karpenterv1.NodeClaim],
				V1beta1: decodes[karpenterv1beta1.NodeClaim]},
		},
		"EC2NodeClass": {
			group: awsv1.Group, plural: "ec2nodeclasses", up: ec2NodeClassUp, down: ec2NodeClassDown,
			rest: restEC2NodeClass, ours: append(ownKeys(), awsv1.UbuntuCompatibilityAnnotationKey),
			decode: map[string]func([]byte) error{V1: decodes[awsv1.EC2NodeClass],
				V1beta1: decodes[awsv1beta1.EC2NodeClass]},
		},
	}
}

// decodes reads an object as Kubernetes clients do: field names are case-sensitive.
func decodes[T any](data []byte) error { return kjson.UnmarshalCaseSensitivePreserveInts(data, new(T)) }

// Result is a converted object.
type Result struct {
	// Object is the object in the version that was asked for.
	Object map[string]any
	// Problems, if any, say why Object is only a stand-in for the given object (V-24).
	Problems []Problem
}

// Convert returns an object in the given version, V1 or V1beta1. o is in the form of Decode and is not changed. An
// error means that the request makes no sense: another kind or version, or metadata that no API server returns.
func (c *Converter) Convert(o map[string]any, version string) (Result, error) {
	k, from, err := c.identify(o, version)
	if err != nil {
		return Result{}, err
	}
	if from == version {
		return Result{Object: cloneObject(o)}, nil
	}
	if original := c.unhold(k, o, from, version); original != nil {
		return Result{Object: original}, nil
	}
	converted, problems := c.convert(k, o, from, version, noteOf(o, version))
	if len(problems) > 0 {
		// A note edited by hand may be the cause. It must not make an object fail.
		converted, problems = c.convert(k, o, from, version, nil)
	}
	if len(problems) > 0 {
		return Result{Object: k.hold(o, version, problems), Problems: problems}, nil
	}
	return Result{Object: converted}, nil
}

// convert converts an object with its note for the version, nil for none.
func (c *Converter) convert(k *kind, o object, from, version string, kept *note) (object, []Problem) {
	var converted object
	var problem *Problem
	if version == V1 {
		converted, problem = c.toV1(k, o, kept)
	} else {
		converted, problem = k.toV1beta1(o, kept)
	}
	problems := k.problems(o, converted, from, version)
	if problem != nil && len(problems) < maxProblems {
		problems = append(problems, *problem)
	}
	return converted, problems
}

// noteKey returns the annotation with the note for a version.
func noteKey(version string) string {
	if version == V1 {
		return karpenterv1.V1FieldsAnnotationKey
	}
	return karpenterv1.V1beta1FieldsAnnotationKey
}

// noteOf returns an object's note for a version, nil if it cannot be read.
func noteOf(o object, version string) *note {
	return readNote(text(annotationsOf(o), noteKey(version)))
}

// identify returns the kind of an object and its version, or an error if the request makes no sense.
func (c *Converter) identify(o object, version string) (*kind, string, error) {
	name := text(o, "kind")
	k, known := c.kinds[name]
	if !known {
		return nil, "", fmt.Errorf("kind is %q: NodePool, NodeClaim and EC2NodeClass can be converted", name)
	}
	group, from, _ := strings.Cut(text(o, "apiVersion"), "/")
	if group != k.group || k.schemas[from] == nil || k.schemas[version] == nil {
		return nil, "", fmt.Errorf("apiVersion is %q and %q is wanted: %s is converted between %s/v1 and %s/v1beta1",
			text(o, "apiVersion"), version, name, k.group, k.group)
	}
	metadata, isObject := o["metadata"].(object)
	if !isObject {
		return nil, "", errors.New("metadata is missing: an object must have it")
	}
	if annotations, isObject := metadata["annotations"].(object); metadata["annotations"] != nil &&
		(!isObject || !onlyStrings(annotations)) {
		return nil, "", errors.New("metadata.annotations must hold strings only")
	}
	return k, from, nil
}

// toV1 converts v1beta1 to v1: the plain conversion, the object's note from v1, and a new note of what only v1beta1
// says.
func (c *Converter) toV1(k *kind, o object, kept *note) (object, *Problem) {
	converted, problem := k.plainUp(o)
	kept.apply(converted)
	rest := diff(k.plainDown(converted), ordinary(o, V1, kept), k.coupled)
	if k.fill != nil && !kept.knows(expireAfterPath) {
		rest.filled = k.fill(converted, c.config.Expiry)
	}
	annotate(converted, noteKey(V1beta1), rest)
	return converted, problem
}

// toV1beta1 is the reverse of toV1. It returns a problem if the result could not be converted back.
func (k *kind) toV1beta1(o object, kept *note) (object, *Problem) {
	own := ordinary(o, V1beta1, kept)
	filled := kept != nil && kept.filled != "" && at(own, "spec")["expireAfter"] == kept.filled
	if filled {
		delete(at(own, "spec"), "expireAfter") // it was never the claim's own
	}
	converted := k.plainDown(own)
	kept.apply(converted)
	back, problem := k.plainUp(converted)
	rest := diff(back, own, k.coupled)
	if k.fill != nil && at(own, "spec") != nil && !filled && !rest.knows(expireAfterPath) {
		rest.entries = append(rest.entries, entry{path: expireAfterPath}) // it has none, and none must be filled in
	}
	annotate(converted, noteKey(V1), rest)
	return converted, problem
}

// plainUp converts to v1 what both versions can express, without notes.
func (k *kind) plainUp(o object) (object, *Problem) {
	up, annotations, _ := k.begin(o, V1)
	problem := k.up(up, annotations)
	k.finish(up, annotations, V1)
	return up, problem
}

// plainDown is the reverse of plainUp.
func (k *kind) plainDown(o object) object {
	down, annotations, kept := k.begin(o, V1beta1)
	k.down(down, kept)
	k.finish(down, annotations, V1beta1)
	return down
}

// begin copies an object, with the new apiVersion. It returns the annotations in two parts: the ordinary ones, and
// those of conversion (kept).
func (k *kind) begin(o object, version string) (copied, annotations, kept object) {
	copied = cloneObject(o)
	copied["apiVersion"] = k.group + "/" + version
	annotations, kept = object{}, object{}
	for key, value := range annotationsOf(o) {
		annotations[key] = value
	}
	for _, key := range k.ours {
		value, found := annotations[key]
		if !found {
			continue
		}
		delete(annotations, key)
		kept[key] = value
	}
	return copied, annotations, kept
}

// finish sets the annotations and removes the fields that the version does not have.
func (k *kind) finish(o, annotations object, version string) {
	setAnnotations(o, annotations)
	for key, value := range o {
		switch part := k.schemas[version].Properties[key]; {
		case key == "apiVersion", key == "kind", key == "metadata":
		case part == nil:
			delete(o, key)
		default:
			part.prune(value)
		}
	}
	if status, isObject := o["status"].(object); isObject && len(status) == 0 && version == V1beta1 {
		delete(o, "status") // v1 has a status from the start
	}
}

// problems returns why a client could not read the converted object. If possible it names the fields of the original
// object.
func (k *kind) problems(o, converted object, from, version string) []Problem {
	if size := sizeOf(annotationsOf(converted)); size > maxAnnotations {
		return []Problem{
			{"metadata.annotations", fmt.Sprintf("%d bytes long together with what version %s cannot hold", size,
				version),
				fmt.Sprintf("at most %d bytes are allowed: shorten the annotations, or the kubelet block",
					maxAnnotations)}}
	}
	found := k.check(o, from)
	if len(found) == 0 {
		found = k.check(converted, version)
	}
	if len(found) > 0 {
		return found
	}
	if err := k.decode[version]([]byte(encode(converted))); err != nil {
		return []Problem{{Field: "the object", Allowed: err.Error()}}
	}
	return nil
}

func (k *kind) check(o object, version string) []Problem {
	var found []Problem
	for _, part := range []string{"spec", "status"} {
		if value := o[part]; value != nil {
			found = k.schemas[version].Properties[part].check(part, value, found)
		}
	}
	return found
}

// sizeOf returns the bytes of annotations, as the API server counts them.
func sizeOf(annotations object) int {
	size := 0
	for key, value := range annotations {
		content, _ := value.(string)
		size += len(key) + len(content)
	}
	return size
}

func annotationsOf(o object) object { return at(o, "metadata", "annotations") }

// setAnnotations replaces the annotations. An empty map removes the field.
func setAnnotations(o, annotations object) {
	metadata, _ := o["metadata"].(object)
	if len(annotations) == 0 {
		delete(metadata, "annotations")
		return
	}
	metadata["annotations"] = annotations
}

// annotate writes a note onto an object, unless it is empty.
func annotate(o object, key string, n note) {
	if n.empty() {
		return
	}
	if annotationsOf(o) == nil {
		setAnnotations(o, object{key: n.String()})
		return
	}
	annotationsOf(o)[key] = n.String()
}

// ordinary returns an object without its note for a version. If the note is not heeded, it stays like any other
// annotation.
func ordinary(o object, version string, heeded *note) object {
	own := cloneObject(o)
	annotations := cloneObject(annotationsOf(o))
	if heeded != nil {
		delete(annotations, noteKey(version))
	}
	setAnnotations(own, annotations)
	return own
}
