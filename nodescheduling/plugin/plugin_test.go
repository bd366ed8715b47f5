package plugin

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/featuregate"

	"github.com/joiner-autoscaler/joiner/nodescheduling/door/doortest"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
	"github.com/joiner-autoscaler/joiner/nodescheduling/plugin/plugintest"
)

// external are the interfaces of a server whose internal types are those of the API: this module has no others. The
// real ones are in localcluster/doors.
type external struct {
	admission.ObjectInterfaces
	runtime.ObjectConvertor
}

// GetObjectConvertor implements admission.ObjectInterfaces.
func (e external) GetObjectConvertor() runtime.ObjectConvertor { return e }

// Convert implements runtime.ObjectConvertor.
func (external) Convert(in, out, _ any) error {
	if reflect.TypeOf(in) != reflect.TypeOf(out) {
		return fmt.Errorf("%T is no %T", in, out)
	}
	reflect.ValueOf(out).Elem().Set(reflect.ValueOf(in).Elem())
	return nil
}

const configuration = `{"apiVersion":"scheduling.openshift.io/v1alpha1","kind":"NodeSchedulingPolicyConfig","groups":[
{"name":"ControlPlane","labelSelector":{"matchLabels":{"cp":""}},"mode":"Disable","authorizedUsers":["admin","ops/default"]}]}`

// initialized is a plugin as kube-apiserver makes it, with the node cp1 behind informers that are not started.
func initialized(t *testing.T, file string, on bool,
	scheduler func() (bool, runtime.Object, error)) (*Plugin, informers.SharedInformerFactory) {
	t.Helper()
	ops := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops"}}
	clients := fake.NewClientset(ops,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp1", Labels: map[string]string{"cp": ""}}})
	return initializedWith(t, clients, file, on, scheduler)
}

// initializedWith is initialized in a cluster of these clients.
func initializedWith(t *testing.T, clients *fake.Clientset, file string, on bool,
	scheduler func() (bool, runtime.Object, error)) (*Plugin, informers.SharedInformerFactory) {
	t.Helper()
	var plugin *Plugin
	var err error
	if file == "" {
		plugin, err = fromFile(nil, prometheus.NewRegistry())
	} else {
		plugin, err = fromFile(strings.NewReader(file), prometheus.NewRegistry())
	}
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactory(clients, 0)
	server := &doortest.Server{Spec: doortest.WithField}
	schedulers := server.Dynamic()
	schedulers.PrependReactor("get", "schedulers", func(clienttesting.Action) (bool, runtime.Object, error) {
		return scheduler()
	})
	gates := featuregate.NewFeatureGate()
	if err := errors.Join(gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{Feature: {}}),
		gates.SetFromMap(map[string]bool{string(Feature): on})); err != nil {
		t.Fatal(err)
	}
	plugin.InspectFeatureGates(gates)
	plugin.SetExternalKubeClientSet(server.Clients(clients))
	plugin.SetDynamicClient(schedulers)
	plugin.SetExternalKubeInformerFactory(factory)
	plugin.SetDrainedNotification(t.Context().Done())
	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	return plugin, factory
}

func noScheduler() (bool, runtime.Object, error) {
	return true, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "schedulers"}, "cluster")
}

func must(t *testing.T, ctx context.Context, plugin *Plugin, line string) schedulingtest.Answer {
	t.Helper()
	asked, err := schedulingtest.ParseRequest(line)
	if err != nil {
		t.Fatal(err)
	}
	given, err := plugintest.Server{Interfaces: external{}}.Send(ctx, plugin, asked)
	if err != nil {
		t.Fatal(err)
	}
	return given
}

// N60, N61: until nodes and Scheduler are known, ordinary pods pass at once. Requests that need nodes are refused as
// not yet ready, even in a group that the file disables, since Scheduler may enable it. Afterwards Scheduler's content
// holds (N10).
func TestWhatNeedsNodesWaitsForThem(t *testing.T) {
	t.Parallel()
	known := make(chan struct{})
	plugin, factory := initialized(t, configuration, true, func() (bool, runtime.Object, error) {
		select {
		case <-known:
			return noScheduler()
		default:
			return true, nil, errors.New("no answer yet")
		}
	})
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if given := must(t, short, plugin, "alice create pod app/web"); !given.Allowed {
		t.Errorf("an ordinary pod: %s", given.Message)
	}
	if given := must(t, short, plugin, "admin create pod ops/web node=cp1"); !given.Allowed {
		t.Errorf("an authorized pair: %s", given.Message)
	}
	if given := must(t, short, plugin, "alice create pod app/web node=cp1"); given.Allowed ||
		!strings.Contains(given.Message, "[ControlPlane/NodesNotReady]") {
		t.Errorf("what needs nodes: %+v", given)
	}
	factory.Start(t.Context().Done())
	close(known)
	// It waits for both, and then the mode is Disable.
	if given := must(t, t.Context(), plugin, "alice create pod app/web node=cp1"); !given.Allowed ||
		given.Audit != nil {
		t.Errorf("mode Disable: %+v", given)
	}
}

// N4, N5: without a configuration, and without the gate, nothing is judged and nothing is asked.
func TestThePluginIsInertUnlessConfiguredAndEnabled(t *testing.T) {
	t.Parallel()
	enabled := strings.Replace(configuration, "Disable", "Enable", 1)
	for name, test := range map[string]struct {
		file string
		on   bool
		deny bool
	}{"no configuration": {"", true, false}, "no gate": {enabled, false, false}, "both": {enabled, true, true}} {
		plugin, factory := initialized(t, test.file, test.on, noScheduler)
		factory.Start(t.Context().Done())
		if given := must(t, t.Context(), plugin, "alice create pod app/web node=cp1"); given.Allowed == test.deny {
			t.Errorf("%s: %+v", name, given)
		}
	}
}

