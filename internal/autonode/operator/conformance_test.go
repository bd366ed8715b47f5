package operator_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// looker is the controller of conformance over a scene.
type looker struct {
	*operator.ConformanceController
	t        *testing.T
	registry *prometheus.Registry
	woken    int // how often it woke the policy's status
}

func (s *scene) looking(live client.Reader, changes ...func(*operator.ConformanceConfig)) *looker {
	l := &looker{t: s.t, registry: prometheus.NewRegistry()}
	config := operator.ConformanceConfig{
		Guest: operator.GuestClient{Client: s.guest}, Live: live, Classes: true, Profile: "nodes",
		Settings: conformance.DefaultSettings(),
		Board:    s.board, Wake: func() { l.woken++ }, Events: s.tape, Metrics: operator.NewMetrics(l.registry),
		Now: s.clock.Now, Log: logr.Discard(),
	}
	for _, change := range changes {
		change(&config)
	}
	l.ConformanceController = operator.NewConformanceController(config)
	return l
}

// objects is how many objects the metric has with these values of labels.
func (l *looker) objects(labels ...string) float64 {
	l.t.Helper()
	return controllertest.Count(l.t, l.registry, "autonode_conformance_objects", labels...)
}

// conforming demands what the policy says of the guest.
func (s *scene) conforming(status metav1.ConditionStatus, reason string, parts ...string) {
	s.t.Helper()
	s.step(s.policy, "")
	said, _ := condition.Get(s.stored().Status.Conditions, hypershiftv1beta1.ConditionTypeConforming)
	lacks := slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(said.Message, part) })
	if said.Status != status || said.Reason != reason || lacks {
		s.t.Errorf("Conforming is %q %q %q, want %s %s with %q", said.Status, said.Reason, said.Message, status,
			reason, parts)
	}
	s.read() // the feed brings what was written
}

// handMade is a NodeClaim that no pool made.
func handMade(name string) *karpenterv1.NodeClaim {
	claim := &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{karpenterv1.NodePoolLabelKey: "web"}},
	}
	claim.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{in(instanceType, "a")}
	claim.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass",
		Name: "default"}
	return claim
}

// a claim made by hand is found, told by condition, event and metric, and told no more when it
// is gone. The policy stays Ready.
func TestA22_WhatDoesNotConformIsTold(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("default"), wrapper("web", in(instanceType, "a"))},
		policyOf(1, in(instanceType, "a", "b")))
	s.read()
	c := s.looking(s.guest)
	if again := s.step(c, "").RequeueAfter; again != time.Minute {
		t.Errorf("again after %s, want the time in which everything is looked at once", again)
	}
	s.step(s.classes, "default")
	s.step(s.pools, "web")
	s.clock.Advance(time.Minute)
	if again := s.step(c, "").RequeueAfter; again != 5*time.Minute {
		t.Errorf("again after %s, want 5m", again)
	}
	s.conforming(metav1.ConditionTrue, conformance.ReasonConforms)
	s.must(s.guest.Create(t.Context(), handMade("rogue")))
	s.step(c, "")
	s.conforming(metav1.ConditionFalse, conformance.ReasonNotConforming, "1 HandMade (Tenant): NodeClaim rogue")
	s.policySays(metav1.ConditionTrue, "Applied")
	if n := c.objects("NodeClaim", "NotConforming", "HandMade", "Tenant"); n != 1 {
		t.Errorf("the metric has %v claims made by hand", n)
	}
	if at := controllertest.Count(t, c.registry, "autonode_conformance_checked_timestamp_seconds"); at != float64(
		s.clock.Now().Unix()) {
		t.Errorf("checked at %v", at)
	}
	events := s.told(operator.ReasonNotConforming)
	s.step(c, "")
	s.clock.Advance(59 * time.Minute)
	s.step(c, "")
	if events != 1 || s.told(operator.ReasonNotConforming) != 1 {
		t.Errorf("%d events, and then %d, want 1 in an hour", events, s.told(operator.ReasonNotConforming))
	}
	s.clock.Advance(time.Minute)
	if s.step(c, ""); s.told(operator.ReasonNotConforming) != 2 {
		t.Errorf("%d events after an hour, want 2", s.told(operator.ReasonNotConforming))
	}
	s.must(s.guest.Delete(t.Context(), handMade("rogue")))
	s.step(c, "")
	s.conforming(metav1.ConditionTrue, conformance.ReasonConforms)
	if c.woken != 4 { // nothing is there, it conforms, it does not, it does
		t.Errorf("the policy's status was woken %d times, want 4, one for each change", c.woken)
	}
}

