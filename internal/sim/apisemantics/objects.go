package apisemantics

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

func withoutCancel(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

func namesAreUnique(b bench) {
	b.create(b.pool())
	b.want("creating the same name", b.Create(b.t.Context(), b.pool()), apierrors.IsAlreadyExists)
}

func generatedNames(b bench) {
	names := map[string]bool{}
	for range 5 {
		pool := b.pool()
		pool.Name, pool.GenerateName = "", b.prefix+"-"
		b.create(pool)
		if !strings.HasPrefix(pool.Name, pool.GenerateName) || len(pool.Name) <= len(pool.GenerateName) ||
			names[pool.Name] {
			b.t.Errorf("name %q for generateName %q; known are %v", pool.Name, pool.GenerateName, names)
		}
		names[pool.Name] = true
	}
}

func conflicts(b bench) {
	first := b.pool()
	b.create(first)
	if first.UID == "" || first.ResourceVersion == "" || first.CreationTimestamp.IsZero() {
		b.t.Fatalf("metadata %+v is not filled in", first.ObjectMeta)
	}
	second := first.DeepCopy()
	first.Labels = map[string]string{"a": "1"}
	b.must("updating", b.Update(b.t.Context(), first))
	second.Labels = map[string]string{"a": "2"}
	b.want("updating an old version", b.Update(b.t.Context(), second), apierrors.IsConflict)
	second.ResourceVersion = ""
	b.want("updating without a version", b.Update(b.t.Context(), second), apierrors.IsInvalid)
	b.get(second)
	if second.Labels["a"] != "1" || second.ResourceVersion != first.ResourceVersion {
		b.t.Errorf("labels %v, version %s; want those of the first writer, version %s", second.Labels,
			second.ResourceVersion, first.ResourceVersion)
	}
}

func noChange(b bench) {
	pool := b.pool()
	b.create(pool)
	pool.Labels = map[string]string{"a": "1"}
	b.must("updating", b.Update(b.t.Context(), pool)) // the first write stores defaults of the status too
	before := pool.ResourceVersion
	b.must("patching",
		b.Patch(b.t.Context(), pool,
			client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"1"}}}`))))
	b.must("updating", b.Update(b.t.Context(), pool))
	b.get(pool)
	if pool.ResourceVersion != before {
		b.t.Errorf("version %s became %s although nothing changed", before, pool.ResourceVersion)
	}
}

func statusApart(b bench) {
	pool := b.pool()
	pool.Status.Nodes = new(int64(7))
	b.create(pool)
	if pool.Status.Nodes != nil && *pool.Status.Nodes != 0 {
		b.t.Errorf("creating stored the status %v", *pool.Status.Nodes)
	}
	pool.Status.Nodes = new(int64(8))
	pool.Labels = map[string]string{"a": "main"}
	b.must("updating", b.Update(b.t.Context(), pool))
	if pool.Status.Nodes != nil && *pool.Status.Nodes != 0 || pool.Labels["a"] != "main" {
		b.t.Errorf("after an update: status %v, labels %v", pool.Status.Nodes, pool.Labels)
	}
	pool.Status.Nodes = new(int64(9))
	pool.Labels = map[string]string{"a": "status"}
	pool.Spec.Weight = new(int32(3))
	b.must("updating the status", b.Status().Update(b.t.Context(), pool))
	if pool.Status.Nodes == nil || *pool.Status.Nodes != 9 || pool.Labels["a"] != "main" || pool.Spec.Weight != nil {
		b.t.Errorf("after an update of the status: status %v, labels %v, weight %v", pool.Status.Nodes, pool.Labels,
			pool.Spec.Weight)
	}
}

func generations(b bench) {
	pool := b.pool()
	pool.Finalizers = []string{"example.com/hold"}
	b.create(pool)
	seen := []int64{pool.Generation}
	note := func(err error) {
		b.t.Helper()
		b.must("writing", err)
		seen = append(seen, pool.Generation)
	}
	pool.Labels = map[string]string{"a": "1"}
	note(b.Update(b.t.Context(), pool))
	pool.Status.Nodes = new(int64(1))
	note(b.Status().Update(b.t.Context(), pool))
	pool.Spec.Weight = new(int32(5))
	note(b.Update(b.t.Context(), pool))
	b.must("deleting", b.Delete(b.t.Context(), pool))
	b.get(pool)
	note(nil)
	if want := []int64{1, 1, 1, 2, 3}; !slices.Equal(seen, want) {
		b.t.Errorf("generations after create, labels, status, specification, deletion: %v, want %v", seen, want)
	}
}

func optimisticPatch(b bench) {
	pool := b.pool()
	b.create(pool)
	old := pool.DeepCopy()
	pool.Labels = map[string]string{"a": "1"}
	b.must("updating", b.Update(b.t.Context(), pool))
	late := old.DeepCopy()
	late.Labels = map[string]string{"b": "1"}
	err := b.Patch(b.t.Context(), late, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{}))
	b.want("patching an old version", err, apierrors.IsConflict)
	late = old.DeepCopy()
	late.Status.Nodes = new(int64(1))
	err = b.Status().Patch(b.t.Context(), late, client.MergeFromWithOptions(old, client.MergeFromWithOptimisticLock{}))
	b.want("patching the status of an old version", err, apierrors.IsConflict)
	fresh := pool.DeepCopy()
	fresh.Status.Nodes = new(int64(1))
	b.must("patching",
		b.Status().Patch(b.t.Context(), fresh,
			client.MergeFromWithOptions(pool, client.MergeFromWithOptimisticLock{})))
	if fresh.Status.Nodes == nil || fresh.ResourceVersion == pool.ResourceVersion {
		b.t.Errorf("after a patch: nodes %v, version %s", fresh.Status.Nodes, fresh.ResourceVersion)
	}
	foreign := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"uid":"another","labels":{"c":"1"}}}`))
	b.want("patching another UID", b.Patch(b.t.Context(), fresh, foreign), apierrors.IsInvalid)
	pod := b.pod("a")
	b.create(pod)
	b.want("patching another UID of a built-in kind", b.Patch(b.t.Context(), pod, foreign), apierrors.IsInvalid)
}

