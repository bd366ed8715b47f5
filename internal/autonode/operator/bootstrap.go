package operator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

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

// Bootstrapper returns what nodes of a node class start with, nil if it does not exist yet. release is the release
// that the class is known to have, "" for any: an answer from before that was known does not count.
type Bootstrapper func(ctx context.Context, class, release string) (*merge.Bootstrap, error)

const (
	// sharedFor is for how long the answer to one class serves the others. Each may wait and look again every second,
	// and the answer is as long as there are classes, whose number is up to the guest's users.
	sharedFor = 2 * time.Second
	// sharedMeanwhile is the same while another answer is under way.
	sharedMeanwhile = 10 * time.Second
)

// BootstrapFromSecrets returns a function that finds what nodes start with in the Secrets of the hosted control plane.
// It lists them for all classes together: a watch would need one more right.
func BootstrapFromSecrets(management ManagementClient, now func() time.Time) Bootstrapper {
	shared := &sharedSecrets{management: management, now: now, releases: map[string]string{}}
	return func(ctx context.Context, class, release string) (*merge.Bootstrap, error) {
		secrets, err := shared.list(ctx, class, release)
		if err != nil {
			return nil, fmt.Errorf("listing the user data Secrets of namespace %s: %w", management.namespace, err)
		}
		return bootstrapOf(secrets, management.namespace, class), nil
	}
}

// sharedSecrets is the last answer about the Secrets. It is safe for concurrent use.
type sharedSecrets struct {
	management ManagementClient
	now        func() time.Time

	mu       sync.Mutex
	asked    time.Time // when the request of the answer began; zero for none yet
	secrets  []corev1.Secret
	err      error
	underWay int               // requests
	releases map[string]string // by class: the release that was known before the request
}

// list returns the last answer if it serves the class, and asks otherwise.
func (s *sharedSecrets) list(ctx context.Context, class, release string) ([]corev1.Secret, error) {
	s.mu.Lock()
	began := s.now()
	age, limit := began.Sub(s.asked), sharedFor
	if s.underWay > 0 {
		limit = sharedMeanwhile
	}
	if known := release == "" || s.releases[class] == release; known && !s.asked.IsZero() && age < limit {
		defer s.mu.Unlock()
		return s.secrets, s.err
	}
	s.underWay++
	s.mu.Unlock()
	var list corev1.SecretList
	err := s.management.client.List(ctx, &list, client.InNamespace(s.management.namespace),
		client.MatchingLabels{secretLabel: "true"})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay--
	if !began.Before(s.asked) {
		s.asked, s.secrets, s.err = began, list.Items, err
	}
	if err == nil && release != "" {
		s.releases[class] = release
	}
	return list.Items, err
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
func BootstrapFromFile(path string, amis []string, read func(string) ([]byte, error)) Bootstrapper {
	return func(context.Context, string, string) (*merge.Bootstrap, error) {
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
