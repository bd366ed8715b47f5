package operator

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Section 4 1.3: of several Secrets of a class, the first by name counts, wherever it is in the list. One that is
// being deleted, or is of another class or namespace, does not. Its images are listed once.
func TestWhichSecretNodesStartWith(t *testing.T) {
	t.Parallel()
	secret := func(name string, changes ...func(*corev1.Secret)) corev1.Secret {
		s := corev1.Secret{Data: map[string][]byte{"value": []byte(name)}, ObjectMeta: metav1.ObjectMeta{
			Namespace: "hcp", Name: name, Annotations: map[string]string{
				"hypershift.openshift.io/nodePool": "clusters/big-karpenter",
			},
			Labels: map[string]string{"hypershift.openshift.io/ami": "ami-1"}}}
		for _, change := range changes {
			change(&s)
		}
		return s
	}
	going := func(s *corev1.Secret) { s.DeletionTimestamp = &metav1.Time{} }
	elsewhere := func(s *corev1.Secret) { s.Namespace = "hcp-b" }
	other := func(s *corev1.Secret) { s.Annotations["hypershift.openshift.io/nodePool"] = "clusters/other-karpenter" }
	for name, c := range map[string]struct {
		secrets []corev1.Secret
		want    string
	}{
		"in order":          {[]corev1.Secret{secret("b"), secret("c")}, "b"},
		"not in order":      {[]corev1.Secret{secret("c"), secret("b")}, "b"},
		"one is going":      {[]corev1.Secret{secret("a", going), secret("b")}, "b"},
		"one elsewhere":     {[]corev1.Secret{secret("a", elsewhere), secret("b")}, "b"},
		"one of another's":  {[]corev1.Secret{secret("a", other), secret("b")}, "b"},
		"none that is ours": {[]corev1.Secret{secret("a", going), secret("b", other)}, ""},
	} {
		found := bootstrapOf(c.secrets, "hcp", "big")
		if (found != nil) != (c.want != "") || found != nil && found.UserData != c.want {
			t.Errorf("%s: found %v, want %q", name, found, c.want)
		}
	}
	for name, c := range map[string]struct {
		amd, arm string
		want     []string
	}{"one": {"ami-1", "", []string{"ami-1"}}, "both": {"ami-1", "ami-2", []string{"ami-1",
		"ami-2"}}, "the same": {"ami-1", "ami-1", []string{"ami-1"}}, "none": {"", "", nil}} {
		found := bootstrapOf([]corev1.Secret{secret("a", func(s *corev1.Secret) {
			s.Labels = map[string]string{"hypershift.openshift.io/ami": c.amd,
				"hypershift.openshift.io/ami-arm64": c.arm}
		})}, "hcp", "big")
		if found == nil || !slices.Equal(found.AMIs, c.want) {
			t.Errorf("%s: found %v, want the images %v", name, found, c.want)
		}
	}
}
