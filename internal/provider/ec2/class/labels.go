package class

import (
	"strings"

	kubeletapis "k8s.io/kubelet/pkg/apis"
)

// KubeletTakes reports whether a kubelet may give itself a label. It exits when it is told others of Kubernetes, among
// them those of node-restriction.kubernetes.io.
func KubeletTakes(key string) bool {
	namespace, _, _ := strings.Cut(key, "/")
	in := func(domain string) bool { return namespace == domain || strings.HasSuffix(namespace, "."+domain) }
	return kubeletapis.IsKubeletLabel(key) || !in("kubernetes.io") && !in("k8s.io")
}
