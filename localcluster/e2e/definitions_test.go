package e2e

import (
	"context"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Uninstalling a chart of definitions by mistake deletes them, with all their objects. The nodes are drained and go
// (experience.md, U-11). When definitions and pools are back, the pods get nodes again, and nobody has to restart
// Joiner.
func TestDefinitionsThatAreDeletedAndInstalledAgain(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	pool := kwokPool("default", amd64Linux, quick)
	r.apply(pool + deployment("web", 3, `{cpu: "1500m"}`, ""))
	r.allRunning(3, soon)
	pid := r.JoinerPID()
	for _, name := range []string{"nodeclaims.karpenter.sh", "nodepools.karpenter.sh"} {
		before, err := r.claims(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.throughDefinition(name)
		r.apply(pool)
		r.allRunning(3, later)
		r.eventually(later, "new NodeClaims instead of the old ones", func(ctx context.Context) (bool, string, error) {
			now, err := r.claims(ctx)
			old := 0
			for _, a := range before {
				for _, b := range now {
					if a.UID == b.UID {
						old++
					}
				}
			}
			return old == 0 && len(now) > 0, fmt.Sprintf("%d NodeClaims, %d of them old", len(now), old), err
		})
		r.oneNodePerClaim()
	}
	r.run("delete", "deployment", "web")
	r.nothingLeft(later)
	if r.JoinerPID() != pid {
		t.Error("Joiner was restarted")
	}
}

// throughDefinition deletes a definition, waits for its end, and installs it again.
func (r *testRig) throughDefinition(name string) {
	r.t.Helper()
	ctx, key := r.t.Context(), client.ObjectKey{Name: name}
	definition := func() *unstructured.Unstructured {
		var o unstructured.Unstructured
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1",
			Kind: "CustomResourceDefinition"})
		o.SetName(name)
		return &o
	}
	old := definition()
	if err := r.Client.Get(ctx, key, old); err != nil {
		r.t.Fatal(err)
	}
	if err := r.Client.Delete(ctx, old); err != nil {
		r.t.Fatal(err)
	}
	r.eventually(later, "the definition "+name+" to go", func(ctx context.Context) (bool, string, error) {
		now := definition()
		err := r.Client.Get(ctx, key, now)
		if apierrors.IsNotFound(err) {
			return true, "", nil
		}
		return false, fmt.Sprint(now.Object["status"]), err
	})
	again := definition()
	again.Object["spec"] = old.Object["spec"]
	if err := r.Client.Create(ctx, again); err != nil {
		r.t.Fatal(err)
	}
	r.eventually(soon, "the definition to be served", func(ctx context.Context) (bool, string, error) {
		output, err := r.Kubectl(ctx, "", "get", name)
		return err == nil, output, nil
	})
}
