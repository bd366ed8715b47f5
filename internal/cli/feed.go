package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// Pauses before a part lists again: after a failure, and when there is no such kind or no right to list it.
const (
	listAgain   = 2 * time.Second
	listRefused = 30 * time.Second
)

// feed keeps the objects of a cluster that a plan looks at up to date (U-05, U-31). Each resource is listed once, page
// by page, and then watched, so that looking again costs no requests. Use [newFeed].
type feed struct{ parts []*part }

// part is one resource of a feed. Only run fills it.
type part struct {
	whatif.Resource
	client dynamic.NamespaceableResourceInterface
	reads  whatif.Understanding
	first  chan struct{} // closed after the first list, or the first failed one

	mutex   sync.Mutex
	objects map[string]whatif.Document
	err     error // why objects are old or missing; nil while they are up to date
}

// newFeed follows resources until ctx ends, and waits until each was read once. beside runs each in the background.
func newFeed(ctx context.Context, beside func(func()), client dynamic.Interface,
	resources []whatif.Resource) (*feed, error) {
	reads, err := whatif.NewUnderstanding()
	if err != nil {
		return nil, err
	}
	f := &feed{}
	for _, resource := range resources {
		p := &part{Resource: resource, client: client.Resource(resource.GroupVersionResource), reads: reads.Another(),
			first: make(chan struct{})}
		f.parts = append(f.parts, p)
		beside(func() { p.run(ctx) })
	}
	for _, p := range f.parts {
		select {
		case <-p.first:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return f, nil
}

// documents returns the objects of all resources, in the order of their names, and unread as in readAll. A resource
// that is not up to date is an error.
func (f *feed) documents() (documents []whatif.Document, unread []string, err error) {
	for _, p := range f.parts {
		held, err := p.held()
		switch {
		case apierrors.IsForbidden(err) && !p.Required:
			unread = append(unread, mayNotBeListed(p.Resource))
		case apierrors.IsForbidden(err):
			return nil, nil, mayNotList(p.GroupVersionResource)
		case err != nil:
			return nil, nil, err
		}
		documents = append(documents, held...)
	}
	return documents, unread, nil
}

func (p *part) held() ([]whatif.Document, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	list := make([]whatif.Document, 0, len(p.objects))
	for _, key := range slices.Sorted(maps.Keys(p.objects)) {
		list = append(list, p.objects[key])
	}
	return list, p.err
}

// run lists and watches until ctx ends.
func (p *part) run(ctx context.Context) {
	for first := true; ; first = false {
		version, err := p.list(ctx)
		there := version != ""
		p.failed(err)
		if first {
			close(p.first)
		}
		wait := listAgain
		switch {
		case err == nil && there:
			err = p.watch(ctx, version)
			p.failed(err)
		case err == nil || apierrors.IsForbidden(err):
			wait = listRefused
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

func (p *part) failed(err error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.err = err
}

// list reads all objects. The version is "" when there is no such kind.
func (p *part) list(ctx context.Context) (version string, err error) {
	all := map[string]whatif.Document{}
	options := metav1.ListOptions{Limit: page}
	for more := true; more; more = options.Continue != "" {
		found, err := p.client.List(ctx, options)
		if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("listing %s: %w", p.GroupResource(), err)
		}
		for i := range found.Items {
			key, document := p.understood(&found.Items[i])
			all[key] = document
		}
		version, options.Continue = found.GetResourceVersion(), found.GetContinue()
		if version == "" {
			version = "0"
		}
	}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.objects = all
	return version, nil
}

// watch takes in changes since a version, until that version is no longer kept. It reconnects after a lost connection;
// until then the objects are marked as old.
func (p *part) watch(ctx context.Context, version string) error {
	watching := &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (
		watch.Interface, error) {
		events, err := p.client.Watch(ctx, options)
		if err != nil {
			err = fmt.Errorf("watching %s: %w", p.GroupResource(), err)
		}
		p.failed(err)
		return events, err
	}}
	if version == "0" { // from a server without versions, as in tests: RetryWatcher wants one
		version = "1"
	}
	events, err := watchtools.NewRetryWatcherWithContext(ctx, version, watching)
	if err != nil {
		return fmt.Errorf("watching %s: %w", p.GroupResource(), err)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		object, isObject := event.Object.(*unstructured.Unstructured)
		switch {
		case event.Type == watch.Error:
			return fmt.Errorf("watching %s: %w", p.GroupResource(), apierrors.FromObject(event.Object))
		case !isObject || event.Type == watch.Bookmark:
		default:
			p.changed(event.Type, object)
		}
	}
	return ctx.Err()
}

func (p *part) changed(how watch.EventType, object *unstructured.Unstructured) {
	key, document := p.understood(object)
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if how == watch.Deleted {
		delete(p.objects, key)
		return
	}
	p.objects[key] = document
}

func (p *part) understood(object *unstructured.Unstructured) (key string, document whatif.Document) {
	return object.GetNamespace() + "/" + object.GetName(),
		p.reads.Of(whatif.Document{Where: "the cluster", Content: object.Object, Stored: true})
}

// mayNotBeListed returns the text about a resource that is left out because a right is missing.
func mayNotBeListed(resource whatif.Resource) string {
	return fmt.Sprintf("%s, for want of the right to list them", resource.GroupResource())
}
