package operator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

// plane is a HostedControlPlane of a cluster with Karpenter on AWS, changed.
func plane(name string,
	changes ...func(spec map[string]any, annotations map[string]string)) unstructured.Unstructured {
	annotations := map[string]string{"hypershift.openshift.io/aws-karpenter-default-instance-profile": "nodes"}
	spec := map[string]any{
		"infraID": "infra",
		"platform": map[string]any{"aws": map[string]any{"region": "eu-west-9",
			"resourceTags": []any{map[string]any{"key": "b", "value": "2", "overridePolicy": "Allow"},
				map[string]any{"key": "a", "value": "1"}}}},
		"autoNode": map[string]any{"provisionerConfig": map[string]any{"name": "Karpenter",
			"karpenter": map[string]any{"platform": "AWS"}}},
	}
	for _, change := range changes {
		change(spec, annotations)
	}
	p := unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	p.SetName(name)
	p.SetAnnotations(annotations)
	return p
}

func read(planes ...unstructured.Unstructured) operator.HostedReading {
	return operator.HostedReading{}.Next(planes, nil, operator.HostedGiven{})
}

// each field is read; one of another type counts as not set.
func TestA32_WhatAHostedControlPlaneSays(t *testing.T) {
	t.Parallel()
	got := read(plane("one"))
	want := merge.Infra{InfraID: "infra", InstanceProfile: "nodes", ResourceTags: []merge.ResourceTag{{Key: "a",
		Value: "1"}, {Key: "b", Value: "2", Overridable: true}}}
	if !got.Known || got.Reason != "" || got.LeavesClasses || got.Deleting || got.Region != "eu-west-9" ||
		got.Infra.InfraID != want.InfraID || got.Infra.InstanceProfile != want.InstanceProfile ||
		len(got.Infra.ResourceTags) != 2 || got.Infra.ResourceTags[0] != want.ResourceTags[0] ||
		got.Infra.ResourceTags[1] != want.ResourceTags[1] {
		t.Errorf("read %+v", got)
	}
	for what, change := range map[string]func(map[string]any, map[string]string){
		"no autoNode": func(spec map[string]any, _ map[string]string) { delete(spec, "autoNode") },
		"another provisioner": func(spec map[string]any, _ map[string]string) {
			set(spec, "Other", "autoNode", "provisionerConfig", "name")
		},
		"another platform": func(spec map[string]any, _ map[string]string) {
			set(spec, "Azure", "autoNode", "provisionerConfig", "karpenter", "platform")
		},
		"the override annotation": func(_ map[string]any, a map[string]string) {
			a["hypershift.openshift.io/karpenter-core-e2e-override"] = "true"
		},
	} {
		if !read(plane("one", change)).LeavesClasses {
			t.Errorf("%s: node classes are not left alone", what)
		}
	}
	odd := read(plane("one", func(spec map[string]any, _ map[string]string) {
		spec["infraID"], spec["pausedUntil"] = int64(1), []any{}
		spec["platform"] = map[string]any{"aws": map[string]any{"resourceTags": "none"}}
	}))
	if odd.Infra.InfraID != "" || odd.PausedUntil != "" || odd.Infra.ResourceTags != nil {
		t.Errorf("of other types: %+v", odd)
	}
}

func set(spec map[string]any, value string, path ...string) {
	if err := unstructured.SetNestedField(spec, value, path...); err != nil {
		panic(err)
	}
}

