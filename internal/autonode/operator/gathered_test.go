package operator_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterawsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
)

// an object is reported once an hour, and again if it conformed in between.
func TestA23_WhatIsWrongAgainIsToldAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("default"), wrapper("web", in(instanceType, "a"))},
		policyOf(1, in(instanceType, "a", "b")))
	s.read()
	c := s.looking(s.guest)
	s.step(c, "")
	s.step(s.classes, "default")
	s.step(s.pools, "web")
	s.clock.Advance(time.Minute)
	for i := range 3 {
		s.must(s.guest.Create(t.Context(), handMade("rogue")))
		s.step(c, "")
		s.step(c, "")
		if n := s.told(operator.ReasonNotConforming); n != i+1 {
			t.Errorf("%d events after it was wrong for the %d. time", n, i+1)
		}
		s.must(s.guest.Delete(t.Context(), handMade("rogue")))
		s.step(c, "")
	}
}

// nodes and node classes are looked at as well; node classes only where the platform has them.
func TestA19_EveryKindIsLookedAt(t *testing.T) {
	t.Parallel()
	for _, classes := range []bool{true, false} {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name: "poses", Labels: map[string]string{karpenterv1.NodePoolLabelKey: "web"},
			},
		}
		s := newScene(t,
			[]client.Object{class("default"), node,
				&karpenterawsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "rogue"}}},
			policyOf(1, in(instanceType, "a", "b")))
		s.read()
		asked := 0
		guest := interceptor.NewClient(s.guest, interceptor.Funcs{
			List: func(ctx context.Context, server client.WithWatch, list client.ObjectList,
				options ...client.ListOption) error {
				if _, is := list.(*karpenterawsv1.EC2NodeClassList); is {
					asked++
				}
				return server.List(ctx, list, options...)
			}})
		l := &looker{t: t, registry: prometheus.NewRegistry()}
		l.ConformanceController = operator.NewConformanceController(operator.ConformanceConfig{
			Guest: operator.GuestClient{Client: guest}, Live: guest, Classes: classes, Profile: "nodes",
			Settings: conformance.DefaultSettings(),
			Board:    s.board, Wake: func() {}, Events: s.tape, Metrics: operator.NewMetrics(l.registry),
			Now: s.clock.Now, Log: logr.Discard(),
		})
		s.step(l, "")
		s.clock.Advance(2 * time.Minute)
		s.step(l, "")
		if n := l.objects("Node", "NotConforming", "HandMade", "Tenant"); n != 1 {
			t.Errorf("node classes %t: %v nodes made by hand are found, want 1", classes, n)
		}
		if found := l.anyClass(); classes != (asked > 0) || classes != (found > 0) {
			t.Errorf("node classes %t: they were listed %d times, and %v are counted", classes, asked, found)
		}
	}
}

// an API server is asked for a part at a time, and each part is looked at.
func TestA20_TheAPIServerIsAskedInParts(t *testing.T) {
	t.Parallel()
	objects := []client.Object{class("default")}
	for _, name := range []string{"one", "two", "three"} {
		objects = append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name,
			Labels: map[string]string{karpenterv1.NodePoolLabelKey: "web"}}})
	}
	s := newScene(t, objects, policyOf(1, in(instanceType, "a", "b")))
	s.read()
	var asked []string
	live := interceptor.NewClient(s.guest, interceptor.Funcs{
		List: func(ctx context.Context, server client.WithWatch, list client.ObjectList,
			options ...client.ListOption) error {
			nodes, is := list.(*corev1.NodeList)
			if err := server.List(ctx, list, options...); err != nil || !is {
				return err
			}
			var o client.ListOptions
			o.ApplyOptions(options)
			asked = append(asked, fmt.Sprintf("%d after %q", o.Limit, o.Continue))
			if o.Continue == "" {
				nodes.Items, nodes.Continue = nodes.Items[:2], "two"
			} else {
				nodes.Items = nodes.Items[2:]
			}
			return nil
		}})
	c := s.looking(live)
	s.step(c, "")
	s.clock.Advance(time.Hour)
	s.step(c, "")
	if want := []string{`500 after ""`, `500 after "two"`}; !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
	if n := c.objects("Node", "NotConforming", "HandMade", "Tenant"); n != 3 {
		t.Errorf("%v nodes are found, want 3", n)
	}
}

