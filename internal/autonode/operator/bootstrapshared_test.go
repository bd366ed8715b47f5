package operator_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

// secretOf is what nodes of a class start with.
func secretOf(class, content string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "user-data-" + class,
		Labels:      map[string]string{"hypershift.openshift.io/managed-by-karpenter": "true"},
		Annotations: map[string]string{"hypershift.openshift.io/nodePool": "clusters/" + class + "-karpenter"}},
		Data: map[string][]byte{"value": []byte(content)}}
}

// The guest's users have as many node classes as they like. The Secrets of all are listed together, every two seconds
// at most, however many wait for theirs. The management cluster serves others too.
func TestManyNodeClassesAskForTheirSecretsTogether(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil, secretOf("class-0", "boot"))
	asked, answer := 0, error(nil)
	meanwhile := func() {}
	management := operator.ManagementClientOf(interceptor.NewClient(s.management, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList,
			options ...client.ListOption) error {
			asked++
			then := meanwhile
			meanwhile = func() {}
			then()
			if answer != nil {
				return answer
			}
			return c.List(ctx, list, options...)
		}}), namespace)
	look := operator.BootstrapFromSecrets(management, s.clock.Now)
	starts := func(class, release, want string, lists int) {
		t.Helper()
		asked = 0
		got, err := look(t.Context(), class, release)
		text := ""
		if got != nil {
			text = got.UserData
		}
		if err != nil {
			text = err.Error()
		}
		if text != want || asked != lists {
			t.Errorf("%s of release %q starts with %q, asked %d times; want %q, asked %d times", class, release, text,
				asked, want, lists)
		}
	}
	starts("class-0", "", "boot", 1)
	for i := range 99 {
		starts(fmt.Sprintf("class-%d", i+1), "", "", 0)
	}
	s.must(s.management.Create(t.Context(), secretOf("class-1", "boot 1")))
	starts("class-1", "", "", 0)
	s.clock.Advance(2 * time.Second)
	starts("class-1", "", "boot 1", 1)
	// once HyperShift says that a release is there, an answer from before does not count.
	changed := secretOf("class-1", "boot 2")
	s.must(s.management.Delete(t.Context(), changed))
	s.must(s.management.Create(t.Context(), changed))
	starts("class-1", "", "boot 1", 0)
	starts("class-1", "4.21.0", "boot 2", 1)
	starts("class-1", "4.21.0", "boot 2", 0)
	// While one asks, the others take what is known, if it is not old.
	s.clock.Advance(9 * time.Second)
	meanwhile = func() {
		before := asked
		if got, err := look(t.Context(), "class-0", ""); err != nil || got == nil || asked != before {
			t.Errorf("%v, error %v, asked %d times more", got, err, asked-before)
		}
	}
	starts("class-1", "", "boot 2", 1)
	s.clock.Advance(10 * time.Second)
	meanwhile = func() {
		if got, err := look(t.Context(), "class-0", ""); err != nil || got == nil {
			t.Errorf("%v, error %v", got, err)
		}
	}
	starts("class-1", "", "boot 2", 2)
	s.clock.Advance(2 * time.Second)
	answer = errBusy
	refused := "listing the user data Secrets of namespace " + namespace + ": " + errBusy.Error()
	starts("class-0", "", refused, 1)
	starts("class-1", "", refused, 0)
}
