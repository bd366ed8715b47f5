package joiner

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-logr/logr"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/rest"

	autoscalingv1beta1 "github.com/joiner-autoscaler/joiner/api/autoscaling/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
)

// look finds out which optional kinds the API server serves.
func (c *Config) look(ctx context.Context, log logr.Logger) (err error) {
	if c.buffersServed, err = servesBuffers(ctx, c.REST); err != nil {
		return err
	}
	if !c.buffersServed {
		log.Info(
			"CapacityBuffers are not kept: their CustomResourceDefinition is not installed; it is looked for at the start only")
	}
	if c.devicesServed, err = servesDevices(ctx, *c); err != nil {
		return err
	}
	if !c.devicesServed && !c.IgnoreDRARequests {
		log.Info(
			"devices are not looked at: the API server has no resource.k8s.io/v1; it is looked for at the start only")
	}
	return nil
}

// servesBuffers reports whether the API server knows CapacityBuffers. Their definition is optional.
func servesBuffers(ctx context.Context, config *rest.Config) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, serve.ReachWithin)
	defer cancel()
	client, err := serve.CheckServer(ctx, config)
	if err != nil {
		return false, err
	}
	missing, err := serve.Missing(client, config.Host,
		autoscalingv1beta1.GroupVersion().WithResource("capacitybuffers"))
	return len(missing) == 0, err
}

// servesDevices reports whether device claims are looked at (K-42): that takes the setting, and an API server that
// knows them.
func servesDevices(ctx context.Context, config Config) (bool, error) {
	if config.IgnoreDRARequests {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, serve.ReachWithin)
	defer cancel()
	client, err := serve.CheckServer(ctx, config.REST)
	if err != nil {
		return false, err
	}
	v1 := resourcev1.SchemeGroupVersion
	missing, err := serve.Missing(client, config.REST.Host, v1.WithResource("resourceclaims"),
		v1.WithResource("resourceslices"), v1.WithResource("deviceclasses"))
	return len(missing) == 0, err
}

// checkCluster makes sure that the API server answers and serves our kinds. It returns the plug-ins whose node classes
// are served. With byName each plug-in was asked for by name: then it returns all of them, or an error. Its errors are
// for people: what is wrong, where, and what to do.
func checkCluster(ctx context.Context, config *rest.Config, plugins []plugin.Plugin,
	byName bool) ([]plugin.Plugin, error) {
	ctx, cancel := context.WithTimeout(ctx, serve.ReachWithin)
	defer cancel()
	client, err := serve.CheckServer(ctx, config)
	if err != nil {
		return nil, err
	}
	missing, err := serve.Missing(client, config.Host, karpenterv1.GroupVersion().WithResource("nodepools"),
		karpenterv1.GroupVersion().WithResource("nodeclaims"),
		karpenterv1alpha1.GroupVersion().WithResource("nodeoverlays"))
	if err != nil {
		return nil, err
	}
	var installed []plugin.Plugin
	var classes []string
	for _, p := range plugins {
		unknown, err := serve.Missing(client, config.Host, p.Class().Resource)
		if err != nil {
			return nil, err
		}
		if len(unknown) == 0 {
			installed = append(installed, p)
		}
		classes = append(classes, unknown...)
	}
	switch {
	case byName:
		missing = append(missing, classes...)
	case len(installed) == 0:
		missing = append(missing, strings.Join(classes, " or "))
	}
	if len(missing) > 0 {
		return nil,
			fmt.Errorf(
				"the API server at %s does not know %s: install the CustomResourceDefinitions first (kubectl apply -f api/crd)",
				config.Host, strings.Join(missing, ", "))
	}
	return installed, nil
}
