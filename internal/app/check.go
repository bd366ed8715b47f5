package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
)

// reachWithin bounds the first contact with the API server.
const reachWithin = 10 * time.Second

// checkCluster makes sure that the API server answers and serves our kinds. Its errors are for people: what is wrong,
// where, and what to do.
func checkCluster(ctx context.Context, config *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, reachWithin)
	defer cancel()
	client, err := checkServer(ctx, config)
	if err != nil {
		return err
	}
	var missing []string
	for _, want := range []struct{ groupVersion, resource, group string }{
		{karpenterv1.GroupVersion().String(), "nodepools", karpenterv1.Group},
		{karpenterv1.GroupVersion().String(), "nodeclaims", karpenterv1.Group},
		{karpenterv1alpha1.GroupVersion().String(), "nodeoverlays", karpenterv1alpha1.Group},
		{kwokv1alpha1.GroupVersion().String(), "kwoknodeclasses", kwokv1alpha1.Group},
	} {
		served, err := client.ServerResourcesForGroupVersion(want.groupVersion)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("asking %s for the kinds of %s: %w", config.Host, want.groupVersion, err)
		}
		if err != nil || !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == want.resource }) {
			missing = append(missing, want.resource+"."+want.group)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the API server at %s does not know %s: install the CustomResourceDefinitions first (kubectl apply -f api/crd)",
			config.Host, strings.Join(missing, ", "))
	}
	return nil
}

// checkServer makes sure that the API server answers, and returns a client for what it serves.
func checkServer(ctx context.Context, config *rest.Config) (*discovery.DiscoveryClient, error) {
	bounded := rest.CopyConfig(config)
	bounded.Timeout = reachWithin
	client, err := discovery.NewDiscoveryClientForConfig(bounded)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig for %s cannot be used: %w", config.Host, err)
	}
	return client, reach(ctx, client, config.Host)
}

func reach(ctx context.Context, client *discovery.DiscoveryClient, host string) error {
	_, err := client.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server at %s does not accept the credentials: check the user in --kubeconfig", host)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("the API server at %s forbids to read /version: bind the ClusterRole of deploy/rbac.yaml to this user: %w", host, err)
	case errors.Is(err, context.Canceled):
		return err
	}
	return fmt.Errorf("the API server at %s cannot be reached: check that it runs, and the server address in --kubeconfig (%s)", host, oneLine(err))
}

// listen takes a port. The flag is named when another process has it.
func listen(flag string, port int) (net.Listener, error) {
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return nil, fmt.Errorf("--%s: port %d cannot be used, another process may have it: give a free port, or 0 to serve nothing (%s)", flag, port, oneLine(err))
	}
	return listener, nil
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
