package apiserver

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Index makes objects of a kind searchable in a cache by a field.
type Index struct {
	Object client.Object
	Field  string
	Value  func(client.Object) []string
}

// Cache is what one replica has seen of the server. It only advances when [Cache.Begin] and [Cache.Apply] are called.
// Each kind advances separately, as with informers: events of one kind come in order, events of two kinds need not. It
// implements [Reads].
type Cache struct {
	server  *Server
	indexes map[*kind][]Index
	kinds   map[*kind]*view
}

// view is one kind in a cache.
type view struct {
	store
	version uint64 // of the last event that was applied
	indexed map[string]map[string][]client.ObjectKey
}

// NewCache returns a cache without kinds.
func (s *Server) NewCache(indexes []Index) *Cache {
	c := &Cache{server: s, indexes: map[*kind][]Index{}, kinds: map[*kind]*view{}}
	for _, index := range indexes {
		k := s.kinds.of(index.Object)
		c.indexes[k] = append(c.indexes[k], index)
	}
	return c
}

// Begin lists a kind as it is on the server now, and returns the objects. From then on the cache serves the kind.
func (c *Cache) Begin(kindName string) []client.Object {
	k := c.server.kinds.byName[kindName]
	v := &view{store: store{objects: map[client.ObjectKey]client.Object{}}, version: c.server.version,
		indexed: map[string]map[string][]client.ObjectKey{}}
	for _, index := range c.indexes[k] {
		v.indexed[index.Field] = map[string][]client.ObjectKey{}
	}
	c.kinds[k] = v
	var all []client.Object
	for _, key := range c.server.stores[k].keys {
		object := c.server.stores[k].objects[key]
		c.put(k, v, key, nil, object)
		all = append(all, object)
	}
	return all
}

// Apply takes in the next event of a kind, and returns the object that the cache had before, nil for none. fresh is
// false for events from before the list.
func (c *Cache) Apply(e Event) (old client.Object, fresh bool) {
	v := c.kinds[e.kind]
	if v == nil || e.Version < v.version || e.Version == v.version && !e.Listed {
		return nil, false
	}
	v.version = e.Version
	key := client.ObjectKeyFromObject(e.Object)
	old = v.objects[key]
	if e.Type == Deleted {
		c.unindex(e.kind, v, key, old)
		v.drop(key)
		return old, true
	}
	c.put(e.kind, v, key, old, e.Object)
	return old, true
}

// Relist lists a kind that the cache serves, as it is on the server now, and returns the differences to the cache.
// Events in between are lost. deletions says whether deletions come first: informers do either.
func (c *Cache) Relist(kindName string, deletions bool) []Event {
	k := c.server.kinds.byName[kindName]
	v, t := c.kinds[k], c.server.stores[k]
	var gone, others []Event
	for _, key := range v.keys {
		if t.objects[key] == nil {
			gone = append(gone, Event{Version: c.server.version, Type: Deleted, Object: v.objects[key], Listed: true,
				kind: k})
		}
	}
	for _, key := range t.keys {
		old, object := v.objects[key], t.objects[key]
		switch {
		case old == nil:
			others = append(others, Event{Version: c.server.version, Type: Added, Object: object, Listed: true,
				kind: k})
		case old.GetResourceVersion() != object.GetResourceVersion():
			others = append(others, Event{Version: c.server.version, Type: Modified, Object: object, Old: old,
				Listed: true, kind: k})
		}
	}
	if deletions {
		return append(gone, others...)
	}
	return append(others, gone...)
}

// Serves reports whether the cache has listed a kind.
func (c *Cache) Serves(kindName string) bool { return c.kinds[c.server.kinds.byName[kindName]] != nil }

// Seen returns the version of the last event of a kind that was applied.
func (c *Cache) Seen(kindName string) uint64 {
	if v := c.kinds[c.server.kinds.byName[kindName]]; v != nil {
		return v.version
	}
	return 0
}

// Peek returns the cached object itself, or nil. It must not be changed.
func (c *Cache) Peek(like client.Object, key client.ObjectKey) client.Object {
	v := c.kinds[c.server.kinds.of(like)]
	if v == nil {
		return nil
	}
	return v.objects[key]
}

// All calls visit with each cached object of a kind, in the order of keys. The objects must not be changed.
func (c *Cache) All(like client.Object, visit func(client.Object)) {
	if v := c.kinds[c.server.kinds.of(like)]; v != nil {
		for _, key := range v.keys {
			visit(v.objects[key])
		}
	}
}

func (c *Cache) put(k *kind, v *view, key client.ObjectKey, old, object client.Object) {
	if old != nil {
		c.unindex(k, v, key, old)
	}
	v.put(key, object)
	for _, index := range c.indexes[k] {
		for _, value := range index.Value(object) {
			keys := v.indexed[index.Field][value]
			i, found := slices.BinarySearchFunc(keys, key, compareKeys)
			if !found {
				v.indexed[index.Field][value] = slices.Insert(keys, i, key)
			}
		}
	}
}

func (c *Cache) unindex(k *kind, v *view, key client.ObjectKey, old client.Object) {
	if old == nil {
		return
	}
	for _, index := range c.indexes[k] {
		for _, value := range index.Value(old) {
			keys := v.indexed[index.Field][value]
			if i, found := slices.BinarySearchFunc(keys, key, compareKeys); found {
				v.indexed[index.Field][value] = slices.Delete(keys, i, i+1)
			}
		}
	}
}

// Get implements client.Reader.
func (c *Cache) Get(_ context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	k, err := c.server.kindOf(into)
	if err != nil {
		return err
	}
	v := c.kinds[k]
	if v == nil {
		return fmt.Errorf("no informer was started for %s", k.gvk.Kind)
	}
	object := v.objects[key]
	if object == nil {
		return apierrors.NewNotFound(k.resource, key.Name)
	}
	var asked client.GetOptions
	asked.ApplyOptions(options)
	k.into(into, object, asked.UnsafeDisableDeepCopy == nil || !*asked.UnsafeDisableDeepCopy)
	return nil
}

// List implements client.Reader: by namespace, labels and one indexed field.
func (c *Cache) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	k := c.server.kinds.ofList(into)
	if k == nil || c.kinds[k] == nil {
		return fmt.Errorf("no informer was started for %T", into)
	}
	v := c.kinds[k]
	var asked client.ListOptions
	asked.ApplyOptions(options)
	keys := v.keys
	if asked.FieldSelector != nil {
		terms := asked.FieldSelector.Requirements()
		if len(terms) != 1 || v.indexed[terms[0].Field] == nil {
			return fmt.Errorf("index with name field:%s does not exist", asked.FieldSelector)
		}
		keys = v.indexed[terms[0].Field][terms[0].Value]
	}
	found := make([]client.Object, 0, len(keys))
	for _, key := range keys {
		if asked.Namespace == "" || key.Namespace == asked.Namespace {
			found = append(found, v.objects[key])
		}
	}
	fill(k, into, found, &asked)
	return nil
}
