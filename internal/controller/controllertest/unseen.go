package controllertest

import (
	"context"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/kube/unseen"
)

// Write makes objects remember that this process wrote a newer version of obj than any cache shows.
func Write(t *testing.T, objects *unseen.Objects, obj client.Object) {
	t.Helper()
	fresh := obj.DeepCopyObject().(client.Object)
	if err := objects.Client(ahead{}).Patch(t.Context(), fresh, client.MergeFrom(obj)); err != nil {
		t.Fatal(err)
	}
}

type ahead struct{ client.Client }

func (ahead) Patch(_ context.Context, obj client.Object, _ client.Patch, _ ...client.PatchOption) error {
	obj.SetResourceVersion("9" + strings.Repeat("0", 15))
	return nil
}