func plainPatch(b bench) {
	pool := b.pool()
	b.create(pool)
	old := pool.DeepCopy()
	pool.Labels = map[string]string{"a": "1"}
	b.must("updating", b.Update(b.t.Context(), pool))
	late := old.DeepCopy()
	late.Annotations = map[string]string{"b": "1"}
	b.must("patching", b.Patch(b.t.Context(), late, client.MergeFrom(old)))
	if late.Labels["a"] != "1" || late.Annotations["b"] != "1" {
		b.t.Errorf("the patch returns labels %v, annotations %v; want what both wrote", late.Labels, late.Annotations)
	}
}

func patchRemoves(b bench) {
	pool := b.pool()
	pool.Labels, pool.Annotations = map[string]string{"a": "1", "b": "1"}, map[string]string{"c": "1"}
	pool.Spec.Weight = new(int32(4))
	b.create(pool)
	data :=
		`{"metadata":{"labels":{"a":null,"d":"2"},"annotations":null},"spec":{"weight":null,` +
			`"template":{"metadata":{"labels":{"team":"x"}}}}}`
	b.must("patching", b.Patch(b.t.Context(), pool, client.RawPatch(types.MergePatchType, []byte(data))))
	if len(pool.Labels) != 2 || pool.Labels["d"] != "2" || len(pool.Annotations) != 0 || pool.Spec.Weight != nil ||
		pool.Spec.Template.ObjectMeta.Labels["team"] != "x" || len(pool.Spec.Template.Spec.Requirements) != 1 {
		b.t.Errorf("after the patch: labels %v, annotations %v, weight %v, template %+v", pool.Labels,
			pool.Annotations, pool.Spec.Weight, pool.Spec.Template)
	}
}

