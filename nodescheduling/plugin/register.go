package plugin

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/door"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// PluginName is the name of the plugin in flags and in the AdmissionConfiguration (N1).
const PluginName = "scheduling.openshift.io/NodeSchedulingPolicy"

// Feature is the gate without which the plugin has no effect (N5).
const Feature featuregate.Feature = evaluator.FeatureGate

// Register registers the plugin with a server. The server decides whether it is on by default, and its place in the
// order of plugins. Even if on, it has no effect without the gate [Feature] and its part of the
// AdmissionConfiguration. It validates after all mutation, so its place does not matter (H18), with one exception: for
// emergencyOverride Automatic, it belongs behind the plugins that change tolerations and selectors, since what it
// writes depends on them.
func Register(plugins *admission.Plugins) {
	plugins.Register(PluginName, func(config io.Reader) (admission.Interface, error) {
		return fromFile(config, kubeRegistry{})
	})
}

// fromFile makes the plugin from its part of the AdmissionConfiguration. Without one, the plugin does nothing (N4).
// With an invalid one, the server does not start (N2).
func fromFile(file io.Reader, registry door.Registry) (*Plugin, error) {
	if file == nil {
		return newPlugin(nil, registry), nil
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of %s: %w", PluginName, err)
	}
	config, err := evaluator.Decode(content)
	if err != nil {
		return nil, fmt.Errorf("the configuration of %s: %w", PluginName, err)
	}
	return newPlugin(config, registry), nil
}

func newPlugin(config *v1alpha1.NodeSchedulingPolicyConfig, registry door.Registry) *Plugin {
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Connect),
		config: config, registry: registry}
}

// kubeRegistry is the registry behind /metrics of a Kubernetes component.
type kubeRegistry struct{}

// MustRegister implements door.Registry.
func (kubeRegistry) MustRegister(collectors ...prometheus.Collector) {
	legacyregistry.RawMustRegister(collectors...)
}

// With returns a plugin that judges by the given policy and ports, instead of those from a server's initializers. It
// counts nothing and writes no events.
func With(policy *door.Policy, ports func(context.Context) evaluator.Cluster) *Plugin {
	p := newPlugin(nil, nil)
	p.policy, p.ports = policy, ports
	p.observe, p.took = func(evaluator.Request, evaluator.Verdict) {}, func(evaluator.Request, time.Duration) {}
	return p
}
