package operator

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/kube/patch"
)

// PolicyName is the only name that a policy may have to count (R5).
const PolicyName = "default"

// GuestClient reaches the guest cluster: reads come from a cache, writes go to the API server. It is a type of its own
// so that the two clusters cannot be mixed up.
type GuestClient struct{ client.Client }

// ManagementClient reaches one namespace of the management cluster, for exactly what R41 allows: the policy and its
// status; and the Secrets and the HostedControlPlane of that namespace when they are asked for. It has no cache and
// does no discovery.
type ManagementClient struct {
	client    client.WithWatch
	namespace string
}

// NewManagementClient returns a client of the namespace. Nothing is requested before it is used: a cluster that does
// not answer, or does not know the kind, is a state of reading and no reason not to start.
func NewManagementClient(config *rest.Config, namespace string) (ManagementClient, error) {
	scheme := runtime.NewScheme()
	for _, register := range []func(*runtime.Scheme) error{corev1.AddToScheme, hypershiftv1beta1.AddToScheme} {
		if err := register(scheme); err != nil {
			return ManagementClient{}, err
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.AddSpecific(hypershiftv1beta1.GroupVersion().WithKind("AutoNodePolicy"),
		hypershiftv1beta1.GroupVersion().WithResource("autonodepolicies"),
		hypershiftv1beta1.GroupVersion().WithResource("autonodepolicy"), meta.RESTScopeNamespace)
	mapper.AddSpecific(corev1.SchemeGroupVersion.WithKind("Secret"),
		corev1.SchemeGroupVersion.WithResource("secrets"), corev1.SchemeGroupVersion.WithResource("secret"),
		meta.RESTScopeNamespace)
	mapper.AddSpecific(hostedControlPlane,
		hostedControlPlane.GroupVersion().WithResource("hostedcontrolplanes"),
		hostedControlPlane.GroupVersion().WithResource("hostedcontrolplane"), meta.RESTScopeNamespace)
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return ManagementClient{}, fmt.Errorf("setting up the connection to the management cluster: %w", err)
	}
	return ManagementClientOf(c, namespace), nil
}

// ManagementClientOf returns a client of the namespace over another, for tests.
func ManagementClientOf(c client.WithWatch, namespace string) ManagementClient {
	return ManagementClient{client: c, namespace: namespace}
}

// Namespace returns the namespace of the hosted control plane.
func (m ManagementClient) Namespace() string { return m.namespace }

func (m ManagementClient) onlyPolicy() []client.ListOption {
	return []client.ListOption{client.InNamespace(m.namespace), client.MatchingFields{"metadata.name": PolicyName}}
}

// Policy asks the API server for the policy, nil when there is none, and returns the resource version to watch from.
// It lists, because the answer to a list tells a kind that is not served (not found) from a policy that does not
// exist.
func (m ManagementClient) Policy(
	ctx context.Context) (policy *hypershiftv1beta1.AutoNodePolicy, version string, err error) {
	var list hypershiftv1beta1.AutoNodePolicyList
	if err := m.client.List(ctx, &list, m.onlyPolicy()...); err != nil {
		return nil, "", fmt.Errorf("reading AutoNodePolicy %s/%s: %w", m.namespace, PolicyName, err)
	}
	if len(list.Items) > 0 { // the name is unique
		policy = &list.Items[0]
	}
	return policy, list.ResourceVersion, nil
}

// Watch watches the policy from a resource version on, for at most the seconds given.
func (m ManagementClient) Watch(ctx context.Context, version string, seconds int64) (watch.Interface, error) {
	options := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: &seconds}}
	options.ApplyOptions(m.onlyPolicy())
	return m.client.Watch(ctx, &hypershiftv1beta1.AutoNodePolicyList{}, options)
}

// WriteStatus writes what differs between the policy's status and the one given, unless anybody has changed the policy
// since it was read: then the error is a conflict (G16, G29).
func (m ManagementClient) WriteStatus(ctx context.Context, policy *hypershiftv1beta1.AutoNodePolicy,
	status *hypershiftv1beta1.AutoNodePolicyStatus) error {
	return m.client.Status().Patch(ctx, policy.DeepCopy(), patch.Status(policy, &policy.Status, status))
}
