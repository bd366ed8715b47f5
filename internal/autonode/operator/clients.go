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

// PolicyName is the only name under which a policy counts (R5).
const PolicyName = "default"

// GuestClient is the client of the guest cluster: reads come from a cache, writes go to the API server. It is a
// separate type so that the two clusters cannot be mixed up.
type GuestClient struct{ client.Client }

// ManagementClient is the client of one namespace of the management cluster, for exactly what R41 allows: the policy
// and its status; if configured, also the Secrets and the HostedControlPlane of that namespace. It has no cache and
// does no discovery.
type ManagementClient struct {
	client    client.WithWatch
	namespace string
}

// NewManagementClient returns a client of the namespace. It sends no request yet: a cluster that does not answer, or
// does not know the kind, is a state of reading and must not prevent the start.
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

// ManagementClientOf returns a client of the namespace that uses c, for tests.
func ManagementClientOf(c client.WithWatch, namespace string) ManagementClient {
	return ManagementClient{client: c, namespace: namespace}
}

// Namespace returns the namespace of the hosted control plane.
func (m ManagementClient) Namespace() string { return m.namespace }

func (m ManagementClient) onlyPolicy() []client.ListOption {
	return []client.ListOption{client.InNamespace(m.namespace), client.MatchingFields{"metadata.name": PolicyName}}
}

// Policy reads the policy, nil if there is none, and the resource version to watch from. It lists, because the answer
// distinguishes a kind that is not served (not found) from a policy that does not exist.
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

// Watch watches the policy from a resource version on, for at most the given number of seconds.
func (m ManagementClient) Watch(ctx context.Context, version string, seconds int64) (watch.Interface, error) {
	options := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: &seconds}}
	options.ApplyOptions(m.onlyPolicy())
	return m.client.Watch(ctx, &hypershiftv1beta1.AutoNodePolicyList{}, options)
}

// WriteStatus writes the differences between the policy's status and the given one. If the policy has changed since it
// was read, it returns a conflict error (G16, G29).
func (m ManagementClient) WriteStatus(ctx context.Context, policy *hypershiftv1beta1.AutoNodePolicy,
	status *hypershiftv1beta1.AutoNodePolicyStatus) error {
	return m.client.Status().Patch(ctx, policy.DeepCopy(), patch.Status(policy, &policy.Status, status))
}
