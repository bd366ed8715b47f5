package whatif

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// Document is an object of a file.
type Document struct {
	// Where is its place, for messages: "pools.yaml, document 2".
	Where   string
	Content map[string]any
	// Stored says that it comes from an API server. Then it is complete, and was validated by a definition that may be
	// newer than ours.
	Stored bool

	object client.Object // set if it was decoded already; Content is nil then
}

// object is a decoded document.
type object struct {
	where string
	// stored says that it comes from a cluster, see Document.
	stored bool
	client.Object
}

// reader turns documents into objects.
type reader struct {
	strict      runtime.Decoder
	lenient     runtime.Decoder
	definitions definitions
}

func newReader() (*reader, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientscheme.AddToScheme, karpenterv1.AddToScheme, karpenterv1alpha1.AddToScheme, awsv1.AddToScheme,
		kwokv1alpha1.AddToScheme, autoscalingv1beta1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	definitions, err := loadDefinitions()
	if err != nil {
		return nil, err
	}
	return &reader{
		strict:      serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(),
		lenient:     serializer.NewCodecFactory(scheme).UniversalDeserializer(),
		definitions: definitions,
	}, nil
}

// read returns the object of a document, nil for a kind that planning ignores. The error names the document, the
// field, its value and what is allowed.
func (r *reader) read(d Document) (*object, error) {
	if d.object != nil {
		return &object{where: d.Where, stored: d.Stored, Object: ownOf(d.object)}, nil
	}
	data, err := json.Marshal(d.Content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.Where, err)
	}
	apiVersion, _ := d.Content["apiVersion"].(string)
	kind, _ := d.Content["kind"].(string)
	if apiVersion == "" || kind == "" {
		return nil, fmt.Errorf("%s: apiVersion is %q and kind is %q: both are needed", d.Where, apiVersion, kind)
	}
	gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
	decoder := r.strict
	if d.Stored {
		decoder = r.lenient
	}
	if own := r.definitions.of(gvk.GroupKind()); own != nil && !d.Stored {
		if data, err = own.complete(gvk.Version, data); err != nil {
			return nil, fmt.Errorf("%s: %s %s: %w", d.Where, kind, nameOf(d.Content), err)
		}
	} else if own == nil && !looksAt(gvk) && !isSwitch(gvk, d.Content) {
		return nil, nil
	}
	decoded, _, err := decoder.Decode(data, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %s %s: %s", d.Where, kind, nameOf(d.Content),
			strings.Join(strings.Fields(err.Error()), " "))
	}
	o, isObject := decoded.(client.Object)
	if !isObject {
		return nil, fmt.Errorf("%s: %s %s: it is not an object of a cluster", d.Where, apiVersion, kind)
	}
	if o.GetName() == "" && o.GetGenerateName() == "" {
		return nil, fmt.Errorf("%s: %s: metadata.name is missing", d.Where, kind)
	}
	o.GetObjectKind().SetGroupVersionKind(gvk)
	return &object{where: d.Where, stored: d.Stored, Object: o}, nil
}

func nameOf(content map[string]any) string {
	metadata, _ := content["metadata"].(map[string]any)
	name, _ := metadata["name"].(string)
	if namespace, _ := metadata["namespace"].(string); namespace != "" {
		return namespace + "/" + name
	}
	return name
}

// kindsOfKubernetes returns Kubernetes' own kinds that planning uses, by group and version.
func kindsOfKubernetes() map[schema.GroupVersion][]string {
	return map[schema.GroupVersion][]string{
		{Version: "v1"}: {"Pod", "Node", "Namespace", "PersistentVolumeClaim", "PersistentVolume", "LimitRange",
			"ReplicationController", "PodTemplate"},
		{Group: "apps", Version: "v1"}:                {"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"},
		{Group: "batch", Version: "v1"}:               {"Job", "CronJob"},
		{Group: "coordination.k8s.io", Version: "v1"}: {"Lease"},
		{Group: "policy", Version: "v1"}:              {"PodDisruptionBudget"},
		{Group: "scheduling.k8s.io", Version: "v1"}:   {"PriorityClass"},
		{Group: "node.k8s.io", Version: "v1"}:         {"RuntimeClass"},
		{Group: "storage.k8s.io", Version: "v1"}: {"StorageClass", "CSINode", "VolumeAttachment", "CSIDriver",
			"CSIStorageCapacity"},
		resourcev1.SchemeGroupVersion: {"ResourceClaim", "ResourceSlice", "DeviceClass"},
	}
}

// Resource is a resource to read from a cluster.
type Resource struct {
	schema.GroupVersionResource
	// Required says that nothing can be planned without it.
	Required bool
}

// Resources returns what to read from a cluster to explain a pod: what is pending, what it can run on, and what keeps
// it away.
func Resources() []Resource {
	of := func(group, version string, required bool, names ...string) (list []Resource) {
		for _, name := range names {
			list = append(list,
				Resource{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: version,
					Resource: name}, Required: required})
		}
		return list
	}
	return slices.Concat(
		of("", "v1", true, "pods", "nodes"), of(karpenterv1.Group, "v1", true, "nodepools"),
		of("", "v1", false, "namespaces", "persistentvolumeclaims", "persistentvolumes", "limitranges"),
		of("apps", "v1", false, "daemonsets"),
		of(autoscalingv1beta1.Group, "v1beta1", false, "capacitybuffers"), of("", "v1", false, "podtemplates"),
		of("policy", "v1", false, "poddisruptionbudgets"),
		of("node.k8s.io", "v1", false, "runtimeclasses"),
		of("storage.k8s.io", "v1", false, "storageclasses", "csinodes", "volumeattachments", "csidrivers",
			"csistoragecapacities"),
		of(karpenterv1.Group, "v1", false, "nodeclaims"), of(karpenterv1.Group, "v1alpha1", false, "nodeoverlays"),
		of(awsv1.Group, "v1", false, "ec2nodeclasses"), of(kwokv1alpha1.Group, "v1alpha1", false, "kwoknodeclasses"),
	)
}

// DeviceResources returns what to read in addition to explain pods that request devices, if the controller considers
// devices (K-42).
func DeviceResources() (list []Resource) {
	for _, name := range []string{"resourceclaims", "resourceslices", "deviceclasses"} {
		list = append(list, Resource{GroupVersionResource: resourcev1.SchemeGroupVersion.WithResource(name)})
	}
	return list
}

func looksAt(gvk schema.GroupVersionKind) bool {
	return slices.Contains(kindsOfKubernetes()[gvk.GroupVersion()], gvk.Kind)
}

// isSwitch reports whether a document is the ConfigMap that pauses voluntary disruption. Other ConfigMaps are ignored.
func isSwitch(gvk schema.GroupVersionKind, content map[string]any) bool {
	metadata, _ := content["metadata"].(map[string]any)
	return gvk == schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"} && metadata["name"] == translate.SwitchName
}
