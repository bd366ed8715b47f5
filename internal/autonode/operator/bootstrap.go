package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
)

// The Secrets that HyperShift makes for the nodes of a node class.
const (
	secretLabel          = "hypershift.openshift.io/managed-by-karpenter" // "true"
	secretTokenLabel     = "hypershift.openshift.io/ignition-config"      // "true" on the one to leave out
	secretPoolAnnotation = "hypershift.openshift.io/nodePool"             // NAMESPACE/NAME-karpenter
	secretAMILabel       = "hypershift.openshift.io/ami"
	secretArmAMILabel    = "hypershift.openshift.io/ami-arm64"
	secretKey            = "value"
	secretPoolSuffix     = "-karpenter"
)

// BootstrapFromSecrets returns a function that finds what nodes start with in the Secrets of the hosted control plane.
// It lists them each time: they are few, and a watch would need one more right.
func BootstrapFromSecrets(management ManagementClient) func(context.Context, string) (*merge.Bootstrap, error) {
	return func(ctx context.Context, class string) (*merge.Bootstrap, error) {
		var list corev1.SecretList
		if err := management.client.List(ctx, &list, client.InNamespace(management.namespace),
			client.MatchingLabels{secretLabel: "true"}); err != nil {
			return nil, fmt.Errorf("listing the user data Secrets of namespace %s: %w", management.namespace, err)
		}
		return bootstrapOf(list.Items, management.namespace, class), nil
	}
}

// bootstrapOf returns the content of a node class's Secret, the first by name if there are several.
func bootstrapOf(secrets []corev1.Secret, namespace, class string) *merge.Bootstrap {
	var found *corev1.Secret
	for i := range secrets {
		secret := &secrets[i]
		_, pool, _ := strings.Cut(secret.Annotations[secretPoolAnnotation], "/")
		if secret.Labels[secretTokenLabel] == "true" || pool != class+secretPoolSuffix ||
			secret.Namespace != namespace || secret.DeletionTimestamp != nil {
			continue
		}
		if found == nil || secret.Name < found.Name {
			found = secret
		}
	}
	if found == nil {
		return nil
	}
	bootstrap := &merge.Bootstrap{UserData: string(found.Data[secretKey])}
	for _, label := range []string{secretAMILabel, secretArmAMILabel} {
		if ami := found.Labels[label]; ami != "" && !slices.Contains(bootstrap.AMIs, ami) {
			bootstrap.AMIs = append(bootstrap.AMIs, ami)
		}
	}
	return bootstrap
}

// BootstrapFromFile returns a function that reads the user data of all node classes from one file, such as a Secret
// mounted into the operator's pod. That needs no right to read Secrets. read is os.ReadFile.
func BootstrapFromFile(path string, amis []string, read func(string) ([]byte, error)) func(context.Context,
	string) (*merge.Bootstrap, error) {
	return func(context.Context, string) (*merge.Bootstrap, error) {
		data, err := read(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the user data: %w", err)
		}
		return &merge.Bootstrap{UserData: string(data), AMIs: slices.Clone(amis)}, nil
	}
}
