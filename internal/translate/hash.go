package translate

import (
	"strconv"
	"time"

	"github.com/mitchellh/hashstructure/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// HashVersion is the version of the drift hash. It is the one of the Karpenter releases with an equal hash.
const HashVersion = "v3"

// Hash returns the drift hash of a pool's template without its requirements (L-05, features 1.4). It equals
// Karpenter's of the same version, so that taking over a cluster drifts no node (P-34).
//
// hashstructure hashes the names of struct types and fields. So the types below have the names of Karpenter's types,
// whatever ours are called. It fails only on kinds of values that these types do not contain. If a change adds one,
// the hash is empty and the golden test fails.
func Hash(pool *karpenterv1.NodePool) string {
	type NodeClassReference struct{ Kind, Name, Group string }
	type NillableDuration struct {
		*time.Duration
		Raw []byte `hash:"ignore"`
	}
	type ObjectMeta struct{ Labels, Annotations map[string]string }
	type NodeClaimTemplateSpec struct {
		Taints                 []corev1.Taint
		StartupTaints          []corev1.Taint
		NodeClassRef           *NodeClassReference
		TerminationGracePeriod *metav1.Duration
		ExpireAfter            NillableDuration
	}
	type NodeClaimTemplate struct {
		ObjectMeta
		Spec NodeClaimTemplateSpec
	}
	from := pool.Spec.Template
	template := NodeClaimTemplate{
		ObjectMeta: ObjectMeta{Labels: from.ObjectMeta.Labels, Annotations: from.ObjectMeta.Annotations},
		Spec: NodeClaimTemplateSpec{
			Taints: from.Spec.Taints, StartupTaints: from.Spec.StartupTaints,
			ExpireAfter: NillableDuration{Duration: from.Spec.ExpireAfter.Duration},
		},
	}
	if class := from.Spec.NodeClassRef; class != nil {
		template.Spec.NodeClassRef = &NodeClassReference{Kind: class.Kind, Name: class.Name, Group: class.Group}
	}
	if grace := from.Spec.TerminationGracePeriod; grace != nil {
		template.Spec.TerminationGracePeriod = &metav1.Duration{Duration: grace.Duration}
	}
	sum, err := hashstructure.Hash(template, hashstructure.FormatV2, &hashstructure.HashOptions{
		SlicesAsSets: true, IgnoreZeroValue: true, ZeroNil: true,
	})
	if err != nil {
		return ""
	}
	return strconv.FormatUint(sum, 10)
}