// an answer that does not count leaves what the last one said, and names what is wrong.
func TestA32_WhatDoesNotCountChangesNothing(t *testing.T) {
	t.Parallel()
	known := read(plane("one"))
	given := func(infra merge.Infra) operator.HostedGiven { return operator.HostedGiven{Infra: infra} }
	for what, c := range map[string]struct {
		after  operator.HostedReading
		reason string
		part   string
	}{
		"none": {known.Next(nil, nil, given(merge.Infra{})), hypershiftv1beta1.ReasonHostedMissing,
			"there is no HostedControlPlane"},
		"two": {known.Next([]unstructured.Unstructured{plane("two"), plane("one")}, nil,
			given(merge.Infra{})), hypershiftv1beta1.ReasonHostedAmbiguous, "one and two"},
		"no answer": {known.Next(nil, errors.New("away"), given(merge.Infra{})),
			hypershiftv1beta1.ReasonHostedUnreadable, "away"},
		"another ID": {known.Next([]unstructured.Unstructured{plane("one")}, nil,
			given(merge.Infra{InfraID: "x"})), hypershiftv1beta1.ReasonHostedDiffers, `--infra-id is "x"`},
		"another profile": {known.Next([]unstructured.Unstructured{plane("one")}, nil,
			given(merge.Infra{InstanceProfile: "x"})), hypershiftv1beta1.ReasonHostedDiffers,
			`--instance-profile is "x"`},
		"other tags": {known.Next([]unstructured.Unstructured{plane("one")}, nil,
			given(merge.Infra{ResourceTags: []merge.ResourceTag{{Key: "a", Value: "1"}}})),
			hypershiftv1beta1.ReasonHostedDiffers, "--resource-tags"},
	} {
		if c.after.Reason != c.reason || !strings.Contains(c.after.Message, c.part) || !c.after.Known ||
			c.after.Infra.InfraID != "infra" {
			t.Errorf("%s: %+v", what, c.after)
		}
	}
	if same := known.Next([]unstructured.Unstructured{plane("one")}, nil, given(known.Infra)); same.Reason != "" {
		t.Errorf("flags that say the same: %s", same.Message)
	}
}

// nothing is written while it is paused, nor before it could be asked.
func TestA32_WhenNothingIsWritten(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	until := func(text string) operator.HostedReading {
		return read(plane("one", func(spec map[string]any, _ map[string]string) { spec["pausedUntil"] = text }))
	}
	for what, c := range map[string]struct {
		reading operator.HostedReading
		want    bool
	}{
		"not asked": {operator.HostedReading{}, false}, "not answered": {operator.HostedReading{Asked: true}, true},
		"refused": {operator.HostedReading{}.Next(nil, errors.New("no"), operator.HostedGiven{}),
			true}, "none": {read(), false},
		"not paused": {until(""), false}, "true": {until("true"), true}, "false": {until("false"),
			false}, "later": {until("2026-11-23T12:00:01Z"), true},
		"over": {until("2026-11-23T12:00:00Z"), false}, "nonsense": {until("tomorrow"), false},
		"refused since": {until("").Next(nil, errors.New("no"), operator.HostedGiven{}), false},
		"gone while so": {until("true").Next(nil, nil, operator.HostedGiven{}), true},
	} {
		board := operator.NewBoard()
		board.SetHosted(c.reading)
		if got := board.Paused(now); got != c.want {
			t.Errorf("%s: paused is %t", what, got)
		}
	}
}

// the condition says Paused when the steps that began before are through, and not while they may write.
func TestA32_PausedIsSaidWhenNothingIsWrittenAnyMore(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil, policyOf(1))
	s.read()
	if !s.board.BeginStep(s.clock.Now()) {
		t.Fatal("a step is held up before the pause")
	}
	s.board.SetHosted(
		read(plane("one", func(spec map[string]any, _ map[string]string) { spec["pausedUntil"] = "true" })))
	if s.board.BeginStep(s.clock.Now()) {
		t.Error("a step begins while it is paused")
	}
	again := s.step(s.policy, "").RequeueAfter
	said, _ := condition.Get(s.stored().Status.Conditions, hypershiftv1beta1.ConditionTypeHostedControlPlane)
	if said.Reason == hypershiftv1beta1.ReasonHostedPaused || again <= 0 || again > time.Second {
		t.Errorf("with a step under way it says %q, again after %s", said.Reason, again)
	}
	s.board.EndStep()
	s.read()
	s.step(s.policy, "")
	said, _ = condition.Get(s.stored().Status.Conditions, hypershiftv1beta1.ConditionTypeHostedControlPlane)
	if said.Reason != hypershiftv1beta1.ReasonHostedPaused {
		t.Errorf("with no step under way it says %q", said.Reason)
	}
}

// a pause that ends by itself is no longer told ten seconds later.
func TestA32_APauseThatIsOverIsNotTold(t *testing.T) {
	t.Parallel()
	s := newScene(t, nil, policyOf(1))
	s.read()
	s.board.SetHosted(read(plane("one", func(spec map[string]any, _ map[string]string) {
		spec["pausedUntil"] = s.clock.Now().Add(time.Second).UTC().Format(time.RFC3339)
	})))
	for _, want := range []string{hypershiftv1beta1.ReasonHostedPaused, hypershiftv1beta1.ReasonHostedFound} {
		again := s.step(s.policy, "").RequeueAfter
		said, _ := condition.Get(s.stored().Status.Conditions, hypershiftv1beta1.ConditionTypeHostedControlPlane)
		if said.Reason != want || (again > 0) != (want == hypershiftv1beta1.ReasonHostedPaused) {
			t.Errorf("it says %s %q, again after %s; want %s", said.Reason, said.Message, again, want)
		}
		s.clock.Advance(again)
		s.read()
	}
}