// a tightened policy replaces nodes for a while; a policy that is not valid is the provider's.
func TestA21_AChangedPolicyIsTheProviders(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("default"), wrapper("web", in(instanceType, "a", "b"))},
		policyOf(1, in(instanceType, "a", "b")))
	s.read()
	c := s.looking(s.guest)
	s.step(c, "")
	s.step(s.classes, "default")
	s.step(s.pools, "web")
	claim := handMade("old")
	claim.CreationTimestamp = metav1.Time{Time: s.clock.Now()}
	claim.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{in(instanceType, "b")}
	pool := s.nodePool("web")
	claim.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: "web", UID: pool.UID},
	}
	s.must(s.guest.Create(t.Context(), claim))
	s.clock.Advance(time.Hour)
	tight := policyOf(2, in(instanceType, "a"))
	s.learn(operator.Answer{Policy: tight})
	s.step(c, "")
	s.step(s.pools, "web")
	s.step(c, "")
	if found := c.claims(); found != "Replacing PolicyChanged Provider" {
		t.Errorf("found %s", found)
	}
	bad := policyOf(3, in(instanceType, "a"), in(instanceType, "b"))
	s.learn(operator.Answer{Policy: bad})
	s.step(c, "")
	if n := c.objects("AutoNodePolicy", "Unknown", "PolicyInvalid", "Provider"); n != 1 {
		t.Error("a policy that is not valid is not told")
	}
}

// told counts the events of a reason.
func (s *scene) told(reason string) int {
	count := 0
	for _, said := range s.tape.Said() {
		if strings.Contains(said, " "+reason+": ") {
			count++
		}
	}
	return count
}

// claims is how NodeClaims stand, by the metric.
func (l *looker) claims() string {
	for _, labels := range [][]string{
		{"Replacing", "PolicyChanged", "Provider"}, {"NotConforming", "HandMade", "Tenant"}, {"Conforms", "", ""},
	} {
		if l.objects(slices.Insert(slices.Clone(labels), 0, "NodeClaim")...) > 0 {
			return strings.Join(labels, " ")
		}
	}
	return "nothing"
}

// once an hour the API server itself is asked, and what it has counts.
func TestA20_OnceAnHourTheAPIServerIsAsked(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("default")}, policyOf(1, in(instanceType, "a", "b")))
	s.read()
	asked := 0
	failing := error(nil)
	listing := func(ctx context.Context, server client.WithWatch, list client.ObjectList,
		options ...client.ListOption) error {
		if _, is := list.(*corev1.NodeList); is {
			asked++
		}
		return errors.Join(failing, server.List(ctx, list, options...))
	}
	live := interceptor.NewClient(s.guest, interceptor.Funcs{List: listing})
	c := s.looking(live)
	for range 24 { // two hours
		s.step(c, "")
		s.clock.Advance(5 * time.Minute)
	}
	if asked != 1 { // at the start the cache has just been filled
		t.Errorf("the API server was asked %d times within two hours of the start, want once", asked)
	}
	failing = errors.New("not now")
	if _, err := c.Reconcile(t.Context(), request("")); err == nil ||
		!strings.Contains(err.Error(), "listing NodePools: not now") {
		t.Errorf("error %v", err)
	}
}

// G15, A-22: before the first answer of the management cluster nothing is judged; when the policy may not be read,
// that is told.
func TestA22_WithoutAPolicyToBeRead(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{handMade("rogue")}, policyOf(1, in(instanceType, "a", "b")))
	c := s.looking(s.guest)
	if s.step(c, ""); c.claims() != "nothing" {
		t.Errorf("judged before anything is known: %s", c.claims())
	}
	s.board.Set(operator.Reading{State: operator.StateUnavailable})
	if s.step(c, ""); c.claims() != "nothing" { // nothing was made yet, and nothing can be compared with what was
		t.Errorf("judged before the policy could be read once: %s", c.claims())
	}
	s.board.Set(operator.Reading{State: operator.StatePermissive})
	s.step(c, "")
	if n := c.objects("AutoNodePolicy", "Unknown", "PolicyUnreadable", "Provider"); n != 1 {
		t.Error("a policy that may not be read is not told")
	}
	unprotected := newUnprotectedScene(t, []client.Object{handMade("rogue")}, policyOf(1, in(instanceType, "a", "b")))
	unprotected.read()
	c = unprotected.looking(unprotected.guest)
	if unprotected.step(c, ""); c.claims() != "nothing" {
		t.Error("judged before the guest is protected")
	}
}
