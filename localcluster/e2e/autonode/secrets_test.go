package autonode

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// userData returns the Secret that HyperShift makes for the nodes of a node class.
func userData(class, content string) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: hcp, Name: "user-data-" + class,
			Labels: map[string]string{
				"hypershift.openshift.io/managed-by-karpenter": "true",
				"hypershift.openshift.io/ami":                  "ami-0amd",
				"hypershift.openshift.io/ami-arm64":            "ami-0arm",
			},
			Annotations: map[string]string{"hypershift.openshift.io/nodePool": "clusters/" + class + "-karpenter"},
		},
		Data: map[string][]byte{"value": []byte(content)},
	}
}

// maySeeSecrets gives the operator the right that --userdata-secrets needs, in its own namespace.
func (w *world) maySeeSecrets() {
	w.t.Helper()
	meta := metav1.ObjectMeta{Namespace: hcp, Name: "user-data"}
	role := &rbacv1.Role{ObjectMeta: meta,
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"list"}}}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: hcp, Name: account}},
	}
	if err := w.sre.Create(w.ctx, role); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = w.sre.Delete(w.ctx, role) })
	if err := w.sre.Create(w.ctx, binding); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = w.sre.Delete(w.ctx, binding) })
}

// User data comes from the Secrets of the hosted control plane. A class without a Secret yet waits, and says so.
func TestUserDataComesFromTheSecretsOfTheHostedControlPlane(t *testing.T) {
	w := begin(t)
	w.maySeeSecrets()
	for class, content := range map[string]string{"default": "boot", "late": "boot late"} {
		secret := userData(class, content)
		t.Cleanup(func() { _ = w.sre.Delete(w.ctx, secret) })
		if class == "default" {
			if err := w.sre.Create(w.ctx, secret); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.run("--userdata-secrets")
	w.class("late", object{"monitoring": "Basic"})
	w.classSays("late", "PolicyApplied", "Unknown", "")
	w.booted("default", "boot")
	if w.get(nodeClassKind, "late") != nil {
		t.Error("a class without user data was written")
	}
	if err := w.sre.Create(w.ctx, userData("late", "boot late")); err != nil {
		t.Fatal(err)
	}
	w.booted("late", "boot late")
	w.rooted(hardCoded, "default", "late")
}

// booted waits for the user data and the machine images of an EC2NodeClass.
func (w *world) booted(name, content string) {
	w.t.Helper()
	want := show(list(object{"id": "ami-0amd"}, object{"id": "ami-0arm"}))
	w.eventually("the user data of "+name, func() (bool, string) {
		class := w.get(nodeClassKind, name)
		if class == nil {
			return false, "there is no such EC2NodeClass"
		}
		return field(class, "spec", "userData") == content && show(field(class, "spec", "amiSelectorTerms")) == want,
			show(field(class, "spec"))
	})
}
