package main

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/component-base/featuregate"
	kubeoptions "k8s.io/kubernetes/pkg/kubeapiserver/options"

	"github.com/joiner-autoscaler/joiner/nodescheduling/plugin"
)

// N1, H18: known to the server, off by default, behind all that changes objects; the lists of other servers stay.
func TestThePluginIsAddedOffByDefault(t *testing.T) {
	t.Parallel()
	before := slices.Clone(kubeoptions.AllOrderedPlugins)
	options := &genericoptions.AdmissionOptions{Plugins: admission.NewPlugins(),
		RecommendedPluginOrder: kubeoptions.AllOrderedPlugins, DefaultOffPlugins: sets.New("other")}
	known := featuregate.NewFeatureGate()
	if err := addNodeScheduling(options, known); err != nil {
		t.Fatal(err)
	}
	order := options.RecommendedPluginOrder
	at := slices.Index(order, plugin.PluginName)
	if at < slices.Index(order, "MutatingAdmissionWebhook") || at > slices.Index(order, "ValidatingAdmissionWebhook") {
		t.Errorf("order %v", order)
	}
	if !slices.Equal(before, kubeoptions.AllOrderedPlugins) || len(order) != len(before)+1 {
		t.Error("the list of all servers was changed")
	}
	if !options.DefaultOffPlugins.HasAll(plugin.PluginName, "other") ||
		!slices.Contains(options.Plugins.Registered(), plugin.PluginName) || known.Enabled(plugin.Feature) {
		t.Errorf("off: %v, registered: %v, gate: %t", sets.List(options.DefaultOffPlugins),
			options.Plugins.Registered(), known.Enabled(plugin.Feature))
	}
	if _, found := known.GetAll()[plugin.Feature]; !found {
		t.Error("the gate is not known")
	}
}
