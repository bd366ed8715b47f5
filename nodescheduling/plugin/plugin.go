package plugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"

	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/door"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// readyWithin is how long a request waits for nodes and the live source, as for the caches of every plugin (N60).
const readyWithin = 10 * time.Second

// Plugin judges requests that may place pods. Its initializers are called one after another, before the server starts.
// Admit and Validate are safe for concurrent use.
type Plugin struct {
	*admission.Handler

	config   *v1alpha1.NodeSchedulingPolicyConfig // nil: the plugin does nothing
	registry door.Registry
	enabled  bool // the feature gate
	clients  kubernetes.Interface
	dynamic  dynamic.Interface
	nodes    cache.SharedIndexInformer
	spaces   cache.SharedIndexInformer // namespaces
	drained  <-chan struct{}

	policy  *door.Policy
	groups  door.GroupWrites
	ports   func(context.Context) evaluator.Cluster
	observe func(evaluator.Request, evaluator.Verdict)
	took    func(evaluator.Request, time.Duration)
}

var (
	_ admission.MutationInterface                  = &Plugin{}
	_ admission.ValidationInterface                = &Plugin{}
	_ admission.InitializationValidator            = &Plugin{}
	_ initializer.WantsFeatures                    = &Plugin{}
	_ initializer.WantsExternalKubeClientSet       = &Plugin{}
	_ initializer.WantsDynamicClient               = &Plugin{}
	_ initializer.WantsExternalKubeInformerFactory = &Plugin{}
	_ initializer.WantsDrainedNotification         = &Plugin{}
)

// InspectFeatureGates implements initializer.WantsFeatures.
func (p *Plugin) InspectFeatureGates(gates featuregate.FeatureGate) {
	p.enabled = gates.Enabled(Feature)
}

// SetExternalKubeClientSet implements initializer.WantsExternalKubeClientSet.
func (p *Plugin) SetExternalKubeClientSet(clients kubernetes.Interface) { p.clients = clients }

// SetDynamicClient implements initializer.WantsDynamicClient.
func (p *Plugin) SetDynamicClient(client dynamic.Interface) { p.dynamic = client }

// SetDrainedNotification implements initializer.WantsDrainedNotification. The channel is closed when the server ends.
func (p *Plugin) SetDrainedNotification(drained <-chan struct{}) { p.drained = drained }

// SetExternalKubeInformerFactory implements initializer.WantsExternalKubeInformerFactory. It asks for nodes and
// namespaces only if the plugin is configured.
func (p *Plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	if p.config != nil {
		p.nodes = factory.Core().V1().Nodes().Informer()
		p.spaces = factory.Core().V1().Namespaces().Informer()
	}
}

// ValidateInitialization implements admission.InitializationValidator. With a configuration and the feature gate, it
// starts reading the live source, until the server ends.
func (p *Plugin) ValidateInitialization() error {
	if p.config == nil || !p.enabled {
		return nil
	}
	var missing []error
	for name, given := range map[string]bool{
		"a client": p.clients != nil, "a dynamic client": p.dynamic != nil, "nodes": p.nodes != nil,
		"a notification of the end": p.drained != nil,
	} {
		if !given {
			missing = append(missing, fmt.Errorf("%s was not given %s", PluginName, name))
		}
	}
	if len(missing) > 0 {
		return errors.Join(missing...)
	}
	return p.start(klog.Background().WithName("node-scheduling-policy"))
}

