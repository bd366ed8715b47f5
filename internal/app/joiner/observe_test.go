package joiner

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/fleet"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// K-26: a process that only observes sends no write, however it is made. Reads go on.
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
		SubResourceCreate: func(context.Context, client.Client, string, client.Object, client.Object,
			...client.SubResourceCreateOption) error {
			note("create of a subresource")
			return nil
		},
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object,
			...client.SubResourceUpdateOption) error {
			note("update of a subresource")
			return nil
		},
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch,
			...client.SubResourcePatchOption) error {
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
			"create": c.Create(ctx, pod.DeepCopy()), "update": c.Update(ctx, pod.DeepCopy()),
			"patch":  c.Patch(ctx, pod.DeepCopy(), merge),
			"delete": c.Delete(ctx, pod.DeepCopy()), "deleteAllOf": c.DeleteAllOf(ctx, pod.DeepCopy()),
			"status":           c.Status().Patch(ctx, pod.DeepCopy(), merge),
			"update of status": c.Status().Update(ctx, pod.DeepCopy()),
			"evict":            c.SubResource("eviction").Create(ctx, pod.DeepCopy(), pod.DeepCopy()),
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
	for method, passes := range map[string]bool{"GET": true, "HEAD": true, "POST": false, "PUT": false, "PATCH": false,
		"DELETE": false} {
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

// observer returns the observer of a process, which adds what it logs to told.
func (s *stage) observer(told *[]string) *observer {
	return &observer{
		client: s.server, kinds: []client.Object{&karpenterv1.NodePool{}, &karpenterv1.NodeClaim{}, &corev1.Node{},
			&corev1.Pod{}},
		store: s.parts.standing.picture.(*world.Store), fleet: s.parts.standing.fleet.(*fleet.Fleet),
		standing: s.parts.standing, settings: s.parts.standing.settings, metrics: s.parts.metrics.Own.Observed,
		now: s.clock.Now, log: funcr.New(func(_, args string) { *told = append(*told, args) }, funcr.Options{}),
	}
}

// K-26: where the cluster would come to rest goes by the settings of the process: nobody acts on the replicas of a
// static pool whose gate is off, and minValues holds, or not. The nodes that would come have their price.
func TestK26_RestGoesByTheSettings(t *testing.T) {
	t.Parallel()
	static := manifests()[:2]
	two := int64(2)
	static[1].(*karpenterv1.NodePool).Spec.Replicas = &two
	many, choosy := 50, manifests()
	template := &choosy[1].(*karpenterv1.NodePool).Spec.Template.Spec
	template.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{{Key: corev1.LabelTopologyZone,
		Operator: corev1.NodeSelectorOpExists, MinValues: &many}}
	for name, c := range map[string]struct {
		objects []client.Object
		picture world.Config
		nodes   string
	}{
		"static":              {static, world.Config{}, `"nodes"=2 `},
		"static, and off":     {static, world.Config{Off: world.Off{Static: true}}, `"nodes"=0 `},
		"minValues":           {choosy, world.Config{}, `"nodes"=0 `},
		"minValues, and less": {choosy, world.Config{RelaxMinValues: true}, `"nodes"=1 `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var objects []client.Object
			for _, o := range c.objects {
				objects = append(objects, o.DeepCopyObject().(client.Object))
			}
			s := newStage(t, objects...)
			s.run(Pools, "default")
			s.tell()
			var told []string
			o := s.observer(&told)
			o.picture = c.picture
			if err := o.rest(t.Context()); err != nil || len(told) != 1 || !strings.Contains(told[0], c.nodes) ||
				!strings.Contains(told[0], `"atRest"=true`) {
				t.Errorf("at rest: %q, error %v, want %s", told, err, c.nodes)
			}
			free := strings.Contains(strings.Join(told, ""), `"pricePerHour"=0 `)
			if free != (c.nodes == `"nodes"=0 `) {
				t.Errorf("at rest: %q, want the price of the nodes", told)
			}
		})
	}
}

// K-26: a launch is reported once for its pods, and a removal once for as long as it stands. The state in which all of
// it would end is shown.
func TestK26_WhatWouldBeDoneIsToldOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t, manifests()...)
	s.run(Pools, "default")
	s.tell()
	var told []string
	o := s.observer(&told)
	says := func(what string, times int) {
		t.Helper()
		got := 0
		for _, line := range told {
			if strings.Contains(line, `"msg"="`+what+`"`) {
				got++
			}
		}
		if got != times {
			t.Errorf("%q was told %d times, want %d:\n%s", what, got, times, strings.Join(told, "\n"))
		}
	}
	o.launches()
	o.launches()
	says("would launch", 1)
	if err := s.server.Create(t.Context(), pending("db")); err != nil {
		t.Fatal(err)
	}
	s.tell()
	o.launches()
	says("would launch", 2) // the plan has another pod now
	if err := o.rest(t.Context()); err != nil {
		t.Fatal(err)
	}
	says("would come to rest", 1)
	if last := told[len(told)-1]; !strings.Contains(last, `"nodes"=1 `) || !strings.Contains(last, `"atRest"=true`) {
		t.Errorf("at rest: %s, want one node", last)
	}
	var claims karpenterv1.NodeClaimList
	if err := s.server.List(t.Context(), &claims); err != nil || len(claims.Items) != 0 {
		t.Errorf("%d NodeClaims were made (%v)", len(claims.Items), err)
	}

	// Pods are gathered for a moment before they are planned for.
	plans, ready := 0, false
	p := &pendingPods{now: s.clock.Now, ready: func() bool { return ready }, tell: func() { plans++ }}
	for _, step := range []struct {
		pass  time.Duration
		ready bool
		plans int
		again time.Duration
	}{{0, false, 0, gather}, {0, true, 0, gather}, {gather / 2, true, 0, gather / 2}, {gather / 2, true, 1, 0},
		{0, true, 1, gather}} {
		s.clock.Advance(step.pass)
		ready = step.ready
		result, err := p.Reconcile(t.Context(), reconcile.Request{})
		if err != nil || plans != step.plans || result.RequeueAfter != step.again {
			t.Errorf("after %s: %d plans, again after %s (%v); want %d, %s", step.pass, plans, result.RequeueAfter,
				err, step.plans, step.again)
		}
	}
}