func jsonPatch(b bench) {
	pool := b.pool()
	pool.Finalizers = []string{"example.com/a", "example.com/b"}
	b.create(pool)
	send := func(data string) error {
		return b.Patch(b.t.Context(), pool, client.RawPatch(types.JSONPatchType, []byte(data)))
	}
	stale := func(err error) bool {
		status, ok := err.(apierrors.APIStatus)
		return ok && apierrors.IsInvalid(err) &&
			(status.Status().Details == nil || len(status.Status().Details.Causes) == 0)
	}
	b.want("a test of an old list",
		send(
			`[{"op":"test","path":"/metadata/finalizers","value":["example.com/a"]},{"op":"remove","path":"/metadata/finalizers"}]`),
		stale)
	b.want("a test of another UID",
		send(`[{"op":"test","path":"/metadata/uid","value":"another"},{"op":"remove","path":"/metadata/finalizers"}]`),
		stale)
	b.want("a test for nothing where something is", send(`[{"op":"test","path":"/metadata/finalizers","value":null}]`),
		stale)
	b.must("a patch",
		send(
			`[{"op":"test","path":"/metadata/labels","value":null},{"op":"add","path":"/metadata/labels","value":{"x/y":"1"}},
		{"op":"test","path":"/metadata/finalizers","value":["example.com/a","example.com/b"]},{"op":"replace","path":"/metadata/finalizers","value":["example.com/b"]}]`))
	b.must("a patch of an entry", send(`[{"op":"add","path":"/metadata/labels/z~1w","value":"2"}]`))
	b.want("a test for no entry where one is", send(`[{"op":"test","path":"/metadata/labels/z~1w","value":null}]`),
		stale)
	b.must("a test for no entry where none is", send(`[{"op":"test","path":"/metadata/labels/u~1v","value":null}]`))
	version := func(of string) string {
		return `[{"op":"test","path":"/metadata/resourceVersion","value":"` + of + `"},` +
			`{"op":"add","path":"/metadata/labels/v","value":"1"}]`
	}
	old := pool.ResourceVersion
	b.must("a test of the version", send(version(old)))
	b.want("a test of an old version", send(version(old)), stale)
	if pool.Labels["x/y"] != "1" || pool.Labels["z/w"] != "2" ||
		!slices.Equal(pool.Finalizers, []string{"example.com/b"}) {
		b.t.Errorf("labels %v, finalizers %v", pool.Labels, pool.Finalizers)
	}
	jsonPatchOfItems(b, pool, send, stale)
	b.must("a patch that removes",
		send(
			`[{"op":"test","path":"/metadata/finalizers","value":["example.com/b"]},{"op":"remove","path":"/metadata/finalizers"}]`))
	if len(pool.Finalizers) != 0 {
		b.t.Errorf("finalizers %v are left", pool.Finalizers)
	}
}

// jsonPatchOfItems adds, tests and removes items of a list that has one item.
func jsonPatchOfItems(b bench, pool *karpenterv1.NodePool, send func(string) error, stale func(error) bool) {
	b.must("an item at the end", send(`[{"op":"add","path":"/metadata/finalizers/-","value":"example.com/c"}]`))
	b.want("a test of another item", send(`[
		{"op":"test","path":"/metadata/finalizers/0","value":"example.com/c"},
		{"op":"remove","path":"/metadata/finalizers/0"}]`), stale)
	b.want("an item that is not there", send(`[{"op":"remove","path":"/metadata/finalizers/2"}]`), stale)
	b.want("an item of a list that is not there",
		send(`[{"op":"add","path":"/metadata/ownerReferences/-","value":{}}]`), stale)
	b.must("an item that goes, and another", send(`[
		{"op":"test","path":"/metadata/finalizers/1","value":"example.com/c"},{"op":"remove","path":"/metadata/finalizers/1"},
		{"op":"test","path":"/metadata/finalizers/0","value":"example.com/b"},
		{"op":"replace","path":"/metadata/finalizers/0","value":"example.com/d"},
		{"op":"replace","path":"/metadata/finalizers/0","value":"example.com/b"}]`))
	if !slices.Equal(pool.Finalizers, []string{"example.com/b"}) {
		b.t.Errorf("finalizers %v", pool.Finalizers)
	}
}

