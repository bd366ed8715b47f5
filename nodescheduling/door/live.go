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
	// schemaEvery is how often the schema of Scheduler is looked at while nothing says that it changed, and schemaJitter
	// the part of it that is added by chance, so that doors do not ask together.
	schemaEvery  = 30 * time.Second
	schemaJitter = 0.2
	// settleWithin is how long it is looked at with each reading after Scheduler came, went, or changed between having
	// groups and having none: its definition may have changed, and what the API server publishes follows a moment later.
	settleWithin = 10 * time.Second
)

// Live is what a cluster says beside the configuration.
type Live struct {
	// Source is where it says it: one of evaluator.Lives.
	Source evaluator.Source
	// Scheduler is nil where there is none. It is there whatever the source is, since mastersSchedulable counts (N70).
	Scheduler *configv1.Scheduler
	// Served says whether the cluster has the kind Scheduler.
	Served bool
	// Groups are the NodeSchedulingGroups, where those are the source.
	Groups []groupsv1alpha1.NodeSchedulingGroup
}

// Add returns the sources with what is said.
func (l Live) Add(to evaluator.Sources) evaluator.Sources {
	to.Scheduler, to.Live, to.Groups = l.Scheduler, evaluator.FromScheduler, l.Groups
	// Without its definition, too, that kind is what an administrator of a cluster with a Scheduler that lacks the field
	// has to write.
	if l.Source == evaluator.FromGroups || l.Source == evaluator.NoSource && l.Served {
		to.Live = evaluator.FromGroups
	}
	return to
}

// MastersSchedulable says whether Scheduler opens the nodes of the control plane to all pods (N70).
func (l Live) MastersSchedulable() bool {
	return l.Scheduler != nil && l.Scheduler.Name == configv1.SchedulerName && l.Scheduler.Spec.MastersSchedulable
}

// seen tells apart what differs.
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

// LiveReader finds out which source a cluster has, and reads it. It is not for several goroutines.
type LiveReader struct {
	client dynamic.Interface
	schema schema
	now    func() time.Time

	keeps   bool // the API server keeps schedulingGroups of Scheduler
	known   bool // it was found out once
	next    time.Time
	settles time.Time // until then it is looked at with each reading
	last    signs
}

// signs are what shows with each reading. When they change, the definition of Scheduler may have changed.
type signs struct{ served, there, says bool }

// NewLiveReader makes a reader of both kinds. The second client asks for what the API server publishes of its schemas:
// Discovery().RESTClient() of a clientset.
func NewLiveReader(client dynamic.Interface, openAPI rest.Interface) *LiveReader {
	return &LiveReader{client: client, schema: schema{client: openAPI}, now: time.Now}
}

// Read reads the source that counts. A schema that cannot be read changes nothing: the source that was found last
// stays, and is an error until there is one.
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

// choose finds out whether the API server keeps the field. A Scheduler that has it is proof: what is not kept is
// dropped when it is read, too. Where there is no such kind there is nothing to ask for.
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

// unserved says whether an answer is that there is no such kind, and not that there is no such object.
func unserved(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// readScheduler reads the object; a cluster without it, or without the kind, has none (N12). Fields that nobody knows
// yet are left out (N69). It also says whether the object has the field.
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

// Groups lists the NodeSchedulingGroups, and says whether the cluster has the kind.
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
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Items[i].Object, &groups[i]); err != nil {
			return nil, false, fmt.Errorf("reading %s %s: %w: %w", groupsv1alpha1.Kind, found.Items[i].GetName(), errMalformed,
				err)
		}
	}
	return groups, true, nil
}
