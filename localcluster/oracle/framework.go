package oracle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

// judges returns the filter plugins, in the order of kube-scheduler's default profile.
func judges() []string {
	return []string{
		names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity, names.NodePorts,
		names.NodeResourcesFit, names.PodTopologySpread, names.InterPodAffinity,
	}
}

// newFramework returns a scheduling framework on s, and the store behind its lister of namespaces. Nothing is watched:
// informers are never started, and their stores are filled by hand.
func newFramework(ctx context.Context, s *state) (framework.Framework, cache.Indexer, error) {
	factory := informers.NewSharedInformerFactory(nil, 0)
	namespaces := factory.Core().V1().Namespaces().Informer().GetIndexer()
	profile, err := profile()
	if err != nil {
		return nil, nil, err
	}
	f, err := frameworkOf(ctx, s, profile, factory)
	return f, namespaces, err
}

// frameworkOf returns a framework with the plugins of a profile.
func frameworkOf(
	ctx context.Context, s *state, profile *config.KubeSchedulerProfile, factory informers.SharedInformerFactory,
) (framework.Framework, error) {
	metrics.Register() // plugins use the metrics unconditionally
	return runtime.NewFramework(ctx, plugins.NewInTreeRegistry(), profile,
		runtime.WithSnapshotSharedLister(s),
		runtime.WithInformerFactory(factory),
		runtime.WithSharedDRAManager(noDevices{}),
		runtime.WithParallelism(1), // cases are small; parallel checks use an Oracle for each core
	)
}

// profile returns the default profile, reduced to the judges and the two plugins that every profile must have.
func profile() (*config.KubeSchedulerProfile, error) {
	defaults, err := latest.Default()
	if err != nil {
		return nil, err
	}
	if len(defaults.Profiles) != 1 {
		return nil, fmt.Errorf("the scheduler's defaults have %d profiles; want 1", len(defaults.Profiles))
	}
	own := &config.KubeSchedulerProfile{SchedulerName: corev1.DefaultSchedulerName, Plugins: &config.Plugins{
		QueueSort: config.PluginSet{Enabled: []config.Plugin{{Name: names.PrioritySort}}},
		Bind:      config.PluginSet{Enabled: []config.Plugin{{Name: names.DefaultBinder}}},
	}}
	wanted := map[string]bool{}
	for _, name := range judges() {
		wanted[name] = true
		own.Plugins.Filter.Enabled = append(own.Plugins.Filter.Enabled, config.Plugin{Name: name})
		// these have no PreFilter
		if name != names.NodeUnschedulable && name != names.NodeName && name != names.TaintToleration {
			own.Plugins.PreFilter.Enabled = append(own.Plugins.PreFilter.Enabled, config.Plugin{Name: name})
		}
	}
	for _, arguments := range defaults.Profiles[0].PluginConfig {
		if wanted[arguments.Name] {
			own.PluginConfig = append(own.PluginConfig, arguments)
		}
	}
	return own, nil
}

// noDevices says that no extended resource has a device class; nothing else of it is used.
type noDevices struct{ fwk.SharedDRAManager }

func (noDevices) DeviceClassResolver() fwk.DeviceClassResolver { return noClasses{} }

type noClasses struct{}

func (noClasses) GetDeviceClass(corev1.ResourceName) *resourceapi.DeviceClass { return nil }
