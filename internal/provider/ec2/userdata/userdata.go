// Package userdata writes what an EC2 instance reads at its start to become the planned node. It is pure: equal input
// gives equal bytes. No error repeats what a user wrote, since that may have secrets (E-34).
//
//   - [AL2023] writes a multipart document with a NodeConfig for nodeadm (E-32).
//   - [Bottlerocket] writes settings in TOML (E-33).
//   - With the family Custom an instance gets the user's text byte for byte, without this package.
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

// Limit is the maximum size of user data in bytes, before it is encoded. EC2 refuses more.
const Limit = 16 << 10

// Node is what an instance needs to become a node.
type Node struct {
	Cluster Cluster
	// Kubelet is that of the node class; nil for none.
	Kubelet *awsv1.KubeletConfiguration
	// MaxPods is the number of pods that planning uses (E-20). It wins over Kubelet.MaxPods.
	MaxPods int64
	// DNS are the addresses of the cluster's DNS servers, for a Kubelet that names none.
	DNS []string
	// Labels are the labels with which the node registers.
	Labels map[string]string
	// Taints are those of the claim, its startup taints and karpenter.sh/unregistered, in this order.
	Taints []corev1.Taint
	// LocalStorage combines the instance's local disks into one volume for pods and images (RAID0).
	LocalStorage bool
}

// Cluster says where a node finds its API server.
type Cluster struct {
	Name, Endpoint string
	// CA has the certificates of the API server's authority, PEM in base64.
	CA string
	// CIDR is the range of the addresses of Services. Only AL2023 needs it.
	CIDR string
}

// Lacks returns what a node of AL2023 would need and is not known, in words; nil if nothing is. A node of Bottlerocket
// does not need the range of Services.
func (c Cluster) Lacks(bottlerocket bool) []string {
	var what []string
	if c.Endpoint == "" {
		what = append(what, "endpoint")
	}
	if c.CA == "" {
		what = append(what, "certificate authority")
	}
	if c.CIDR == "" && !bottlerocket {
		what = append(what, "range of Services")
	}
	return what
}

// LacksError means that no instance could join: facts of the cluster are not known.
type LacksError struct{ What []string } // as in [Cluster.Lacks]

// Error implements error.
func (e *LacksError) Error() string {
	return "these facts of the cluster are not known yet, and without them no node could join: " +
		strings.Join(e.What, ", ")
}

// Error means that a user's part cannot be understood. It never repeats its text.
type Error struct {
	Part int // of a multipart document, from 1; 0 for the whole text
	Line int // in that part, from 1; 0 when unknown
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

// TooLargeError means that EC2 would refuse the user data because of its size.
type TooLargeError struct{ Size int } // in bytes

// Error implements error.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf(
		"the user data would have %d bytes, EC2 takes at most %d: shorten spec.userData or spec.kubelet", e.Size,
		Limit)
}

// SizeOf returns the size of user data in bytes, even if it is too large. known is false if another error prevented
// it. Its arguments are the results of [AL2023] or [Bottlerocket].
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

// kubelet returns the class's settings, with those that the plan decides.
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

// labels returns a text such as "a=b,c=d", ordered by key.
func (n Node) labels() string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		pairs = append(pairs, key+"="+n.Labels[key])
	}
	return strings.Join(pairs, ",")
}