// node classes wait for the first HostedControlPlane, follow each later one, and are left alone when it says so.
// Pools use those that are there.
func TestA32_NodeClassesFollowTheHostedControlPlane(t *testing.T) {
	t.Parallel()
	s := newScene(t, []client.Object{class("big"), ofClass("web", "big")}, policyOf(1, in(instanceType, "a")))
	s.read()
	s.kinds[1] = operator.EC2NodeClasses(operator.AWSConfig{
		RootVolume: merge.DefaultRootVolume(), Bootstrap: func(context.Context, string, string) (*merge.Bootstrap,
			error) {
			return s.bootstrap, nil
		},
		Hosted: func() (merge.Infra, bool) { hosted := s.board.Hosted(); return hosted.Infra, hosted.Known },
	})
	s.kinds[0] = s.kinds[0].OnlyManaged(&s.kinds[1])
	s.classes, s.pools = s.controller(s.kinds[1]), s.controller(s.kinds[0])
	s.board.SetHosted(read())
	s.step(s.classes, "big")
	if said := s.classSays("big",
		hypershiftv1beta1.ConditionTypePolicyApplied); said.Status != metav1.ConditionUnknown ||
		!strings.Contains(said.Message, "hosted control plane") {
		t.Errorf("before the first: %v", said)
	}
	profile := func(name string, changes ...func(map[string]any, map[string]string)) operator.HostedReading {
		return read(plane("one", append(changes, func(_ map[string]any, a map[string]string) {
			a["hypershift.openshift.io/aws-karpenter-default-instance-profile"] = name
		})...))
	}
	for _, name := range []string{"first", "second"} {
		if !s.board.SetHosted(profile(name)) || s.board.SetHosted(profile(name)) {
			t.Errorf("%s is no news, or news twice", name)
		}
		s.step(s.classes, "big")
		if got := s.madeClass("big").Spec.InstanceProfile; got == nil || *got != name {
			t.Errorf("the instance profile is %v, want %s", got, name)
		}
	}
	s.board.SetHosted(profile("third", func(spec map[string]any, _ map[string]string) { delete(spec, "autoNode") }))
	s.step(s.classes, "big")
	if got := *s.madeClass("big").Spec.InstanceProfile; got != "second" {
		t.Errorf("a class that is to be left alone has the instance profile %s", got)
	}
	s.step(s.pools, "web")
	s.managed("web", metav1.ConditionTrue, hypershiftv1beta1.ReasonManaged)
	s.policySays(metav1.ConditionTrue, hypershiftv1beta1.ReasonApplied)
	said, _ := condition.Get(s.stored().Status.Conditions, hypershiftv1beta1.ConditionTypeHostedControlPlane)
	if said.Status != metav1.ConditionTrue || said.Reason != hypershiftv1beta1.ReasonHostedLeavesClasses {
		t.Errorf("the policy says %s %s %q", said.Status, said.Reason, said.Message)
	}
}

// node classes that the HostedControlPlane takes from the operator are judged as another's, by the profile that
// it names.
func TestA32_ClassesThatAreLeftAloneAreJudged(t *testing.T) {
	t.Parallel()
	policy := policyOf(1, in(instanceType, "a"))
	size := resource.MustParse("90Gi")
	policy.Spec.EC2NodeClassDefaults.RootVolume = &hypershiftv1beta1.RootVolume{VolumeSize: &size}
	theirs := othersClass("big", "90Gi")
	theirs.Spec.InstanceProfile = new("hosted")
	s := newScene(t, []client.Object{class("big"), theirs}, policy)
	s.read()
	leaving := func(profile string) operator.HostedReading {
		return read(plane("one", func(_ map[string]any, a map[string]string) {
			a["hypershift.openshift.io/karpenter-core-e2e-override"] = "true"
			a["hypershift.openshift.io/aws-karpenter-default-instance-profile"] = profile
		}))
	}
	s.board.SetHosted(leaving("hosted"))
	look := s.looking(s.guest)
	s.step(look, "")
	s.conforming(metav1.ConditionTrue, conformance.ReasonConforms)
	s.policySays(metav1.ConditionFalse, hypershiftv1beta1.ReasonRootVolumeNotOwned)
	s.board.SetHosted(leaving("another"))
	s.step(look, "")
	s.conforming(metav1.ConditionFalse, conformance.ReasonNotConforming, "1 NotOwned (Service): EC2NodeClass big")
}

