package cli

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// karpenterSource is Karpenter's name in its events.
const karpenterSource = "karpenter"

// karpenterSays returns what an explanation tells about Karpenter where Karpenter decides: its last event on the
// object. Without a client, as for files, it looks for none.
func karpenterSays(ctx context.Context, client dynamic.Interface, about whatif.About) (*whatif.Decides, error) {
	says := &whatif.Decides{Program: whatif.ProgramKarpenter}
	if client == nil {
		says.Unread = "they are not in files"
		return says, nil
	}
	// Events about cluster-scoped objects are in the default namespace.
	namespace := cmp.Or(about.Namespace, metav1.NamespaceDefault)
	events := client.Resource(corev1.SchemeGroupVersion.WithResource("events")).Namespace(namespace)
	list, err := events.List(ctx, metav1.ListOptions{
		FieldSelector: fmt.Sprintf("involvedObject.kind=%s,involvedObject.name=%s", about.Kind, about.Name)})
	switch {
	case apierrors.IsForbidden(err):
		says.Unread = "for want of the right to list events in namespace " + namespace
		return says, nil
	case err != nil:
		return nil, fmt.Errorf("listing events of %s in namespace %s: %w", about, namespace, err)
	}
	says.Event = lastOf(list.Items, about)
	return says, nil
}

// lastOf returns the last event of Karpenter about an object.
func lastOf(items []unstructured.Unstructured, about whatif.About) *whatif.LastEvent {
	var last *whatif.LastEvent
	for _, item := range items {
		var e corev1.Event
		if understand(item.Object, &e) != nil || e.InvolvedObject.Kind != about.Kind ||
			e.InvolvedObject.Name != about.Name ||
			cmp.Or(e.ReportingController, e.Source.Component) != karpenterSource {
			continue
		}
		at := e.LastTimestamp.Time
		for _, other := range []metav1.Time{{Time: e.EventTime.Time}, e.FirstTimestamp, e.CreationTimestamp} {
			if at.IsZero() {
				at = other.Time
			}
		}
		if text := at.UTC().Format("2006-01-02T15:04:05Z"); last == nil || text > last.At {
			last = &whatif.LastEvent{Reason: e.Reason, Message: e.Message, At: text}
		}
	}
	return last
}
