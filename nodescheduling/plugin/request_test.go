package plugin

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/joiner-autoscaler/joiner/nodescheduling/door"
	"github.com/joiner-autoscaler/joiner/nodescheduling/door/doortest"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
	"github.com/joiner-autoscaler/joiner/nodescheduling/plugin/plugintest"
)

// a server gets a plugin of the configuration, which is asked about what can place or enter a pod; what it
// counts is among the server's own metrics.
func TestA35_AServerMakesThePlugin(t *testing.T) {
	t.Parallel()
	plugins := admission.NewPlugins()
	Register(plugins)
	made, err := plugins.InitPlugin(PluginName, strings.NewReader(configuration), admission.PluginInitializers{})
	if err != nil || made == nil {
		t.Fatalf("%v (%v)", made, err)
	}
	for operation, handled := range map[admission.Operation]bool{admission.Create: true, admission.Update: true,
		admission.Connect: true, admission.Delete: false} {
		if made.Handles(operation) != handled {
			t.Errorf("%s is handled: %t", operation, !handled)
		}
	}
	kubeRegistry{}.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "joiner_test_of_registry"}))
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "joiner_test_of_registry" {
			return
		}
	}
	t.Error("what the plugin registers is not shown")
}

// automatic is a plugin in a world whose policy writes overrides, and the deadlines that its ports had.
func automatic(t *testing.T) (*Plugin, *[]time.Duration) {
	t.Helper()
	w := schedulingtest.NewWorld()
	if _, err := w.Run("cluster", false, "group ControlPlane select=cp mode=Enable users=admin\nnode cp1 labels=cp\n"+
		"override Automatic", nil); err != nil {
		t.Fatal(err)
	}
	policy, err := door.NewPolicy(door.PolicyConfig{Sources: w.Sources,
		Metrics: door.NewMetrics(prometheus.NewRegistry()), Log: logr.Discard(),
		Read: func(context.Context) (door.Live, error) { return door.Live{}, nil }})
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := policy.Start(ended); err != nil { // reads once
		t.Fatal(err)
	}
	var left []time.Duration
	return With(policy, func(ctx context.Context) evaluator.Cluster {
		deadline, _ := ctx.Deadline()
		left = append(left, time.Until(deadline))
		return w.Cluster()
	}), &left
}

// N60: a request waits as long as for the caches of every plugin, when it is changed and when it is judged.
func TestN60_TheDeadlineIsThatOfEveryPlugin(t *testing.T) {
	t.Parallel()
	p, left := automatic(t)
	if given := must(t, t.Context(), p, "admin create pod tmp/debug node=cp1"); !given.Allowed {
		t.Errorf("%+v", given)
	}
	if len(*left) != 2 {
		t.Fatalf("asked %d times, want to change and to judge", len(*left))
	}
	for _, got := range *left {
		if got > 10*time.Second || got < 8*time.Second {
			t.Errorf("%s left, want 10 s", got)
		}
	}
}

// converting fails when something is converted.
type converting struct {
	external
	t *testing.T
}

// GetObjectConvertor implements admission.ObjectInterfaces.
func (c converting) GetObjectConvertor() runtime.ObjectConvertor {
	c.t.Error("an object was converted for nothing")
	return c.external
}

// A-42, N68: what the plugin cannot write into costs nothing: all of a cluster's requests pass here.
func TestA42_OnlyNewPodsAreReadForTheOverride(t *testing.T) {
	t.Parallel()
	writes, _ := automatic(t)
	plain, _ := initialized(t, configuration, true, noScheduler)
	for _, c := range []struct {
		plugin *Plugin
		line   string
	}{
		{writes, "admin create pod/status tmp/debug node=cp1"}, {writes, "admin update pod tmp/debug node=cp1"},
		{writes, "admin create deployment tmp/debug node=cp1"}, {writes, "admin bind tmp/debug to=cp1"},
		{plain, "admin create pod tmp/debug node=cp1"},
	} {
		if err := c.plugin.Admit(t.Context(), recordOf(t, c.line), converting{t: t}); err != nil {
			t.Errorf("%s: %v", c.line, err)
		}
	}
}

func recordOf(t *testing.T, line string) admission.Attributes {
	t.Helper()
	asked, err := schedulingtest.ParseRequest(line)
	if err != nil {
		t.Fatal(err)
	}
	attributes, err := plugintest.Server{}.Record(asked)
	if err != nil {
		t.Fatal(err)
	}
	return attributes
}

