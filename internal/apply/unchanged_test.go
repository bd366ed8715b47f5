package apply_test

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/go-logr/logr"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
	"github.com/joiner-autoscaler/joiner/internal/engine/limit"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
)

// D-10: a removal deletes only the claim that was judged: by its UID, since slots are reused, and only if nothing was
// written to it since. A changed or deleted claim is judged again, and is no error.
func TestARemovalDeletesOnlyWhatWasJudged(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(*apply.Applier, context.Context, plan.Remove, string) (bool, error){
		"marked": func(a *apply.Applier, ctx context.Context, r plan.Remove, _ string) (bool, error) {
			return a.Delete(ctx, r)
		},
		"trimmed": func(a *apply.Applier, ctx context.Context, r plan.Remove, version string) (bool, error) {
			return a.DeleteUnchanged(ctx, r, version)
		},
	} {
		claims := schema.GroupResource{Resource: "nodeclaims"}
		for _, answer := range []error{
			nil, apierrors.NewConflict(claims, "c1", errors.New("it was changed")),
			apierrors.NewNotFound(claims, "c1"), apierrors.NewInternalError(errors.New("no answer")),
		} {
			claim, node, remove := markable()
			var asked client.DeleteOptions
			r := newRig(t, limit.Unlimited(), interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, o client.Object,
					options ...client.DeleteOption) error {
					asked.ApplyOptions(options)
					if answer != nil {
						return answer
					}
					return c.Delete(ctx, o, options...)
				},
			}, claim, node)
			if marked, err := r.applier.Mark(t.Context(), remove); err != nil || !marked {
				t.Fatalf("marked %t, error %v", marked, err)
			}
			var judged karpenterv1.NodeClaim
			if err := r.server.Get(t.Context(), client.ObjectKey{Name: "c1"}, &judged); err != nil {
				t.Fatal(err)
			}
			deleted, err := act(r.applier, t.Context(), remove, judged.ResourceVersion)
			if deleted != (answer == nil) || (err != nil) != apierrors.IsInternalError(answer) {
				t.Errorf("%s, answer %v: deleted %t, error %v", name, answer, deleted, err)
			}
			if asked.Preconditions == nil || asked.Preconditions.UID == nil || *asked.Preconditions.UID != "c1-uid" {
				t.Errorf("%s: preconditions %+v, want the UID of the claim that was judged", name, asked.Preconditions)
			}
			if asked.Preconditions == nil || asked.Preconditions.ResourceVersion == nil ||
				*asked.Preconditions.ResourceVersion != judged.ResourceVersion {
				t.Errorf("%s: preconditions %+v, want the resourceVersion %s that was judged", name,
					asked.Preconditions, judged.ResourceVersion)
			}
		}
	}
}

// D-10: a failure to write or remove an intent is returned; nothing is left half done silently.
func TestNoFailureOfARemovalIsSwallowed(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		claim, node, remove := markable()
		r := newRig(t, limit.Unlimited(), interceptor.Funcs{}, claim, node)
		server := f.Wrap(r.server)
		applier := apply.New(apply.Config{
			Client: server, Live: server, Store: r.store, Fleet: controllertest.Everything{},
			Now: controllertest.Start, Log: logr.Discard(),
		})
		return func() error {
			if marked, err := applier.Mark(t.Context(), remove); err != nil || !marked {
				return err
			}
			if err := applier.Undo(t.Context(), remove); err != nil {
				return err
			}
			if marked, err := applier.Mark(t.Context(), remove); err != nil || !marked {
				return err
			}
			deleted, err := applier.Delete(t.Context(), remove)
			if err == nil && !deleted {
				t.Error("the claim was not deleted")
			}
			return err
		}
	})
}
