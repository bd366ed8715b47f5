// Package userdata writes what an EC2 instance reads when it starts, so that it becomes the node that was planned. It
// is pure: equal input gives equal bytes, and no error repeats what a user wrote, which may hold secrets (E-34).
//
//   - [AL2023] writes a multipart document with a NodeConfig for nodeadm (E-32).
//   - [Bottlerocket] writes settings in TOML (E-33).
//   - With the family Custom an instance gets the user's text byte for byte; nothing here touches it.
//
// Sources: the API reference of nodeadm (awslabs.github.io/amazon-eks-ami/nodeadm/doc/api) and the settings of
// Bottlerocket 1.50 (bottlerocket.dev).
package userdata

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// Limit is how many bytes user data may have before it is encoded. EC2 refuses more.
const Limit = 16 << 10

// Node is what an instance has to know to become a node.
type Node struct {
	Cluster Cluster
	// Kubelet is that of the node class; nil for none.
	Kubelet *awsv1.KubeletConfiguration
	// MaxPods is how many pods the plan counts on (E-20). It wins over Kubelet.MaxPods.
	MaxPods int64
	// DNS are the addresses of the cluster's DNS servers, for a Kubelet that names none.
	DNS []string
	// Labels are those that the node registers with.
	Labels map[string]string
	// Taints are those of the claim, its startup taints and karpenter.sh/unregistered, in this order.
	Taints []corev1.Taint
	// LocalStorage makes one volume of the disks that belong to the instance, for pods and images (RAID0).
	LocalStorage bool
}

// Cluster is where a node finds its API server.
type Cluster struct {
	Name, Endpoint string
	// CA is the certificates of the API server's authority, PEM in base64.
	CA string
	// CIDR is the range of the addresses of Services. Only AL2023 needs it.
	CIDR string
}

// Error says that a user's part cannot be understood. It never repeats its text.
type Error struct {
	Part int // of a multipart document, from 1; 0 when it is the whole
	Line int // in that part, from 1; 0 when it is not known
	What string
}

// Error implements error.
func (e *Error) Error() string {
	where := "spec.userData"
	if e.Part > 0 {
		where += fmt.Sprintf(", part %d", e.Part)
	}
	if e.Line > 0 {
		where += fmt.Sprintf(", line %d", e.Line)
	}
	return where + ": " + e.What
}

// TooLargeError says that user data would be refused.
type TooLargeError struct{ Size int } // in bytes

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf(
		"the user data would have %d bytes, EC2 takes at most %d: shorten spec.userData or spec.kubelet", e.Size,
		Limit)
}

// SizeOf returns how many bytes user data has, or would have had if EC2 took as much; known is false when another
// error kept it from being written. Its arguments are what [AL2023] or [Bottlerocket] returned.
func SizeOf(text string, err error) (bytes int, known bool) {
	var large *TooLargeError
	if errors.As(err, &large) {
		return large.Size, true
	}
	return len(text), err == nil
}

func bounded(text string) (string, error) {
	if len(text) > Limit {
		return "", &TooLargeError{Size: len(text)}
	}
	return text, nil
}

// kubelet returns the class's settings with what the plan decides.
func (n Node) kubelet() awsv1.KubeletConfiguration {
	var k awsv1.KubeletConfiguration
	if n.Kubelet != nil {
		k = *n.Kubelet.DeepCopy()
	}
	if n.MaxPods > 0 {
		k.MaxPods = new(int32(n.MaxPods))
	}
	if len(k.ClusterDNS) == 0 {
		k.ClusterDNS = slices.Clone(n.DNS)
	}
	return k
}

// labels returns "a=b,c=d", ordered by key.
func (n Node) labels() string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		pairs = append(pairs, key+"="+n.Labels[key])
	}
	return strings.Join(pairs, ",")
}