func finalizers(b bench) {
	pool := b.pool()
	pool.Finalizers = []string{"example.com/hold"}
	b.create(pool)
	b.must("deleting", b.Delete(b.t.Context(), pool))
	b.get(pool)
	since := pool.DeletionTimestamp
	if since == nil || time.Since(since.Time) < -365*24*time.Hour {
		b.t.Fatalf("deletion timestamp %v", since)
	}
	version := pool.ResourceVersion
	b.must("deleting again", b.Delete(b.t.Context(), pool))
	b.get(pool)
	if pool.ResourceVersion != version || !pool.DeletionTimestamp.Equal(since) {
		b.t.Errorf("deleting again changed version %s to %s, timestamp %v to %v", version, pool.ResourceVersion, since,
			pool.DeletionTimestamp)
	}
	pool.DeletionTimestamp, pool.Labels = nil, map[string]string{"a": "1"}
	b.must("updating", b.Update(b.t.Context(), pool))
	if pool.DeletionTimestamp == nil || pool.Labels["a"] != "1" {
		b.t.Errorf("after an update: deletion timestamp %v, labels %v", pool.DeletionTimestamp, pool.Labels)
	}
	pool.Finalizers = nil
	b.must("taking the finalizer off", b.Update(b.t.Context(), pool))
	b.want("getting it", b.Get(b.t.Context(), client.ObjectKeyFromObject(pool), pool), apierrors.IsNotFound)
}

func lateFinalizer(b bench) {
	pool := b.pool()
	pool.Finalizers = []string{"example.com/hold"}
	b.create(pool)
	b.must("deleting", b.Delete(b.t.Context(), pool))
	b.get(pool)
	pool.Finalizers = append(pool.Finalizers, "example.com/late")
	b.want("adding a finalizer", b.Update(b.t.Context(), pool), apierrors.IsInvalid)
}

func preconditions(b bench) {
	pool := b.pool()
	b.create(pool)
	b.want("deleting another UID", b.Delete(b.t.Context(), pool, client.Preconditions{UID: new(types.UID("another"))}),
		apierrors.IsConflict)
	b.must("deleting the UID", b.Delete(b.t.Context(), pool, client.Preconditions{UID: &pool.UID}))
	b.want("deleting again", b.Delete(b.t.Context(), pool), apierrors.IsNotFound)
}

func nameIsFree(b bench) {
	first := b.pool()
	b.create(first)
	b.must("deleting", b.Delete(b.t.Context(), first))
	second := b.pool()
	b.create(second)
	if second.UID == first.UID || second.ResourceVersion == first.ResourceVersion {
		b.t.Errorf("the second of the name has UID %s and version %s of the first", second.UID, second.ResourceVersion)
	}
	first.Labels = map[string]string{"a": "1"}
	b.want("updating the first", b.Update(b.t.Context(), first), apierrors.IsConflict)
}

