package operator

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	"github.com/joiner-autoscaler/joiner/internal/sim/apiserver"
)

// In some worlds HyperShift makes a Secret for each node class, with what its nodes start with, and resolves the
// versions that classes ask for.

func secretOf(class string) client.ObjectKey {
	return client.ObjectKey{Namespace: policyKey().Namespace, Name: "user-data-" + class}
}

// putSecret makes the Secret of a class, or renews what nodes start with.
func (w *world) putSecret() {
	name := w.className()
	key := secretOf(name)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	set := func(s *corev1.Secret) {
		s.Annotations = map[string]string{"hypershift.openshift.io/nodePool": "clusters/" + name + "-karpenter"}
		s.Labels = map[string]string{"hypershift.openshift.io/managed-by-karpenter": "true",
			"hypershift.openshift.io/ami": pick(w, "ami-1", "ami-2")}
		s.Data = map[string][]byte{"value": fmt.Appendf(nil, "boot %d", w.dice.IntN(9))}
	}
	if found := w.management.Peek(secret, key); found != nil {
		fresh := found.DeepCopyObject().(*corev1.Secret)
		set(fresh)
		w.tell("HyperShift changes the Secret of %s: %v", name, w.management.Update(fresh, apiserver.Main))
		return
	}
	set(secret)
	w.tell("HyperShift makes the Secret of %s: %v", name, w.management.Create(secret))
}

func (w *world) dropSecret() {
	key := secretOf(w.className())
	w.tell("HyperShift deletes Secret %s: %v", key.Name,
		w.management.Delete(&corev1.Secret{}, key, apiserver.DeleteOptions{}))
}

// askVersion lets a user ask for another release. HyperShift resolves it later.
func (w *world) askVersion() {
	if !w.fromSecrets {
		return
	}
	name, version := w.className(), pick(w, "", "4.20.1", "4.21.0")
	change(w, &hypershiftv1.OpenshiftEC2NodeClass{}, name, apiserver.Main,
		func(c *hypershiftv1.OpenshiftEC2NodeClass) { c.Spec.Version = version })
	w.after(w.between(0, time.Minute), w.resolveVersions)
}

func (w *world) resolveVersions() {
	w.guest.All(&hypershiftv1.OpenshiftEC2NodeClass{}, func(o client.Object) {
		class := o.(*hypershiftv1.OpenshiftEC2NodeClass)
		if class.Spec.Version != class.Status.Version {
			change(w, class, class.Name, apiserver.Status, func(c *hypershiftv1.OpenshiftEC2NodeClass) {
				c.Status.Version = c.Spec.Version
			})
		}
	})
}
