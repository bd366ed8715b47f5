package joiner

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
)

// checkCluster makes sure that the API server answers and serves our kinds. Its errors are for people: what is wrong,
// where, and what to do. It returns the plug-ins whose node classes are served: with all of them, or an error, when each was
// asked for by name.
func checkCluster(ctx context.Context, config *rest.Config, plugins []plugin.Plugin, byName bool) ([]plugin.Plugin, error) {
	ctx, cancel := context.WithTimeout(ctx, serve.ReachWithin)
	defer cancel()
	client, err := serve.CheckServer(ctx, config)
	if err != nil {
		return nil, err
	}
	var missing, classes []string
	for _, want := range []struct{ groupVersion, resource string }{
		{karpenterv1.GroupVersion().String(), "nodepools"}, {karpenterv1.GroupVersion().String(), "nodeclaims"},
		{karpenterv1alpha1.GroupVersion().String(), "nodeoverlays"},
	} {
		found, err := serves(client, config.Host, want.groupVersion, want.resource)
		if err != nil {
			return nil, err
		}
		if !found {
			missing = append(missing, resourceName(want.groupVersion, want.resource))
		}
	}
	var installed []plugin.Plugin
	for _, p := range plugins {
		class := p.Class()
		found, err := serves(client, config.Host, class.GroupVersion, class.Resource)
		if err != nil {
			return nil, err
		}
		if found {
			installed = append(installed, p)
		} else {
			classes = append(classes, resourceName(class.GroupVersion, class.Resource))
		}
	}
	switch {
	case byName:
		missing = append(missing, classes...)
	case len(installed) == 0:
		missing = append(missing, strings.Join(classes, " or "))
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the API server at %s does not know %s: install the CustomResourceDefinitions first (kubectl apply -f api/crd)",
			config.Host, strings.Join(missing, ", "))
	}
	return installed, nil
}

// serves reports whether the API server knows a resource.
func serves(client *discovery.DiscoveryClient, host, groupVersion, resource string) (bool, error) {
	served, err := client.ServerResourcesForGroupVersion(groupVersion)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking %s for the kinds of %s: %w", host, groupVersion, err)
	}
	return slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }), nil
}

func resourceName(groupVersion, resource string) string {
	group, _, _ := strings.Cut(groupVersion, "/")
	return resource + "." + group
}
