package operator

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/condition"
)

// Annotations of a HostedControlPlane that are read.
const (
	profileAnnotation  = "hypershift.openshift.io/aws-karpenter-default-instance-profile"
	overrideAnnotation = "hypershift.openshift.io/karpenter-core-e2e-override"
)

var hostedControlPlane = schema.GroupVersionKind{Group: "hypershift.openshift.io", Version: "v1beta1",
	Kind: "HostedControlPlane"}

// HostedControlPlanes reads the HostedControlPlanes of the namespace, and the resource version to watch from.
func (m ManagementClient) HostedControlPlanes(ctx context.Context) (found []unstructured.Unstructured,
	version string, err error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(hostedControlPlane)
	if err := m.client.List(ctx, &list, client.InNamespace(m.namespace)); err != nil {
		return nil, "", fmt.Errorf("reading the HostedControlPlane of namespace %s: %w", m.namespace, err)
	}
	return list.Items, list.GetResourceVersion(), nil
}

// WatchHosted watches the HostedControlPlanes from a resource version on, for at most the given number of seconds.
func (m ManagementClient) WatchHosted(ctx context.Context, version string, seconds int64) (watch.Interface, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(hostedControlPlane)
	options := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: &seconds}}
	client.InNamespace(m.namespace).ApplyToList(options)
	return m.client.Watch(ctx, &list, options)
}

// Hosted is what a HostedControlPlane says about its cluster.
type Hosted struct {
	Infra  merge.Infra // without Bootstrap
	Region string      // of the instances
	// PausedUntil is when the pause ends: a time, or "true" for an open end; "" if not paused.
	PausedUntil string
	Deleting    bool
	// LeavesClasses says not to touch node classes: the cluster has no Karpenter on AWS, or an annotation says so.
	LeavesClasses bool
}

// readHosted reads the fields of a HostedControlPlane. A missing field, or one of a wrong type, counts as not set.
func readHosted(plane *unstructured.Unstructured) Hosted {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(plane.Object, path...) // "" with an error
		return value
	}
	h := Hosted{Region: text("spec", "platform", "aws", "region"), PausedUntil: text("spec", "pausedUntil"),
		Deleting: plane.GetDeletionTimestamp() != nil}
	h.Infra = merge.Infra{InfraID: text("spec", "infraID"), InstanceProfile: plane.GetAnnotations()[profileAnnotation]}
	// none with an error
	tags, _, _ := unstructured.NestedSlice(plane.Object, "spec", "platform", "aws", "resourceTags")
	for _, tag := range tags {
		fields, _ := tag.(map[string]any)
		key, _ := fields["key"].(string)
		value, _ := fields["value"].(string)
		if policy, _ := fields["overridePolicy"].(string); key != "" {
			h.Infra.ResourceTags = append(h.Infra.ResourceTags,
				merge.ResourceTag{Key: key, Value: value, Overridable: policy == "Allow"})
		}
	}
	slices.SortFunc(h.Infra.ResourceTags, func(a, b merge.ResourceTag) int { return cmp.Compare(a.Key, b.Key) })
	config := []string{"spec", "autoNode", "provisionerConfig"}
	karpenter := text(append(config, "name")...) == "Karpenter" &&
		text(append(config, "karpenter", "platform")...) == "AWS"
	h.LeavesClasses = !karpenter || plane.GetAnnotations()[overrideAnnotation] == "true"
	return h
}

// HostedReading is what is known about the HostedControlPlane. It is a value. The zero value is for an operator that
// does not ask for one.
type HostedReading struct {
	Asked bool // settings come from the HostedControlPlane
	Known bool // one was read since the start; its last state holds
	Hosted
	// Reason and Message say why the last answer does not count; "" if it does.
	Reason, Message string
}

// HostedGiven are the settings that flags give too. Zero values are not given.
type HostedGiven struct{ Infra merge.Infra }

