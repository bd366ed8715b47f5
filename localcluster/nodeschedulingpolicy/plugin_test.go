package nodeschedulingpolicy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/warning"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kubeoptions "k8s.io/kubernetes/pkg/kubeapiserver/options"

	configv1 "github.com/joiner-autoscaler/joiner/api/openshiftconfig/v1"
	"github.com/joiner-autoscaler/joiner/internal/admission/nodescheduling"
	"github.com/joiner-autoscaler/joiner/internal/admission/nodescheduling/schedulingtest"
	"github.com/joiner-autoscaler/joiner/internal/door"
)

// TestScripts runs the scripts of the evaluator through this door: the words must be the same (the preamble of
// docs/spec/node-scheduling-policy.md).
func TestScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "../../internal/admission/nodescheduling/testdata/scripts", func(t *testing.T, path string) {
		world, function := schedulingtest.NewWorld(), schedulingtest.NewWorld()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			want, err := function.Run(d.Cmd, d.HasArg("text"), d.Input, schedulingtest.Function)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			got, err := world.Run(d.Cmd, d.HasArg("text"), d.Input, ask)
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			if got != want {
				t.Errorf("%s: the plugin says\n%s\nand the evaluator\n%s", d.Pos, got, want)
			}
			return want
		})
	})
}

