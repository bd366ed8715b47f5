// Package boot reads an instance's user data as the software of its image does when the machine starts, and says which
// kubelet would result, or why none would. It was written from the documentation of that software, not from our writer
// (package userdata), so that a mistake there cannot hide here (E-32, E-33).
//
//   - [AL2023] stands for nodeadm and the kubelet that it starts.
//   - [Bottlerocket] stands for Bottlerocket's early-boot-config and its kubelet.
//
// Both are as strict as the originals: they refuse an unknown field, or a label that a kubelet may not give itself.
// Sources: the API reference of nodeadm (awslabs.github.io/amazon-eks-ami/nodeadm/doc/api), the settings of
// Bottlerocket 1.50 (bottlerocket.dev), the kubelet's configuration v1beta1 and its flags (kubernetes.io).
package boot

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeletapis "k8s.io/kubelet/pkg/apis"
)

// maxSize bounds user data, in bytes, as EC2 does.
const maxSize = 16 << 10

// Config is what a kubelet would be started with.
type Config struct {
	Cluster Cluster
	Labels  map[string]string // those that it gives itself
	Taints  []corev1.Taint
	MaxPods int32 // 0: what the machine computes by itself
	DNS     []string
	// Reserved amounts and thresholds, by resource or signal; nil means the machine's own.
	KubeReserved, SystemReserved, EvictionHard map[string]string
	// Disks says that the instance's own disks become one volume for pods and images.
	Disks bool
}

// Cluster is where the kubelet finds its API server.
type Cluster struct {
	Name, Endpoint string
	CA             []byte // PEM
	CIDR           string // of Services; not given to Bottlerocket
}

// check returns what a kubelet would refuse at its start.
func (c *Config) check() error {
	var wrong []error
	if c.Cluster.Name == "" {
		wrong = append(wrong, errors.New("the name of the cluster is missing"))
	}
	if at, err := url.Parse(c.Cluster.Endpoint); err != nil || at.Scheme != "https" || at.Host == "" {
		wrong = append(wrong, fmt.Errorf("the API server's endpoint is %q; https://HOST is allowed",
			c.Cluster.Endpoint))
	}
	if !strings.Contains(string(c.Cluster.CA), "-----BEGIN CERTIFICATE-----") {
		wrong = append(wrong, errors.New("the certificate authority is no certificate in PEM"))
	}
	for _, key := range slices.Sorted(maps.Keys(c.Labels)) {
		wrong = append(wrong, checkLabel(key, c.Labels[key]))
	}
	for _, t := range c.Taints {
		wrong = append(wrong, checkTaint(t))
	}
	for _, amounts := range []map[string]string{c.KubeReserved, c.SystemReserved, c.EvictionHard} {
		for _, name := range slices.Sorted(maps.Keys(amounts)) {
			if _, err := resource.ParseQuantity(strings.TrimSuffix(amounts[name], "%")); err != nil {
				wrong = append(wrong, fmt.Errorf("%s is %q; an amount is allowed, for evictions also a percentage",
					name, amounts[name]))
			}
		}
	}
	return errors.Join(wrong...)
}

// checkLabel refuses labels that a kubelet may not give itself: it would exit with an error.
func checkLabel(key, value string) error {
	for _, problem := range append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...) {
		return fmt.Errorf("--node-labels: %s=%s: %s", key, value, problem)
	}
	namespace, _, has := strings.Cut(key, "/")
	if !has {
		return nil
	}
	ofKubernetes := namespace == "kubernetes.io" || strings.HasSuffix(namespace, ".kubernetes.io") ||
		namespace == "k8s.io" || strings.HasSuffix(namespace, ".k8s.io")
	if ofKubernetes && !kubeletapis.IsKubeletLabel(key) {
		return fmt.Errorf("--node-labels: %s: a kubelet may not give itself this label of Kubernetes", key)
	}
	return nil
}

func checkTaint(t corev1.Taint) error {
	for _, problem := range append(validation.IsQualifiedName(t.Key), validation.IsValidLabelValue(t.Value)...) {
		return fmt.Errorf("taint %s=%s: %s", t.Key, t.Value, problem)
	}
	effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
		corev1.TaintEffectNoExecute}
	if !slices.Contains(effects, t.Effect) {
		return fmt.Errorf("taint %s has effect %q; one of %q is allowed", t.Key, t.Effect, effects)
	}
	return nil
}

// pairs parses a=b,c=d like the kubelet's flags.
func pairs(text string) (map[string]string, error) {
	all := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if pair = strings.TrimSpace(pair); pair == "" {
			continue
		}
		key, value, has := strings.Cut(pair, "=")
		if !has {
			return nil, fmt.Errorf("--node-labels: %q is no pair; KEY=VALUE is allowed", pair)
		}
		all[strings.TrimSpace(key)] = strings.TrimSpace(value)
	}
	return all, nil
}