// Next returns what is known after an answer. An answer that does not count changes only Reason and Message.
func (r HostedReading) Next(planes []unstructured.Unstructured, err error, given HostedGiven) HostedReading {
	keep := func(reason, format string, values ...any) HostedReading {
		r.Asked, r.Reason, r.Message = true, reason, fmt.Sprintf(format, values...)
		return r
	}
	names := make([]string, len(planes))
	for i := range planes {
		names[i] = planes[i].GetName()
	}
	slices.Sort(names)
	switch {
	case err != nil:
		return keep(hypershiftv1beta1.ReasonHostedUnreadable, "the HostedControlPlane cannot be read: %v", err)
	case len(planes) == 0:
		return keep(hypershiftv1beta1.ReasonHostedMissing,
			"there is no HostedControlPlane in this namespace: what the last one said holds")
	case len(planes) > 1:
		return keep(hypershiftv1beta1.ReasonHostedAmbiguous,
			"there are the HostedControlPlanes %s in this namespace: want one", strings.Join(names, " and "))
	}
	hosted := readHosted(&planes[0])
	for _, c := range []struct{ flag, given, said, field string }{
		{"--infra-id", given.Infra.InfraID, hosted.Infra.InfraID, "spec.infraID"},
		{"--instance-profile", given.Infra.InstanceProfile, hosted.Infra.InstanceProfile, "annotation " +
			profileAnnotation},
	} {
		if c.given != "" && c.given != c.said {
			return keep(hypershiftv1beta1.ReasonHostedDiffers,
				"%s is %q, and the %s of HostedControlPlane %s is %q: take the flag away", c.flag, c.given, c.field,
				names[0], c.said)
		}
	}
	if len(given.Infra.ResourceTags) > 0 && !slices.Equal(given.Infra.ResourceTags, hosted.Infra.ResourceTags) {
		return keep(hypershiftv1beta1.ReasonHostedDiffers, "--resource-tags and --overridable-resource-tags are %v, "+
			"and spec.platform.aws.resourceTags of HostedControlPlane %s %v: take the flags away",
			given.Infra.ResourceTags, names[0], hosted.Infra.ResourceTags)
	}
	return HostedReading{Asked: true, Known: true, Hosted: hosted}
}

// paused reports whether nothing may be written: while the HostedControlPlane says so, and until it could be read
// once. A text that is neither a time nor a boolean does not pause, as in HyperShift.
func (r HostedReading) paused(now time.Time) bool {
	if !r.Known {
		return r.Asked && (r.Reason == "" || r.Reason == hypershiftv1beta1.ReasonHostedUnreadable)
	}
	if until, err := time.Parse(time.RFC3339, r.PausedUntil); err == nil {
		return now.Before(until)
	}
	paused, _ := strconv.ParseBool(r.PausedUntil) // false with an error
	return paused
}

// condition returns the policy's condition HostedControlPlane.
func (r HostedReading) condition(now time.Time) condition.Value {
	const kind = hypershiftv1beta1.ConditionTypeHostedControlPlane
	switch {
	case r.Reason != "":
		return condition.False(kind, r.Reason, cut(r.Message))
	case r.paused(now):
		return condition.False(kind, hypershiftv1beta1.ReasonHostedPaused,
			fmt.Sprintf("nothing is written in the hosted cluster: spec.pausedUntil is %q", r.PausedUntil))
	case r.Deleting:
		return condition.False(kind, hypershiftv1beta1.ReasonHostedDeleting,
			"the hosted cluster is being deleted, its NodePools first")
	case r.LeavesClasses:
		return condition.True(kind, hypershiftv1beta1.ReasonHostedLeavesClasses,
			"node classes are left alone: spec.autoNode is not Karpenter on AWS, or the annotation "+
				overrideAnnotation+" is set")
	}
	return condition.True(kind, hypershiftv1beta1.ReasonHostedFound, "")
}

// SetHosted stores what is known about the HostedControlPlane, and reports whether that is news.
func (b *Board) SetHosted(reading HostedReading) (news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.hosted
	b.hosted = reading
	return !reflect.DeepEqual(before, reading)
}

// Hosted returns what is known about the HostedControlPlane.
func (b *Board) Hosted() HostedReading {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.hosted
}

// Paused reports whether nothing may be written in the guest.
func (b *Board) Paused(now time.Time) bool { return b.Hosted().paused(now) }

// BeginStep begins a step that may write in the guest, and returns false if writing is paused. End a begun step with
// [Board.EndStep].
func (b *Board) BeginStep(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.hosted.paused(now) {
		return false
	}
	b.steps++
	return true
}

// EndStep ends a step that [Board.BeginStep] began.
func (b *Board) EndStep() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.steps--
}

// pausing reports whether writing is paused while earlier steps are still running: they may still write.
func (b *Board) pausing(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.steps > 0 && b.hosted.paused(now)
}

// leavesClasses reports whether the HostedControlPlane says not to touch node classes.
func (b *Board) leavesClasses() bool {
	return b.Hosted().LeavesClasses
}