// ask is the door: a plugin in the world, with objects of internal types as in kube-apiserver.
func ask(w *schedulingtest.World, asked schedulingtest.Asked) (schedulingtest.Answer, error) {
	policy, err := door.NewPolicy(door.PolicyConfig{Sources: w.Sources, Metrics: door.NewMetrics(prometheus.NewRegistry()), Log: logr.Discard(),
		Read: func(context.Context) (*configv1.Scheduler, error) { return w.Sources.Scheduler, nil }})
	if err != nil {
		return schedulingtest.Answer{}, err
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if err := policy.Start(ended); err != nil { // reads once
		return schedulingtest.Answer{}, err
	}
	plugin := newPlugin(nil, nil)
	plugin.policy, plugin.observe = policy, func(nodescheduling.Request, nodescheduling.Verdict) {}
	plugin.took = func(nodescheduling.Request, time.Duration) {}
	plugin.ports = func(context.Context) nodescheduling.Cluster { return w.Cluster() }
	return answer(context.Background(), plugin, asked)
}

// answer sends a request to a plugin and returns what a client and the audit log see.
func answer(ctx context.Context, plugin *Plugin, asked schedulingtest.Asked) (schedulingtest.Answer, error) {
	attributes, err := record(asked)
	if err != nil {
		return schedulingtest.Answer{}, err
	}
	warnings := &heard{}
	err = plugin.Validate(warning.WithWarningRecorder(ctx, warnings), attributes, nil)
	given := schedulingtest.Answer{Allowed: err == nil, Warnings: warnings.texts, Audit: attributes.audit}
	if err != nil {
		if !apierrors.IsForbidden(err) {
			return given, fmt.Errorf("refused with something else than 403: %w", err)
		}
		_, given.Message, _ = strings.Cut(err.Error(), " is forbidden: ")
	}
	return given, nil
}

// recorded are attributes that keep the audit annotations.
type recorded struct {
	admission.Attributes
	audit map[string]string
}

// AddAnnotation implements admission.Attributes.
func (r *recorded) AddAnnotation(key, value string) error {
	short, found := strings.CutPrefix(key, nodescheduling.AuditPrefix+"/")
	if !found {
		return fmt.Errorf("audit annotation %q has no prefix", key)
	}
	if r.audit == nil {
		r.audit = map[string]string{}
	}
	r.audit[short] = value
	return r.Attributes.AddAnnotation(key, value) // which refuses keys that are not qualified names
}

type heard struct{ texts []string }

// AddWarning implements warning.Recorder.
func (h *heard) AddWarning(_, text string) { h.texts = append(h.texts, text) }

func record(asked schedulingtest.Asked) (*recorded, error) {
	given, before := asked.Objects()
	object, err := internal(asked.Group, given)
	old, oldErr := internal(asked.Group, before)
	if err = errors.Join(err, oldErr); err != nil {
		return nil, err
	}
	var options runtime.Object = &metav1.CreateOptions{}
	switch asked.Operation {
	case nodescheduling.Connect:
		options = nil
	case nodescheduling.Update:
		options = &metav1.UpdateOptions{}
	}
	return &recorded{Attributes: admission.NewAttributesRecord(object, old, asked.Object.GetObjectKind().GroupVersionKind(), asked.Namespace, asked.Name,
		schema.GroupVersionResource{Group: asked.Group, Version: "v1", Resource: asked.Resource}, asked.Subresource,
		admission.Operation(asked.Operation), options, asked.DryRun, &user.DefaultInfo{Name: asked.User.Name, Groups: asked.User.Groups})}, nil
}

func internal(group string, object runtime.Object) (runtime.Object, error) {
	if object == nil {
		return nil, nil
	}
	return legacyscheme.Scheme.UnsafeConvertToVersion(object, schema.GroupVersion{Group: group, Version: runtime.APIVersionInternal})
}

const configuration = `{"apiVersion":"scheduling.openshift.io/v1alpha1","kind":"NodeSchedulingPolicyConfig","groups":[
{"name":"ControlPlane","labelSelector":{"matchLabels":{"cp":""}},"mode":"Disable","authorizedUsers":["admin","ops/default"]}]}`

// initialized is a plugin as kube-apiserver makes it, with the node cp1 behind informers that are not started.
func initialized(t *testing.T, file string, on bool, scheduler func() (bool, runtime.Object, error)) (*Plugin, informers.SharedInformerFactory) {
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
	ops := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops"}}
	clients := fake.NewClientset(ops, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp1", Labels: map[string]string{"cp": ""}}})
	factory := informers.NewSharedInformerFactory(clients, 0)
	kinds := runtime.NewScheme()
	if err := configv1.AddToScheme(kinds); err != nil {
		t.Fatal(err)
	}
	schedulers := dynamicfake.NewSimpleDynamicClient(kinds)
	schedulers.PrependReactor("get", "schedulers", func(clienttesting.Action) (bool, runtime.Object, error) { return scheduler() })
	gates := featuregate.NewFeatureGate()
	if err := errors.Join(gates.Add(map[featuregate.Feature]featuregate.FeatureSpec{Feature: {}}), gates.SetFromMap(map[string]bool{string(Feature): on})); err != nil {
		t.Fatal(err)
	}
	plugin.InspectFeatureGates(gates)
	plugin.SetExternalKubeClientSet(clients)
	plugin.SetDynamicClient(schedulers)
	plugin.SetExternalKubeInformerFactory(factory)
	plugin.SetDrainedNotification(t.Context().Done())
	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	return plugin, factory
}

func noScheduler() (bool, runtime.Object, error) {
	return true, nil, apierrors.NewNotFound(schema.GroupResource{}, "cluster")
}

func must(t *testing.T, ctx context.Context, plugin *Plugin, line string) schedulingtest.Answer {
	t.Helper()
	asked, err := schedulingtest.ParseRequest(line)
	if err != nil {
		t.Fatal(err)
	}
	given, err := answer(ctx, plugin, asked)
	if err != nil {
		t.Fatal(err)
	}
	return given
}

// N60, N61: until nodes and Scheduler are known, ordinary pods pass at once and what needs nodes is refused as not yet
// ready, also in a group that the file disables: Scheduler may enable it. Afterwards what Scheduler says holds (N10).
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
	if given := must(t, short, plugin, "alice create pod app/web node=cp1"); given.Allowed || !strings.Contains(given.Message, "[ControlPlane/NodesNotReady]") {
		t.Errorf("what needs nodes: %+v", given)
	}
	factory.Start(t.Context().Done())
	close(known)
	// It waits for both, and then the mode is Disable.
	if given := must(t, t.Context(), plugin, "alice create pod app/web node=cp1"); !given.Allowed || given.Audit != nil {
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
	_, err := fromFile(strings.NewReader(strings.Replace(configuration, "Disable", "Maybe", 1)), prometheus.NewRegistry())
	if err == nil || !strings.Contains(err.Error(), "groups[0].mode") || !strings.Contains(err.Error(), PluginName) {
		t.Errorf("error %v", err)
	}
}

// N1, H18: known to the server, off by default, behind all that changes objects; the lists of other servers stay.
func TestThePluginIsAddedOffByDefault(t *testing.T) {
	t.Parallel()
	before := slices.Clone(kubeoptions.AllOrderedPlugins)
	options := &genericoptions.AdmissionOptions{Plugins: admission.NewPlugins(), RecommendedPluginOrder: kubeoptions.AllOrderedPlugins, DefaultOffPlugins: sets.New("other")}
	known := featuregate.NewFeatureGate()
	if err := AddTo(options, known); err != nil {
		t.Fatal(err)
	}
	order := options.RecommendedPluginOrder
	at := slices.Index(order, PluginName)
	if at < slices.Index(order, "MutatingAdmissionWebhook") || at > slices.Index(order, "ValidatingAdmissionWebhook") {
		t.Errorf("order %v", order)
	}
	if !slices.Equal(before, kubeoptions.AllOrderedPlugins) || len(order) != len(before)+1 {
		t.Error("the list of all servers was changed")
	}
	if !options.DefaultOffPlugins.HasAll(PluginName, "other") || !slices.Contains(options.Plugins.Registered(), PluginName) || known.Enabled(Feature) {
		t.Errorf("off: %v, registered: %v, gate: %t", sets.List(options.DefaultOffPlugins), options.Plugins.Registered(), known.Enabled(Feature))
	}
	if _, found := maps.Collect(maps.All(known.GetAll()))[Feature]; !found {
		t.Error("the gate is not known")
	}
}

// N68: what the plugin adds to the creation of an ordinary pod, and to that of one that a node decides, with 5,000 nodes.
func BenchmarkValidate(b *testing.B) {
	config, err := nodescheduling.Decode([]byte(strings.Replace(configuration, "Disable", "Enable", 1)))
	if err != nil {
		b.Fatal(err)
	}
	policy, err := door.NewPolicy(door.PolicyConfig{Sources: nodescheduling.Sources{Config: config}, Metrics: door.NewMetrics(prometheus.NewRegistry()), Log: logr.Discard(),
		Read: func(context.Context) (*configv1.Scheduler, error) { return nil, nil }})
	if err != nil {
		b.Fatal(err)
	}
	ended, end := context.WithCancel(b.Context())
	end()
	if err := policy.Start(ended); err != nil {
		b.Fatal(err)
	}
	var fleet []*corev1.Node
	for i := range 5000 {
		fleet = append(fleet, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{corev1.LabelHostname: fmt.Sprintf("n%d", i)}}})
	}
	nodes, err := door.FixedNodes(config, fleet)
	if err != nil {
		b.Fatal(err)
	}
	plugin := newPlugin(nil, nil)
	plugin.policy, plugin.observe = policy, func(nodescheduling.Request, nodescheduling.Verdict) {}
	plugin.took = func(nodescheduling.Request, time.Duration) {}
	plugin.ports = door.Ports(nil, nodes, door.Namespaces{}, func() bool { return true })
	for name, line := range map[string]string{"ordinary": "alice create pod app/web", "binding": "alice bind app/web to=n7", "selector": "alice create pod app/web select=disk=ssd"} {
		b.Run(name, func(b *testing.B) {
			asked, err := schedulingtest.ParseRequest(line)
			if err != nil {
				b.Fatal(err)
			}
			attributes, err := record(asked)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := plugin.Validate(b.Context(), attributes, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
