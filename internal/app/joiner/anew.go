package joiner

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/kube"
)

// Change takes in an object that changed, or one that replaced another of the same name (kube.MadeAnew).
func (f *Feed) Change(old, fresh client.Object) {
	if kube.MadeAnew(old, fresh) {
		f.Remove(old)
	}
	f.Apply(fresh)
}