func notFound(b bench) {
	pool := b.pool()
	ctx := b.t.Context()
	empty := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"1"}}}`))
	for what, err := range map[string]error{
		"get": b.Get(ctx, client.ObjectKeyFromObject(pool), b.pool()), "delete": b.Delete(ctx, b.pool()),
		"patch": b.Patch(ctx, b.pool(), empty), "patch of the status": b.Status().Patch(ctx, b.pool(), empty),
	} {
		b.want(what, err, apierrors.IsNotFound)
	}
}

// listen returns the next n events about objects of the test.
func (b bench) listen(w watch.Interface, n int) []watch.Event {
	b.t.Helper()
	var events []watch.Event
	for len(events) < n {
		select {
		case e, open := <-w.ResultChan():
			if !open {
				b.t.Fatalf("the watch ended after %d events", len(events))
			}
			object, ok := e.Object.(client.Object)
			if ok && (e.Type == watch.Bookmark || strings.HasPrefix(object.GetName(), b.prefix)) {
				events = append(events, e)
			}
		case <-time.After(30 * time.Second):
			b.t.Fatalf("only %d of %d events within 30 s: %v", len(events), n, events)
		}
	}
	return events
}

func watchOrder(b bench) {
	w, err := b.Watch(b.t.Context(), &karpenterv1.NodePoolList{})
	b.must("watching", err)
	defer w.Stop()
	pool := b.pool()
	pool.Finalizers = []string{"example.com/hold"}
	b.create(pool)
	versions := []string{pool.ResourceVersion}
	pool.Labels = map[string]string{"a": "1"}
	b.must("updating", b.Update(b.t.Context(), pool))
	versions = append(versions, pool.ResourceVersion)
	pool.Status.Nodes = new(int64(3))
	b.must("updating the status", b.Status().Update(b.t.Context(), pool))
	versions = append(versions, pool.ResourceVersion)
	b.must("deleting", b.Delete(b.t.Context(), pool))
	b.get(pool)
	versions = append(versions, pool.ResourceVersion)
	pool.Finalizers = nil
	b.must("letting it go", b.Update(b.t.Context(), pool))
	want := []watch.EventType{watch.Added, watch.Modified, watch.Modified, watch.Modified, watch.Deleted}
	for i, e := range b.listen(w, len(want)) {
		object := e.Object.(*karpenterv1.NodePool)
		if e.Type != want[i] || i < len(versions) && object.ResourceVersion != versions[i] {
			b.t.Errorf("event %d is %s of version %s, want %s of the versions %v", i, e.Type, object.ResourceVersion,
				want[i], versions)
		}
		if e.Type == watch.Deleted && (slices.Contains(versions, object.ResourceVersion) ||
			object.DeletionTimestamp == nil) {
			b.t.Errorf("the last event has version %s and deletion timestamp %v, want a version of its own",
				object.ResourceVersion, object.DeletionTimestamp)
		}
	}
}

func bookmarks(b bench) {
	pool := b.pool()
	b.create(pool)
	yes := true
	w, err := b.Watch(b.t.Context(), &karpenterv1.NodePoolList{}, &client.ListOptions{Raw: &metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}})
	b.must("watching", err)
	defer w.Stop()
	events := b.listen(w, 2)
	if events[0].Type != watch.Added || events[0].Object.(*karpenterv1.NodePool).UID != pool.UID {
		b.t.Errorf("the first event is %s, want what there was", events[0].Type)
	}
	mark, ok := events[1].Object.(*karpenterv1.NodePool)
	if events[1].Type != watch.Bookmark || !ok || mark.Annotations["k8s.io/initial-events-end"] != "true" ||
		mark.ResourceVersion == "" {
		b.t.Errorf("the second event is %s %v, want a bookmark behind the initial events", events[1].Type,
			events[1].Object)
	}
}

func gracefulPods(b bench) {
	pod := b.pod("a")
	b.create(pod)
	if pod.Status.Phase != corev1.PodPending {
		b.t.Errorf("a new pod's phase is %q", pod.Status.Phase)
	}
	b.must("deleting", b.Delete(b.t.Context(), pod))
	b.get(pod)
	if pod.DeletionGracePeriodSeconds == nil || *pod.DeletionGracePeriodSeconds != 30 || pod.DeletionTimestamp == nil {
		b.t.Fatalf("grace period %v, deletion timestamp %v; want 30 s", pod.DeletionGracePeriodSeconds,
			pod.DeletionTimestamp)
	}
	due := pod.DeletionTimestamp.Time
	b.must("deleting sooner", b.Delete(b.t.Context(), pod, client.GracePeriodSeconds(10)))
	b.get(pod)
	if *pod.DeletionGracePeriodSeconds != 10 || !pod.DeletionTimestamp.Time.Equal(due.Add(-20*time.Second)) {
		b.t.Errorf("grace period %d, deletion timestamp %v; want 10 s and 20 s before %v",
			*pod.DeletionGracePeriodSeconds, pod.DeletionTimestamp, due)
	}
	b.must("deleting later", b.Delete(b.t.Context(), pod, client.GracePeriodSeconds(60)))
	b.get(pod)
	if *pod.DeletionGracePeriodSeconds != 10 {
		b.t.Errorf("grace period %d; want it never longer", *pod.DeletionGracePeriodSeconds)
	}
	b.must("deleting at once", b.Delete(b.t.Context(), pod, client.GracePeriodSeconds(0)))
	b.want("getting it", b.Get(b.t.Context(), client.ObjectKeyFromObject(pod), pod), apierrors.IsNotFound)
	waiting := b.pod("b")
	waiting.Spec.NodeName, waiting.Spec.SchedulerName = "", "nobody"
	b.create(waiting)
	b.must("deleting a pod without a node", b.Delete(b.t.Context(), waiting))
	b.want("getting it", b.Get(b.t.Context(), client.ObjectKeyFromObject(waiting), waiting), apierrors.IsNotFound)
}
