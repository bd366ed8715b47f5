package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// ReachWithin bounds the first contact with the API server.
const ReachWithin = 10 * time.Second

// CheckServer makes sure that the API server answers, and returns a client for what it serves.
func CheckServer(ctx context.Context, config *rest.Config) (*discovery.DiscoveryClient, error) {
	bounded := rest.CopyConfig(config)
	bounded.Timeout = ReachWithin
	client, err := discovery.NewDiscoveryClientForConfig(bounded)
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig for %s cannot be used: %w", config.Host, err)
	}
	return client, reach(ctx, client, config.Host)
}

// Missing returns those resources that the API server does not serve, as name and group ("nodepools.karpenter.sh"), in
// the order given.
func Missing(client discovery.DiscoveryInterface, host string,
	resources ...schema.GroupVersionResource) ([]string, error) {
	var missing []string
	for _, want := range resources {
		served, err := client.ServerResourcesForGroupVersion(want.GroupVersion().String())
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("asking %s for the kinds of %s: %w", host, want.GroupVersion(), err)
		}
		if err != nil || !slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool {
			return r.Name == want.Resource
		}) {
			missing = append(missing, want.GroupResource().String())
		}
	}
	return missing, nil
}

// reach makes sure that the API server answers. Its errors are for people.
func reach(ctx context.Context, client *discovery.DiscoveryClient, host string) error {
	_, err := client.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	switch {
	case err == nil:
		return nil
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the API server at %s does not accept the credentials: check the user in --kubeconfig", host)
	case apierrors.IsForbidden(err):
		return fmt.Errorf(
			"the API server at %s forbids to read /version: bind the ClusterRole of deploy/rbac.yaml to this user: %w",
			host, err)
	case errors.Is(err, context.Canceled):
		return err
	}
	return fmt.Errorf(
		"the API server at %s cannot be reached: check that it runs, and the server address in --kubeconfig (%s)",
		host, OneLine(err))
}

// OneLine returns an error's text on one line.
func OneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// ServerVersion returns the version of the API server: major and minor, such as 1.34.
func ServerVersion(ctx context.Context, config *rest.Config) (string, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return "", err
	}
	text, err := client.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", config.Host, err)
	}
	var info version.Info
	if err := json.Unmarshal(text, &info); err != nil || info.Major == "" || info.Minor == "" {
		return "", fmt.Errorf("asking %s for its version: it answers %.100q", config.Host, text)
	}
	return info.Major + "." + strings.TrimRight(info.Minor, "+"), nil
}