// N2: a wrong configuration is an error, of which the server dies.
func TestAWrongConfigurationStartsNothing(t *testing.T) {
	t.Parallel()
	_, err := fromFile(strings.NewReader(strings.Replace(configuration, "Disable", "Maybe", 1)),
		prometheus.NewRegistry())
	if err == nil || !strings.Contains(err.Error(), "groups[0].mode") || !strings.Contains(err.Error(), PluginName) {
		t.Errorf("error %v", err)
	}
}

// known to the server under its name, and judged without it only where the server brings no conversion: that is
// refused where a pod aims at the group, and no panic.
func TestA35_ThePluginIsRegistered(t *testing.T) {
	t.Parallel()
	plugins := admission.NewPlugins()
	Register(plugins)
	if !slices.Equal(plugins.Registered(), []string{PluginName}) {
		t.Errorf("registered: %v", plugins.Registered())
	}
	plugin, factory := initialized(t, strings.Replace(configuration, "Disable", "Enable", 1), true, noScheduler)
	factory.Start(t.Context().Done())
	asked, err := schedulingtest.ParseRequest("alice create pod app/web node=cp1")
	if err != nil {
		t.Fatal(err)
	}
	given, err := plugintest.Server{}.Send(t.Context(), plugin, asked)
	if err != nil || given.Allowed || !strings.Contains(given.Message, "brought no conversion") {
		t.Errorf("without a conversion: %+v (%v)", given, err)
	}
}

// A-18, N70: the plugin is asked about NodeSchedulingGroups, too, which a server has as objects without a type.
func TestA18_ThePluginRefusesEnableWhileMastersAreSchedulable(t *testing.T) {
	t.Parallel()
	plugin, _ := initialized(t, configuration, true, func() (bool, runtime.Object, error) {
		return true, doortest.Scheduler("1", map[string]any{"mastersSchedulable": true}), nil
	})
	inert, _ := initialized(t, configuration, false, noScheduler)
	for mode, refused := range map[string]bool{"Enable": true, "Inform": false} {
		object := doortest.Group("1", mode)
		version := object.GroupVersionKind().GroupVersion()
		attributes := admission.NewAttributesRecord(object, nil, object.GroupVersionKind(), "", object.GetName(),
			version.WithResource("nodeschedulinggroups"), "", admission.Create, &metav1.CreateOptions{}, false, nil)
		err := plugin.Validate(t.Context(), attributes, external{})
		if refused != apierrors.IsForbidden(err) || refused && !strings.Contains(err.Error(),
			"[ControlPlane/MastersSchedulable]") || !refused && err != nil {
			t.Errorf("mode %s: %v", mode, err)
		}
		if err := inert.Validate(t.Context(), attributes, external{}); err != nil {
			t.Errorf("without the gate, mode %s: %v", mode, err)
		}
	}
}

// the plugin writes the annotation once it knows the nodes and Scheduler, into creations of pods only, and
// keeps what stands beside it. Before that it writes nothing, and the pod is refused as not yet ready. Without the
// gate it writes nothing at all.
func TestA42_ThePluginWritesTheOverride(t *testing.T) {
	t.Parallel()
	automatic := strings.NewReplacer("Disable", "Enable", `"groups":[`, `"emergencyOverride":"Automatic","groups":[`).
		Replace(configuration)
	const line = "admin create pod tmp/debug node=cp1 annotation=a=b"
	known := make(chan struct{})
	plugin, factory := initialized(t, automatic, true, func() (bool, runtime.Object, error) {
		select {
		case <-known:
			return noScheduler()
		default:
			return true, nil, errors.New("no answer yet")
		}
	})
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if given := must(t, short, plugin, line); given.Allowed || !strings.Contains(given.Message, "NodesNotReady") {
		t.Errorf("before it knows the cluster: %+v", given)
	}
	factory.Start(t.Context().Done())
	close(known)
	if given := must(t, t.Context(), plugin, line); !given.Allowed || given.Audit["override"] != "automatic: admin" {
		t.Errorf("by an administrator: %+v", given)
	}
	for _, other := range []string{"admin create pod/status tmp/debug node=cp1", "admin update pod tmp/debug node=cp1",
		"admin create deployment tmp/debug node=cp1", "alice create pod tmp/debug node=cp1"} {
		asked, err := schedulingtest.ParseRequest(other)
		if err != nil {
			t.Fatal(err)
		}
		attributes, err := plugintest.Server{}.Record(asked)
		if err != nil {
			t.Fatal(err)
		}
		err = plugin.Admit(t.Context(), attributes, external{})
		if annotations := asked.Object.GetAnnotations(); err != nil || len(annotations) > 0 {
			t.Errorf("%s: %v, %v", other, annotations, err)
		}
	}
	asked, err := schedulingtest.ParseRequest(line)
	if err != nil {
		t.Fatal(err)
	}
	off, _ := initialized(t, automatic, false, noScheduler)
	for one, want := range map[*Plugin]int{plugin: 2, off: 1} {
		attributes, err := plugintest.Server{}.Record(asked)
		if err != nil {
			t.Fatal(err)
		}
		attributes.GetObject().(*corev1.Pod).Annotations = map[string]string{"a": "b"}
		err = one.Admit(t.Context(), attributes, external{})
		if got := attributes.GetObject().(*corev1.Pod).Annotations; err != nil || len(got) != want || got["a"] != "b" {
			t.Errorf("the pod has %v (%v), want %d annotations", got, err, want)
		}
	}
}
