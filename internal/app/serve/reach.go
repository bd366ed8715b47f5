package serve

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	return client, Reach(ctx, client, config.Host)
}

// Reach makes sure that the API server answers. Its errors are for people.
func Reach(ctx context.Context, client *discovery.DiscoveryClient, host string) error {
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
	return fmt.Errorf("the API server at %s cannot be reached: check that it runs, and the server address in --kubeconfig (%s)",
		host, OneLine(err))
}

// OneLine is an error's text on one line.
func OneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
