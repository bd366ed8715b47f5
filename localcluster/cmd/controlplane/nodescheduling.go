package main

import (
	"slices"

	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/component-base/featuregate"

	"github.com/joiner-autoscaler/joiner/nodescheduling/plugin"
)

// addNodeScheduling makes the plugin of the node scheduling policy known to a kube-apiserver, off by default as its
// feature gate is (N1, N5). It must be called before the flags are made, since these list plugins and gates. An error
// is a gate of that name which is another one.
func addNodeScheduling(options *genericoptions.AdmissionOptions, gates featuregate.MutableFeatureGate) error {
	plugin.Register(options.Plugins)
	options.RecommendedPluginOrder = ordered(options.RecommendedPluginOrder)
	options.DefaultOffPlugins = options.DefaultOffPlugins.Clone().Insert(plugin.PluginName)
	return gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{
		plugin.Feature: {Default: false, PreRelease: featuregate.Alpha},
	})
}

// ordered puts the plugin behind all that change objects and before the validating webhooks, which cost more. The list
// that it is given belongs to all servers of the process, so it is copied.
func ordered(names []string) []string {
	at := len(names)
	if i := slices.Index(names, mutatingwebhook.PluginName); i >= 0 {
		at = i + 1
	}
	return slices.Insert(slices.Clone(names), at, plugin.PluginName)
}