// anyClass counts series of the metric about node classes, whatever they say.
func (l *looker) anyClass() float64 {
	l.t.Helper()
	families, err := l.registry.Gather()
	if err != nil {
		l.t.Fatal(err)
	}
	count := 0.0
	for _, family := range families {
		if family.GetName() != "autonode_conformance_objects" {
			continue
		}
		for _, metric := range family.GetMetric() {
			for _, label := range metric.GetLabel() {
				if label.GetValue() == conformance.EC2NodeClass {
					count += metric.GetGauge().GetValue()
				}
			}
		}
	}
	return count
}

// a node class that the operator did not write must have the operator's instance profile.
func TestA21_TheProfileIsTheOneThatWasGiven(t *testing.T) {
	t.Parallel()
	first := newScene(t, []client.Object{class("default")}, policyOf(1, in(instanceType, "a", "b")))
	first.read()
	first.step(first.classes, "default")
	var made karpenterawsv1.EC2NodeClass
	first.must(first.guest.Get(t.Context(), client.ObjectKey{Name: "default"}, &made))
	for profile, want := range map[string]bool{"nodes": true, "another": false} {
		stray := &karpenterawsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "stray", UID: "of-its-own"},
			Spec: *made.Spec.DeepCopy()}
		s := newScene(t, []client.Object{stray}, policyOf(1, in(instanceType, "a", "b")))
		s.read()
		l := &looker{t: t, registry: prometheus.NewRegistry()}
		l.ConformanceController = operator.NewConformanceController(operator.ConformanceConfig{
			Guest: operator.GuestClient{Client: s.guest}, Live: s.guest, Classes: true, Profile: profile,
			Settings: conformance.DefaultSettings(),
			Board:    s.board, Wake: func() {}, Events: s.tape, Metrics: operator.NewMetrics(l.registry),
			Now: s.clock.Now, Log: logr.Discard(),
		})
		s.step(l, "")
		s.clock.Advance(2 * time.Minute)
		s.step(l, "")
		said := strings.Join(s.tape.Said(), "\n")
		if told := strings.Contains(said,
			"spec.instanceProfile is not another, which the provider gives"); told == want {
			t.Errorf("given %s, the class with nodes is told of: %t, want %t\n%s", profile, told, !want, said)
		}
	}
}

// images that the operator has given to a node class are the provider's, on any class; others are not.
func TestA21_ImagesOfTheProviderAreKnown(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("default")}, policyOf(1, in(instanceType, "a", "b")))
	s.read()
	s.step(s.classes, "default")
	var made karpenterawsv1.EC2NodeClass
	s.must(s.guest.Get(t.Context(), client.ObjectKey{Name: "default"}, &made))
	if len(made.Spec.AMISelectorTerms) == 0 || made.Spec.AMISelectorTerms[0].ID == "" {
		t.Fatalf("the class chooses no image: %+v", made.Spec.AMISelectorTerms)
	}
	for name, image := range map[string]string{"same": made.Spec.AMISelectorTerms[0].ID, "other": "ami-other"} {
		stray := &karpenterawsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
			Spec: *made.Spec.DeepCopy()}
		stray.Spec.AMISelectorTerms[0].ID = image
		stray.Spec.InstanceProfile = new("wrong") // so that both are told of
		s.must(s.guest.Create(t.Context(), stray))
	}
	c := s.looking(s.guest)
	s.step(c, "")
	s.clock.Advance(2 * time.Minute)
	s.step(c, "")
	said := strings.Join(s.tape.Said(), "\n")
	if !strings.Contains(said, "other ") || !strings.Contains(said, "same ") {
		t.Errorf("not both are told of:\n%s", said)
	}
	for line := range strings.Lines(said) {
		if told := strings.Contains(line, "chooses images"); told != strings.HasPrefix(line, "other ") &&
			strings.Contains(line, "NotConforming") {
			t.Errorf("images are told: %t: %s", told, line)
		}
	}
}
