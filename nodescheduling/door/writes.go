package door

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	groupsv1alpha1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/scheduling/v1alpha1"
)

// GroupWrites judges writes of NodeSchedulingGroups. In Scheduler, a rule of the CRD does that (N70); here, two
// objects are involved.
type GroupWrites struct{ client dynamic.Interface }

// NewGroupWrites returns a GroupWrites. It reads Scheduler for each write that sets mode Enable, which is rare.
func NewGroupWrites(client dynamic.Interface) GroupWrites { return GroupWrites{client} }

// Concern reports whether a request is about NodeSchedulingGroups.
func (w GroupWrites) Concern(group, resource, subresource string) bool {
	return w.client != nil && group == groupsv1alpha1.Group && resource == groupsv1alpha1.Resource && subresource == ""
}

// Refusal returns the message for a user who sets mode Enable while Scheduler opens the nodes to all pods. "" lets the
// write pass. It also passes if the stored object has mode Enable already. The objects are as in the API server, nil
// if there is none.
func (w GroupWrites) Refusal(ctx context.Context, object, old map[string]any) string {
	if mode(object) != configv1.Enable || mode(old) == configv1.Enable {
		return ""
	}
	const code = "NodeSchedulingPolicy [%s/MastersSchedulable]: spec.mode of the %s %q cannot be %s: "
	name, _, _ := unstructured.NestedString(object, "spec", "name")
	at := fmt.Sprintf(code, name, groupsv1alpha1.Kind, groupsv1alpha1.NameOf(configv1.GroupName(name)),
		configv1.Enable)
	found, err := readScheduler(ctx, w.client)
	switch {
	case apierrors.IsNotFound(err):
		return ""
	case err != nil:
		return fmt.Sprintf(
			"%swhether spec.mastersSchedulable of the Scheduler %q (config.openshift.io/v1) is true could not be "+
				"found out (%q). Try again.",
			at, configv1.SchedulerName, err.Error())
	}
	if open, _, _ := unstructured.NestedBool(found.Object, "spec", "mastersSchedulable"); !open {
		return ""
	}
	return fmt.Sprintf(
		"%sspec.mastersSchedulable of the Scheduler %q (config.openshift.io/v1) is true, which opens the control plane "+
			"nodes to all pods. "+
			"Set it to false first, or the mode to %s or %s.", at, configv1.SchedulerName, configv1.Disable,
		configv1.Inform)
}

func mode(object map[string]any) configv1.GroupMode {
	text, _, _ := unstructured.NestedString(object, "spec", "mode")
	return configv1.GroupMode(text)
}
