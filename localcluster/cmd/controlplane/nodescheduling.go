package main

import (
	"slices"

	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/component-base/featuregate"

	"github.com/joiner-autoscaler/joiner/nodescheduling/plugin"
)

// addNodeScheduling adds the plugin of the node scheduling policy to a kube-apiserver, off by default like its feature
// gate (N1, N5). It must be called before the flags are made, since these list plugins and gates. It fails if another
// gate has that name.
func addNodeScheduling(options *genericoptions.AdmissionOptions, gates featuregate.MutableFeatureGate) error {
	plugin.Register(options.Plugins)
	options.RecommendedPluginOrder = ordered(options.RecommendedPluginOrder)
	options.DefaultOffPlugins = options.DefaultOffPlugins.Clone().Insert(plugin.PluginName)
	return gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		plugin.Feature: {Default: false, PreRelease: featuregate.Alpha},
	})
}

// ordered puts the plugin after all plugins that change objects and before the validating webhooks, which cost more.
// It copies the list, which all servers of the process share.
func ordered(names []string) []string {
	at := len(names)
	if i := slices.Index(names, mutatingwebhook.PluginName); i >= 0 {
		at = i + 1
	}
	return slices.Insert(slices.Clone(names), at, plugin.PluginName)
}
