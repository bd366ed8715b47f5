package door

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	groupsv1alpha1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/scheduling/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

const (
	// schemaEvery is how often the schema of Scheduler is read while nothing indicates a change. schemaJitter is the
	// maximum random part added to it, so that doors do not ask at the same time.
	schemaEvery  = 30 * time.Second
	schemaJitter = 0.2
	// settleWithin is how long each reading also reads the schema, after Scheduler appears, disappears, or gains or
	// loses its field of groups. Then its CRD may have changed, and the API server publishes the new schema a moment
	// later.
	settleWithin = 10 * time.Second
)

// Live is the content of a cluster's live source.
type Live struct {
	// Source is the live source: one of evaluator.Lives.
	Source evaluator.Source
	// Scheduler is nil if there is none. It is set for every source, since its mastersSchedulable counts (N70).
	Scheduler *configv1.Scheduler
	// Served says that the cluster has the kind Scheduler.
	Served bool
	// Groups are the NodeSchedulingGroups, if they are the source.
	Groups []groupsv1alpha1.NodeSchedulingGroup
}

// Add returns the sources with the content of the live source.
func (l Live) Add(to evaluator.Sources) evaluator.Sources {
	to.Scheduler, to.Live, to.Groups = l.Scheduler, evaluator.FromScheduler, l.Groups
	// If Scheduler is served without the field, an administrator has to write a NodeSchedulingGroup, even if its CRD
	// is not installed yet.
	if l.Source == evaluator.FromGroups || l.Source == evaluator.NoSource && l.Served {
		to.Live = evaluator.FromGroups
	}
	return to
}

// MastersSchedulable reports whether Scheduler opens the control plane nodes to all pods (N70).
func (l Live) MastersSchedulable() bool {
	return l.Scheduler != nil && l.Scheduler.Name == configv1.SchedulerName && l.Scheduler.Spec.MastersSchedulable
}

// seen returns a text that differs if the content does.
func (l Live) seen() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %t", l.Source, l.Served)
	if l.Scheduler != nil {
		fmt.Fprintf(&b, " %s/%s", l.Scheduler.UID, l.Scheduler.ResourceVersion)
	}
	for _, group := range l.Groups {
		fmt.Fprintf(&b, " %s/%s", group.UID, group.ResourceVersion)
	}
	return b.String()
}

// LiveReader finds out which live source a cluster has, and reads it. It is not safe for concurrent use.
type LiveReader struct {
	client dynamic.Interface
	schema schema
	now    func() time.Time

	keeps   bool // the API server keeps the field schedulingGroups of Scheduler
	known   bool // keeps was determined once
	next    time.Time
	settles time.Time // until then each reading reads the schema
	last    signs
}

// signs are what each reading sees. When they change, the CRD of Scheduler may have changed.
type signs struct{ served, there, says bool }

// NewLiveReader returns a reader of both kinds. openAPI reads the schemas that the API server publishes: pass
// Discovery().RESTClient() of a clientset.
func NewLiveReader(client dynamic.Interface, openAPI rest.Interface) *LiveReader {
	return &LiveReader{client: client, schema: schema{client: openAPI}, now: time.Now}
}

// Read reads the live source in use. If the schema cannot be read, the source found last stays; if none was found yet,
// Read returns an error.
func (r *LiveReader) Read(ctx context.Context) (Live, error) {
	live, says, err := r.readScheduler(ctx)
	if err != nil {
		return Live{}, err
	}
	if err := r.choose(ctx, signs{live.Served, live.Scheduler != nil, says}); err != nil {
		return Live{}, err
	}
	if r.keeps {
		live.Source = evaluator.FromScheduler
		return live, nil
	}
	groups, served, err := r.Groups(ctx)
	if err != nil {
		return Live{}, err
	}
	if live.Source, live.Groups = evaluator.FromGroups, groups; !served {
		live.Source = evaluator.NoSource
	}
	return live, nil
}

// choose finds out whether the API server keeps the field. A Scheduler with the field is proof: the API server drops
// unknown fields on reads too. If the kind is not served, there is nothing to ask.
func (r *LiveReader) choose(ctx context.Context, now signs) error {
	at := r.now()
	if now != r.last {
		r.last, r.settles = now, at.Add(settleWithin)
	}
	switch {
	case !now.served || now.says:
		r.keeps, r.known = now.says, true
		return nil
	case at.After(r.settles) && at.Before(r.next):
		return nil
	}
	keeps, err := r.schema.look(ctx)
	if err != nil {
		if r.known {
			return nil
		}
		return err
	}
	r.keeps, r.known, r.next = keeps, true, at.Add(wait.Jitter(schemaEvery, schemaJitter))
	return nil
}

// unserved reports whether the API server has no such kind, as opposed to no such object.
func unserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// readScheduler reads the Scheduler; there is none in a cluster without the object or the kind (N12). It ignores
// unknown fields (N69). says reports whether the object has the field.
func (r *LiveReader) readScheduler(ctx context.Context) (live Live, says bool, err error) {
	found, err := readScheduler(ctx, r.client)
	switch {
	case unserved(err):
		return Live{}, false, nil
	case apierrors.IsNotFound(err):
		return Live{Served: true}, false, nil
	case err != nil:
		return Live{}, false, fmt.Errorf("reading Scheduler %s: %w", configv1.SchedulerName, err)
	}
	live = Live{Served: true, Scheduler: &configv1.Scheduler{}}
	_, says, _ = unstructured.NestedFieldNoCopy(found.Object, "spec", "schedulingGroups")
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, live.Scheduler); err != nil {
		return Live{}, false, fmt.Errorf("reading Scheduler %s: %w: %w", configv1.SchedulerName, errMalformed, err)
	}
	return live, says, nil
}

func readScheduler(ctx context.Context, client dynamic.Interface) (*unstructured.Unstructured, error) {
	return client.Resource(configv1.GroupVersion().WithResource("schedulers")).Get(ctx, configv1.SchedulerName,
		metav1.GetOptions{})
}

// Groups returns the NodeSchedulingGroups, and whether the cluster has the kind.
func (r *LiveReader) Groups(ctx context.Context) ([]groupsv1alpha1.NodeSchedulingGroup, bool, error) {
	found, err := r.client.Resource(groupsv1alpha1.GroupVersion().WithResource(groupsv1alpha1.Resource)).List(ctx,
		metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("listing the objects of kind %s: %w", groupsv1alpha1.Kind, err)
	}
	groups := make([]groupsv1alpha1.NodeSchedulingGroup, len(found.Items))
	for i := range found.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Items[i].Object,
			&groups[i]); err != nil {
			return nil, false, fmt.Errorf("reading %s %s: %w: %w", groupsv1alpha1.Kind, found.Items[i].GetName(),
				errMalformed, err)
		}
	}
	return groups, true, nil
}