func (p *Plugin) start(log logr.Logger) (err error) {
	metrics := door.NewMetrics(p.registry)
	p.took = door.NewDurations(p.registry).Observe
	namespaces := door.NamespacesOf(p.spaces, p.clients)
	nodes, err := door.NodesOf(p.nodes, p.config)
	if err != nil {
		return err
	}
	if p.policy, err = door.NewPolicy(door.PolicyConfig{
		Sources: evaluator.Sources{Config: p.config}, Metrics: metrics, Log: log,
		Read:      door.NewLiveReader(p.dynamic, p.clients.Discovery().RESTClient()).Read,
		Namespace: namespaces.UID, Nodes: nodes,
	}); err != nil {
		return err
	}
	p.groups = door.NewGroupWrites(p.dynamic)
	known := door.Known{Nodes: p.nodes.HasSynced, LiveSource: p.policy.Known}
	p.ports = known.Ports(p.clients, nodes, namespaces)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: p.clients.EventsV1()})
	writer := door.NewEvents(broadcaster.NewRecorder(scheme.Scheme, "kube-apiserver"), door.ExistsIn(p.clients),
		metrics)
	p.observe = door.Observer(writer, metrics, log)
	broadcaster.StartRecordingToSink(p.drained)
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), log))
	go func() {
		defer cancel()
		<-p.drained
	}()
	go func() {
		if err := writer.Start(ctx); err != nil {
			log.Error(err, "no more events are written")
		}
	}()
	go func() {
		if err := p.policy.Start(ctx); err != nil {
			log.Error(err, "the live source is not read any more; what was read last holds")
		}
	}()
	return nil
}

// Admit implements admission.MutationInterface. With emergencyOverride Automatic, it writes the annotation of the
// override on pods that administrators create, such as those of oc debug. Validate judges the annotation. Admit
// refuses only a pod on which it cannot write it.
func (p *Plugin) Admit(ctx context.Context, attributes admission.Attributes, server admission.ObjectInterfaces) error {
	if p.policy == nil || attributes.GetOperation() != admission.Create || attributes.GetSubresource() != "" ||
		attributes.GetResource().GroupResource() != corev1.Resource("pods") || !p.policy.MayAutomate() {
		return nil
	}
	request, _ := toRequest(attributes, server) // Automatic returns "" for a pod that cannot be read
	bounded, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	reason := p.policy.Automatic(&request, p.ports(bounded))
	if reason == "" {
		return nil
	}
	pod, err := meta.Accessor(attributes.GetObject())
	if err != nil {
		return admission.NewForbidden(attributes, fmt.Errorf("the annotation %s cannot be written: %w",
			evaluator.OverrideAnnotation, err))
	}
	annotations := maps.Clone(pod.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[evaluator.OverrideAnnotation] = reason
	pod.SetAnnotations(annotations)
	return nil
}

// Validate implements admission.ValidationInterface. It refuses with status 403.
func (p *Plugin) Validate(ctx context.Context, attributes admission.Attributes,
	server admission.ObjectInterfaces) error {
	if p.policy == nil {
		return nil
	}
	if refusal := p.refuseGroup(ctx, attributes); refusal != "" {
		return admission.NewForbidden(attributes, errors.New(refusal))
	}
	began := time.Now()
	request, relevant := toRequest(attributes, server)
	if !relevant {
		return nil
	}
	defer func() { p.took(request, time.Since(began)) }()
	bounded, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	verdict := p.policy.Judge(&request, p.ports(bounded))
	p.observe(request, verdict)
	for key, value := range verdict.Audit() {
		if err := attributes.AddAnnotation(evaluator.AuditPrefix+"/"+key, value); err != nil {
			klog.FromContext(ctx).Error(err, "a verdict is missing in the audit log", "key", key, "value", value)
		}
	}
	for _, text := range verdict.Warnings {
		warning.AddWarning(ctx, "", text)
	}
	if verdict.Allowed {
		return nil
	}
	return admission.NewForbidden(attributes, errors.New(verdict.Message))
}

// refuseGroup judges a write of a NodeSchedulingGroup (N70). Objects of a CRD are unstructured in the server.
func (p *Plugin) refuseGroup(ctx context.Context, a admission.Attributes) string {
	resource := a.GetResource()
	if !p.groups.Concern(resource.Group, resource.Resource, a.GetSubresource()) {
		return ""
	}
	content := func(object runtime.Object) map[string]any {
		if unstructured, is := object.(runtime.Unstructured); is {
			return unstructured.UnstructuredContent()
		}
		return nil
	}
	bounded, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	return p.groups.Refusal(bounded, content(a.GetObject()), content(a.GetOldObject()))
}
