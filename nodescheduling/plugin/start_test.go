package plugin

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// until polls for what other goroutines do.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true,
		func(context.Context) (bool, error) { return done(), nil }); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// N4, A-35: a plugin without a configuration asks a server for no objects; one with it asks for nodes and namespaces.
func TestN4_OnlyAConfiguredPluginAsksForObjects(t *testing.T) {
	t.Parallel()
	for file, want := range map[string][]string{"": nil, configuration: {"*v1.Namespace", "*v1.Node"}} {
		_, factory := initialized(t, file, false, noScheduler)
		factory.Start(t.Context().Done())
		var asked []string
		for kind := range maps.Keys(factory.WaitForCacheSync(t.Context().Done())) {
			asked = append(asked, kind.String())
		}
		if slices.Sort(asked); !slices.Equal(asked, want) {
			t.Errorf("configured %t: asked for %v, want %v", file != "", asked, want)
		}
	}
}

// N61: a server that does not give the plugin what it needs does not start, and reads what is missing.
func TestN61_WhatAServerLacksIsSaid(t *testing.T) {
	t.Parallel()
	for want, take := range map[string]func(*Plugin){
		"a client": func(p *Plugin) { p.clients = nil }, "a dynamic client": func(p *Plugin) { p.dynamic = nil },
		"nodes": func(p *Plugin) { p.nodes = nil }, "a notification of the end": func(p *Plugin) { p.drained = nil },
	} {
		p, _ := initialized(t, configuration, false, noScheduler)
		p.enabled = true
		take(p)
		if err := p.ValidateInitialization(); err == nil || err.Error() != PluginName+" was not given "+want ||
			p.policy != nil {
			t.Errorf("without %s: %v", want, err)
		}
	}
}

// N2: what the plugin cannot begin with is an error, of which the server dies: nodes whose informer has ended, a
// configuration that makes no policy.
func TestN2_WhatCannotStartIsAnError(t *testing.T) {
	t.Parallel()
	p, factory := initialized(t, configuration, false, noScheduler)
	ended, end := context.WithCancel(t.Context())
	factory.Start(ended.Done())
	factory.WaitForCacheSync(t.Context().Done())
	end()
	until(t, "the informer ends", func() bool { return factory.Core().V1().Nodes().Informer().IsStopped() })
	p.enabled = true
	if err := p.ValidateInitialization(); err == nil || !strings.Contains(err.Error(), "nodes by their groups: ") {
		t.Errorf("without nodes: %v", err)
	}
	p, _ = initialized(t, configuration, false, noScheduler)
	p.enabled, p.config, p.registry = true, &v1alpha1.NodeSchedulingPolicyConfig{}, prometheus.NewRegistry()
	if err := p.ValidateInitialization(); err == nil || !strings.Contains(err.Error(), "groups is missing") {
		t.Errorf("without groups: %v", err)
	}
	broken := errors.New("the disk is gone")
	if _, err := fromFile(iotest.ErrReader(broken), prometheus.NewRegistry()); !errors.Is(err, broken) ||
		!strings.Contains(err.Error(), "reading the configuration of "+PluginName+": ") {
		t.Errorf("a file that cannot be read: %v", err)
	}
}

// N60: what Scheduler says is not enough: the nodes must be listed, too.
func TestN60_NodesAreWaitedForToo(t *testing.T) {
	t.Parallel()
	p, _ := initialized(t, strings.Replace(configuration, "Disable", "Enable", 1), true, noScheduler)
	until(t, "Scheduler is read", p.policy.Known)
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if given := must(t, short, p, "alice create pod app/web node=cp1"); given.Allowed ||
		!strings.Contains(given.Message, "[ControlPlane/NodesNotReady]") {
		t.Errorf("%+v", given)
	}
}

// shown are the names of the metrics of a plugin with the number of their series.
func shown(t *testing.T, p *Plugin) map[string]int {
	t.Helper()
	registry, is := p.registry.(*prometheus.Registry)
	if !is {
		t.Fatalf("%T", p.registry)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]int{}
	for _, family := range families {
		names[strings.TrimPrefix(family.GetName(), "node_scheduling_policy_")] = len(family.GetMetric())
	}
	return names
}

// N66, N67, N68, A-11, A-13: a verdict is counted and timed, and written about; nodes and entries are counted.
func TestN66_WhatThePluginDoesIsSeen(t *testing.T) {
	t.Parallel()
	ops := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops", UID: "1"}}
	clients := fake.NewClientset(ops,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp1", Labels: map[string]string{"cp": ""}}})
	p, factory := initializedWith(t, clients, strings.Replace(configuration, "Disable", "Inform", 1), true,
		noScheduler)
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	until(t, "Scheduler is read", p.policy.Known)
	if given := must(t, t.Context(), p, "alice create pod ops/web node=cp1"); !given.Allowed ||
		len(given.Warnings) != 1 {
		t.Errorf("%+v", given)
	}
	until(t, "the metrics", func() bool {
		names := shown(t, p)
		return names["decisions_total"] == 1 && names["verdict_duration_seconds"] == 1 && names["nodes"] == 2 &&
			names["entries"] == len(evaluator.PinStates())
	})
	until(t, "the event", func() bool {
		written, err := clients.EventsV1().Events("").List(t.Context(), metav1.ListOptions{})
		return err == nil && len(written.Items) == 1 && written.Items[0].Regarding.Name == "ops" &&
			written.Items[0].ReportingController == "kube-apiserver"
	})
}
