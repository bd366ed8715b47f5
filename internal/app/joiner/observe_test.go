package joiner

import (
	"context"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// K-26: nothing that is written leaves a process that only observes, whichever way it is written, and what reads goes on.
func TestK26_NothingIsSent(t *testing.T) {
	t.Parallel()
	sent := []string{}
	note := func(what string) { sent = append(sent, what) }
	hooks := interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			note("create")
			return nil
		},
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			note("update")
			return nil
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			note("delete")
			return nil
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			note("patch")
			return nil
		},
		DeleteAllOf: func(context.Context, client.WithWatch, client.Object, ...client.DeleteAllOfOption) error {
			note("deleteAllOf")
			return nil
		},
		SubResourceCreate: func(context.Context, client.Client, string, client.Object, client.Object, ...client.SubResourceCreateOption) error {
			note("create of a subresource")
			return nil
		},
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			note("update of a subresource")
			return nil
		},
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			note("patch of a subresource")
			return nil
		},
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
	under := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(pod).WithInterceptorFuncs(hooks).Build()
	for _, c := range []client.Client{under, onlooker{under}} {
		sent = nil
		ctx, merge := t.Context(), client.RawPatch("application/merge-patch+json", []byte(`{}`))
		for what, err := range map[string]error{
			"create": c.Create(ctx, pod.DeepCopy()), "update": c.Update(ctx, pod.DeepCopy()), "patch": c.Patch(ctx, pod.DeepCopy(), merge),
			"delete": c.Delete(ctx, pod.DeepCopy()), "deleteAllOf": c.DeleteAllOf(ctx, pod.DeepCopy()),
			"status": c.Status().Patch(ctx, pod.DeepCopy(), merge), "update of status": c.Status().Update(ctx, pod.DeepCopy()),
			"evict": c.SubResource("eviction").Create(ctx, pod.DeepCopy(), pod.DeepCopy()),
		} {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		want := 8
		if _, observes := c.(onlooker); observes {
			want = 0
		}
		if len(sent) != want {
			t.Errorf("%T sends %d writes, want %d: %v", c, len(sent), want, sent)
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(pod), &corev1.Pod{}); err != nil {
			t.Errorf("%T does not read: %v", c, err)
		}
	}
}

// K-26: below every client, only requests that read pass.
func TestK26_OnlyReadsPass(t *testing.T) {
	t.Parallel()
	config := &rest.Config{}
	came := 0
	config.Wrap(func(http.RoundTripper) http.RoundTripper { return counts(func() { came++ }) })
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return readsOnly{next} })
	transport := config.WrapTransport(http.DefaultTransport)
	for method, passes := range map[string]bool{"GET": true, "HEAD": true, "POST": false, "PUT": false, "PATCH": false, "DELETE": false} {
		came = 0
		r, err := http.NewRequestWithContext(t.Context(), method, "http://api/api/v1/pods", nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = transport.RoundTrip(r)
		if (came == 1) != passes || (err == nil) != passes {
			t.Errorf("%s: passes %t, error %v; want %t", method, came == 1, err, passes)
		}
		if !passes && (err == nil || !strings.Contains(err.Error(), "only observes")) {
			t.Errorf("%s: error %v, want it to say why", method, err)
		}
	}
}

type counts func()

func (c counts) RoundTrip(*http.Request) (*http.Response, error) {
	c()
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}
