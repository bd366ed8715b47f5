package operator

import (
	"maps"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
)

const (
	policyKind  = "ValidatingAdmissionPolicy"
	bindingKind = "ValidatingAdmissionPolicyBinding"
)

// kindOf returns the kind of a part of an admission policy, for people and metrics: objects from the API server lack
// it.
func kindOf(object client.Object) string {
	if _, binding := object.(*admissionv1.ValidatingAdmissionPolicyBinding); binding {
		return bindingKind
	}
	return policyKind
}

// emptyLike returns an empty object of the same kind.
func emptyLike(object client.Object) client.Object {
	if kindOf(object) == bindingKind {
		return &admissionv1.ValidatingAdmissionPolicyBinding{}
	}
	return &admissionv1.ValidatingAdmissionPolicy{}
}

// union returns a map with the entries of both; those of over win.
func union[V any](under, over map[string]V) map[string]V {
	if len(under)+len(over) == 0 {
		return nil
	}
	all := maps.Clone(under)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, over)
	return all
}

// ownedBy returns the owners with the wanted ones added. It removes other controllers, since there can be only one.
func ownedBy(owners, wanted []metav1.OwnerReference) []metav1.OwnerReference {
	var all []metav1.OwnerReference
	for _, owner := range owners {
		ours := groupOf(owner.APIVersion) == hypershiftv1beta1.Group
		if !ours && (owner.Controller == nil || !*owner.Controller) {
			all = append(all, owner)
		}
	}
	return append(all, wanted...)
}

func groupOf(apiVersion string) string {
	group, _, _ := strings.Cut(apiVersion, "/")
	return group
}

// maxText bounds the text of a condition.
const maxText = 2000

// cut shortens a text for a condition.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText-3], "") + "..."
}