// A-32, U8: when the hosted cluster is being deleted its pools go, those without a wrapper after the others; and
// nothing before.
func TestA32_PoolsGoWithTheCluster(t *testing.T) {
	t.Parallel()
	controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
		held := wrapper("web")
		held.Finalizers = []string{operator.PoolFinalizer}
		s := newScene(t, []client.Object{held, &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "alone"}},
			class("big")})
		dismantling := operator.NewDismantling(operator.TeardownConfig{
			Guest: operator.GuestClient{Client: f.Wrap(s.guest)}, Kinds: s.kinds, Board: s.board, Log: logr.Discard(),
		})
		s.board.SetHosted(read(plane("one")))
		if result, err := dismantling.Reconcile(t.Context(), request("")); err != nil || result.RequeueAfter > 0 ||
			s.nodePool("alone") == nil {
			t.Errorf("a cluster that stays: %v, error %v", result, err)
		}
		going := plane("one")
		going.SetDeletionTimestamp(new(metav1.Now()))
		s.board.SetHosted(read(going))
		step := s.steps(dismantling, "", nil, func() {
			if s.wrapper("web").DeletionTimestamp == nil || s.nodePool("alone") == nil {
				t.Error("the wrappers do not go first")
			}
			free := s.wrapper("web")
			free.Finalizers = nil
			s.must(s.guest.Update(t.Context(), free))
		})
		return func() error {
			err := step()
			if err == nil && (s.nodePool("alone") != nil || s.classWrapper("big") == nil) {
				t.Error("a pool is left, or the class is gone")
			}
			return err
		}
	})
}

// each thing that a HostedControlPlane says wakes who has to follow it.
func TestA32_EveryFieldIsNews(t *testing.T) {
	t.Parallel()
	going := plane("one")
	going.SetDeletionTimestamp(new(metav1.Now()))
	changed := func(change func(map[string]any, map[string]string)) operator.HostedReading {
		return read(plane("one",
			change))
	}
	for what, reading := range map[string]operator.HostedReading{
		"its ID": changed(func(spec map[string]any, _ map[string]string) { spec["infraID"] = "another" }),
		"its region": changed(func(spec map[string]any, _ map[string]string) {
			set(spec, "eu-west-8", "platform", "aws", "region")
		}),
		"its tags":   changed(func(spec map[string]any, _ map[string]string) { delete(spec, "platform") }),
		"a pause":    changed(func(spec map[string]any, _ map[string]string) { spec["pausedUntil"] = "true" }),
		"autoNode":   changed(func(spec map[string]any, _ map[string]string) { delete(spec, "autoNode") }),
		"annotation": changed(func(_ map[string]any, annotations map[string]string) { clear(annotations) }),
		"deletion":   read(going), "that it is gone": read(plane("one")).Next(nil, nil, operator.HostedGiven{}),
	} {
		board := operator.NewBoard()
		board.SetHosted(read(plane("one")))
		if board.SetHosted(read(plane("one"))) || !board.SetHosted(reading) {
			t.Errorf("%s is no news, or the same is", what)
		}
	}
}

// the default class is made as the HostedControlPlane says, and not where classes are left alone or the cluster
// goes.
func TestA32_TheDefaultClassFollowsTheHostedControlPlane(t *testing.T) {
	t.Parallel()
	going := plane("one")
	going.SetDeletionTimestamp(new(metav1.Now()))
	leaving := plane("one", func(spec map[string]any, _ map[string]string) { delete(spec, "autoNode") })
	other := plane("one", func(spec map[string]any, _ map[string]string) { spec["infraID"] = "infra-7" })
	s := newScene(t, nil)
	for what, reading := range map[string]operator.HostedReading{"not known": read(), "going": read(going),
		"left alone": read(leaving)} {
		s.board.SetHosted(reading)
		if s.step(s.defaults(s.guest), ""); s.defaultClass() != nil {
			t.Errorf("%s: the class was made", what)
		}
	}
	s.board.SetHosted(read(other))
	s.step(s.defaults(s.guest), "")
	if made := s.defaultClass(); made == nil ||
		made.Spec.SecurityGroupSelectorTerms[0].Tags["karpenter.sh/discovery"] != "infra-7" {
		t.Errorf("the class is %+v", made)
	}
}
