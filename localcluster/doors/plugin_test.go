package doors

import (
	"context"
	"fmt"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	// The conversions from internal types to those of the API. A kube-apiserver has them anyway; a test would not.
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"

	"github.com/joiner-autoscaler/joiner/nodescheduling/door"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
	"github.com/joiner-autoscaler/joiner/nodescheduling/plugin"
	"github.com/joiner-autoscaler/joiner/nodescheduling/plugin/plugintest"
)

// server is a kube-apiserver's: objects of internal types.
var server = plugintest.Server{Interfaces: admission.NewObjectInterfacesFromScheme(legacyscheme.Scheme),
	Internal: func(group string, object runtime.Object) (runtime.Object, error) {
		return legacyscheme.Scheme.UnsafeConvertToVersion(object,
			schema.GroupVersion{Group: group, Version: runtime.APIVersionInternal})
	}}

// TestScripts runs the scripts of the evaluator through this door: the words must be the same (the preamble of
// docs/spec/node-scheduling-policy.md).
func TestScripts(t *testing.T) {
	t.Parallel()
	datadriven.Walk(t, "../../nodescheduling/test/testdata/scripts", func(t *testing.T, path string) {
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
	policy, err := door.NewPolicy(door.PolicyConfig{Sources: w.Sources,
		Metrics: door.NewMetrics(prometheus.NewRegistry()), Log: logr.Discard(),
		Read: func(context.Context) (door.Live, error) {
			return door.Live{Source: w.Sources.Live, Scheduler: w.Sources.Scheduler, Groups: w.Sources.Groups}, nil
		}})
	if err != nil {
		return schedulingtest.Answer{}, err
	}
	ended, end := context.WithCancel(context.Background())
	end()
	if err := policy.Start(ended); err != nil { // reads once
		return schedulingtest.Answer{}, err
	}
	judging := plugin.With(policy, func(context.Context) evaluator.Cluster { return w.Cluster() })
	return server.Send(context.Background(), judging, asked)
}

const configuration = `{"apiVersion":"scheduling.openshift.io/v1alpha1","kind":"NodeSchedulingPolicyConfig","groups":[
{"name":"ControlPlane","labelSelector":{"matchLabels":{"cp":""}},"mode":"Enable","authorizedUsers":["admin","ops/default"]}]}`

// N68: what the plugin adds to the creation of an ordinary pod, and to that of one that a node decides, with 5,000
// nodes.
func BenchmarkValidate(b *testing.B) {
	config, err := evaluator.Decode([]byte(configuration))
	if err != nil {
		b.Fatal(err)
	}
	policy, err := door.NewPolicy(door.PolicyConfig{Sources: evaluator.Sources{Config: config},
		Metrics: door.NewMetrics(prometheus.NewRegistry()), Log: logr.Discard(),
		Read: func(context.Context) (door.Live, error) { return door.Live{}, nil }})
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
		fleet = append(fleet,
			&corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i),
					Labels: map[string]string{corev1.LabelHostname: fmt.Sprintf("n%d", i)}},
			})
	}
	nodes, err := door.FixedNodes(config, fleet)
	if err != nil {
		b.Fatal(err)
	}
	judging := plugin.With(policy, door.Ports(nil, nodes, door.Namespaces{}, func() bool { return true }))
	for name, line := range map[string]string{"ordinary": "alice create pod app/web",
		"binding": "alice bind app/web to=n7", "selector": "alice create pod app/web select=disk=ssd"} {
		b.Run(name, func(b *testing.B) {
			asked, err := schedulingtest.ParseRequest(line)
			if err != nil {
				b.Fatal(err)
			}
			attributes, err := server.Record(asked)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := judging.Validate(b.Context(), attributes, server.Interfaces); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
