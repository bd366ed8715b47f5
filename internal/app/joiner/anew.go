package joiner

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/kube"
)

// Change takes in that an object has changed, or that another one stands in its place (kube.MadeAnew).
func (f *Feed) Change(old, fresh client.Object) {
	if kube.MadeAnew(old, fresh) {
		f.Remove(old)
	}
	f.Apply(fresh)
}
