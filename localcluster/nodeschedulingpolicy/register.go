package nodeschedulingpolicy

import (
	"fmt"
	"io"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/admission"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/joiner-autoscaler/joiner/api/openshiftscheduling/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/admission/nodescheduling"
	"github.com/joiner-autoscaler/joiner/internal/door"
)

// PluginName is the name of the plugin in flags and in the AdmissionConfiguration (N1).
const PluginName = "scheduling.openshift.io/NodeSchedulingPolicy"

// Feature is the gate without which the plugin has no effect (N5).
const Feature featuregate.Feature = nodescheduling.FeatureGate

// AddTo makes the plugin known to a kube-apiserver, off by default as its feature gate is (N1, N5). It must be called
// before the flags are made, since these list plugins and gates. An error is a gate of that name which is another one.
func AddTo(options *genericoptions.AdmissionOptions, gates featuregate.MutableFeatureGate) error {
	options.Plugins.Register(PluginName, func(config io.Reader) (admission.Interface, error) {
		return fromFile(config, kubeRegistry{})
	})
	options.RecommendedPluginOrder = ordered(options.RecommendedPluginOrder)
	options.DefaultOffPlugins = options.DefaultOffPlugins.Clone().Insert(PluginName)
	return gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{Feature: {Default: false, PreRelease: featuregate.Alpha}})
}

// ordered puts the plugin behind all that change objects and before the validating webhooks, which cost more. The list
// that it is given belongs to all servers of the process, so it is copied.
func ordered(names []string) []string {
	at := len(names)
	if i := slices.Index(names, mutatingwebhook.PluginName); i >= 0 {
		at = i + 1
	}
	return slices.Insert(slices.Clone(names), at, PluginName)
}

// fromFile makes the plugin of its part of the AdmissionConfiguration. Without one it does nothing (N4); with one that is
// wrong the server does not start (N2).
func fromFile(file io.Reader, registry door.Registry) (*Plugin, error) {
	if file == nil {
		return newPlugin(nil, registry), nil
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of %s: %w", PluginName, err)
	}
	config, err := nodescheduling.Decode(content)
	if err != nil {
		return nil, fmt.Errorf("the configuration of %s: %w", PluginName, err)
	}
	return newPlugin(config, registry), nil
}

func newPlugin(config *v1alpha1.NodeSchedulingPolicyConfig, registry door.Registry) *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Connect), config: config, registry: registry}
}

// kubeRegistry is where a component of Kubernetes registers what its /metrics shows.
type kubeRegistry struct{}

// MustRegister implements door.Registry.
func (kubeRegistry) MustRegister(collectors ...prometheus.Collector) {
	legacyregistry.RawMustRegister(collectors...)
}
