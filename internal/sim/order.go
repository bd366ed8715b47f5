package sim

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

// This file lets stories check which node goes first when a pool has too many (L-41).

// orderVerbs returns the script lines of this file.
func orderVerbs() map[string]func(*World, arguments) error {
	return map[string]func(*World, arguments) error{"drift-claim": (*World).driftClaim}
}

// driftClaim makes the Kth claim look as if made from another template: it alone drifts.
func (w *World) driftClaim(a arguments) error {
	found := w.pick(&karpenterv1.NodeClaim{}, a.first())
	if found == nil {
		return nil
	}
	change(w, &karpenterv1.NodeClaim{}, client.ObjectKeyFromObject(found), apiserver.Main,
		func(c *karpenterv1.NodeClaim) {
			if c.Annotations == nil {
				c.Annotations = map[string]string{}
			}
			c.Annotations[karpenterv1.NodePoolHashAnnotationKey] = "another template"
		})
	return nil
}

// nodeNumbers returns the numbers of our nodes, in the order of their launches: "1,3".
func (w *World) nodeNumbers() string {
	var numbers []string
	w.server.All(&corev1.Node{}, func(o client.Object) {
		if number, ours := strings.CutPrefix(o.GetName(), "node-"); ours {
			numbers = append(numbers, strings.TrimLeft(number, "0"))
		}
	})
	slices.Sort(numbers)
	return strings.Join(numbers, ",")
}