// pods makes a pod on cp1 of whatever it is given.
type pods struct{ external }

// GetObjectConvertor implements admission.ObjectInterfaces.
func (p pods) GetObjectConvertor() runtime.ObjectConvertor { return p }

// Convert implements runtime.ObjectConvertor.
func (pods) Convert(_, out, _ any) error {
	if pod, is := out.(*corev1.Pod); is {
		pod.Spec.NodeName = "cp1"
	}
	return nil
}

// attributes are those of a pod's creation by admin, with any object; who sent it may be unknown.
func attributes(object runtime.Object) admission.Attributes {
	return admission.NewAttributesRecord(object, nil, corev1.SchemeGroupVersion.WithKind("Pod"), "tmp", "debug",
		corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, &metav1.CreateOptions{}, true, nil)
}

// what has no annotations cannot get one, and that is said.
func TestA42_WhatHasNoAnnotationsIsRefused(t *testing.T) {
	t.Parallel()
	p, _ := automatic(t)
	to := recordOf(t, "admin create pod tmp/debug node=cp1")
	status := admission.NewAttributesRecord(&metav1.Status{}, nil, to.GetKind(), "tmp", "debug", to.GetResource(), "",
		admission.Create, &metav1.CreateOptions{}, false, to.GetUserInfo())
	if err := p.Admit(t.Context(), status, pods{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(),
		"the annotation "+evaluator.OverrideAnnotation+" cannot be written: ") {
		t.Errorf("%v", err)
	}
}

// N36, N59: a request is read with its dry run; one that nobody is known to have sent is that of nobody; an object of
// another type than its resource is a fault, which is stated.
func TestWhatIsReadOfARequest(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "debug"}}
	request, relevant := toRequest(attributes(pod), external{})
	if !relevant || !request.DryRun || request.User.Name != "" || request.Pod == nil || request.Fault != "" {
		t.Errorf("%t %+v", relevant, request)
	}
	request, relevant = toRequest(attributes(&corev1.Node{}), external{})
	if !relevant || request.Pod != nil || !strings.Contains(request.Fault, "*v1.Node is no *v1.Pod") {
		t.Errorf("%t %+v", relevant, request)
	}
	if request, relevant = toRequest(recordOf(t, "alice create configmap tmp/x"), converting{t: t}); relevant ||
		request.Name != "" {
		t.Errorf("%t %+v", relevant, request)
	}
}

// N66, N68: what the evaluator looks at is told to those who watch, once; the rest is not judged.
func TestN66_WhoWatchesIsTold(t *testing.T) {
	t.Parallel()
	p, _ := automatic(t)
	var took []time.Duration
	var observed []evaluator.Verdict
	p.took = func(_ evaluator.Request, d time.Duration) { took = append(took, d) }
	p.observe = func(_ evaluator.Request, v evaluator.Verdict) { observed = append(observed, v) }
	for line, want := range map[string]int{"alice create configmap tmp/x": 0, "alice create pod tmp/x node=cp1": 1} {
		took, observed = nil, nil
		if given := must(t, t.Context(), p, line); given.Allowed == (want == 1) {
			t.Errorf("%s: %+v", line, given)
		}
		if len(took) != want || len(observed) != want || want == 1 && (took[0] <= 0 || observed[0].Allowed) {
			t.Errorf("%s: took %v, observed %+v", line, took, observed)
		}
	}
}

// A-18, N70: an object of another kind that has a mode is none of the policy's.
func TestA18_OnlyNodeSchedulingGroupsHaveAMode(t *testing.T) {
	t.Parallel()
	p, _ := initialized(t, configuration, true, func() (bool, runtime.Object, error) {
		return true, doortest.Scheduler("1", map[string]any{"mastersSchedulable": true}), nil
	})
	object := doortest.Group("1", "Enable")
	version := object.GroupVersionKind().GroupVersion()
	for _, resource := range []struct{ name, subresource string }{{"others", ""}, {"nodeschedulinggroups", "status"}} {
		given := admission.NewAttributesRecord(object, nil, object.GroupVersionKind(), "", object.GetName(),
			version.WithResource(resource.name), resource.subresource, admission.Create, &metav1.CreateOptions{},
			false, nil)
		if err := p.Validate(t.Context(), given, external{}); err != nil {
			t.Errorf("%+v: %v", resource, err)
		}
	}
}
