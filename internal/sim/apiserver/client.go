package apiserver

import (
	"context"
	"fmt"
	"strconv"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func formatVersion(version uint64) string { return strconv.FormatUint(version, 10) }

// Call is a write or a live read on its way to the server.
type Call struct {
	Verb   string // create, update, patch, delete, evict, get, list
	Object client.Object
	Key    client.ObjectKey
	Part   Part
	Write  bool
	// Do executes the call and returns the server's answer. The caller sees its results only if the transport returns
	// nil.
	Do func() error
}

// Transport takes a call to the server and returns what the caller sees.
type Transport func(ctx context.Context, call Call) error

// Direct is a transport that loses nothing.
func Direct(ctx context.Context, call Call) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return call.Do()
}

// Reads answers get and list.
type Reads interface {
	Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error
	List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error
}

// NewClient returns a client that writes through a transport and reads from reads; nil reads the server itself,
// through the transport.
func (s *Server) NewClient(scheme *runtime.Scheme, transport Transport, reads Reads) client.WithWatch {
	c := &apiClient{server: s, scheme: scheme, send: transport}
	c.Reads = reads
	if reads == nil {
		c.Reads = live{c}
	}
	return c
}

type apiClient struct {
	Reads
	server *Server
	scheme *runtime.Scheme
	send   Transport
}

// live reads the server through the transport.
type live struct{ client *apiClient }

// Get implements client.Reader.
func (l live) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	s := l.client.server
	k, err := s.kindOf(into)
	if err != nil {
		return err
	}
	var found client.Object
	err = l.client.send(ctx, Call{Verb: "get", Object: into, Key: key, Do: func() error {
		if found = s.stores[k].objects[key]; found == nil {
			return apierrors.NewNotFound(k.resource, key.Name)
		}
		return nil
	}})
	if err == nil {
		k.into(into, found, true)
	}
	return err
}

// List implements client.Reader.
func (l live) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	s := l.client.server
	k := s.kinds.ofList(into)
	if k == nil {
		return fmt.Errorf("the simulated API server does not serve %T", into)
	}
	var asked client.ListOptions
	asked.ApplyOptions(options)
	var found []client.Object
	version := uint64(0)
	err := l.client.send(ctx, Call{Verb: "list", Object: k.empty(), Do: func() error {
		version = s.version
		for _, key := range s.stores[k].keys {
			if object := s.stores[k].objects[key]; asked.Namespace == "" || object.GetNamespace() == asked.Namespace {
				found = append(found, object)
			}
		}
		return nil
	}})
	if err != nil {
		return err
	}
	fill(k, into, found, &asked)
	into.SetResourceVersion(formatVersion(version))
	return nil
}

// fill fills a list with the objects that the labels select: deep copies, unless the caller promises not to change
// them.
func fill(k *kind, into client.ObjectList, found []client.Object, asked *client.ListOptions) {
	deep := asked.UnsafeDisableDeepCopy == nil || !*asked.UnsafeDisableDeepCopy
	selector := asked.LabelSelector
	if selector == nil || selector.Empty() {
		k.fill(into, found, deep)
		return
	}
	var selected []client.Object
	for _, object := range found {
		if selector.Matches(labels.Set(object.GetLabels())) {
			selected = append(selected, object)
		}
	}
	k.fill(into, selected, deep)
}

// write sends a call. When the answer arrives, the caller gets a copy of the result.
func (c *apiClient) write(ctx context.Context, verb string, object client.Object, part Part,
	do func() (client.Object, error)) error {
	k, err := c.server.kindOf(object)
	if err != nil {
		return err
	}
	var result client.Object
	err = c.send(ctx, Call{Verb: verb, Object: object, Key: client.ObjectKeyFromObject(object), Part: part,
		Write: true, Do: func() error {
			var err error
			result, err = do()
			return err
		}})
	if err == nil && result != nil {
		k.into(object, result, true)
	}
	return err
}

// Create implements client.Writer.
func (c *apiClient) Create(ctx context.Context, object client.Object, _ ...client.CreateOption) error {
	copied := object.DeepCopyObject().(client.Object)
	return c.write(ctx, "create", object, Main, func() (client.Object, error) {
		return copied, c.server.Create(copied)
	})
}

// Update implements client.Writer.
func (c *apiClient) Update(ctx context.Context, object client.Object, _ ...client.UpdateOption) error {
	return c.update(ctx, object, Main)
}

func (c *apiClient) update(ctx context.Context, object client.Object, part Part) error {
	copied := object.DeepCopyObject().(client.Object)
	return c.write(ctx, "update", object, part, func() (client.Object, error) {
		return c.server.update(copied, part)
	})
}

// Patch implements client.Writer.
func (c *apiClient) Patch(ctx context.Context, object client.Object, patch client.Patch,
	_ ...client.PatchOption) error {
	return c.patch(ctx, object, patch, Main)
}

func (c *apiClient) patch(ctx context.Context, object client.Object, patch client.Patch, part Part) error {
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	key := client.ObjectKeyFromObject(object)
	return c.write(ctx, "patch", object, part, func() (client.Object, error) {
		return c.server.Patch(object, key, patch.Type(), data, part)
	})
}

// Delete implements client.Writer.
func (c *apiClient) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	var asked client.DeleteOptions
	asked.ApplyOptions(options)
	wanted := DeleteOptions{GraceSeconds: asked.GracePeriodSeconds}
	if p := asked.Preconditions; p != nil {
		wanted.UID, wanted.ResourceVersion = (*string)(p.UID), p.ResourceVersion
	}
	key := client.ObjectKeyFromObject(object)
	return c.write(ctx, "delete", object, Main, func() (client.Object, error) {
		return nil, c.server.Delete(object, key, wanted)
	})
}

// DeleteAllOf implements client.Writer; nothing of ours calls it.
func (c *apiClient) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return unsupported("deletecollection")
}

// Apply implements client.Writer; nothing of ours calls it.
func (c *apiClient) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return unsupported("server-side apply")
}

func unsupported(what string) error {
	return apierrors.NewMethodNotSupported(schema.GroupResource{}, "the simulated API server does not know "+what)
}

// Watch implements client.WithWatch. With SendInitialEvents in the raw options it starts with the existing objects.
func (c *apiClient) Watch(_ context.Context, list client.ObjectList,
	options ...client.ListOption) (watch.Interface, error) {
	k := c.server.kinds.ofList(list)
	if k == nil {
		return nil, fmt.Errorf("the simulated API server does not serve %T", list)
	}
	var asked client.ListOptions
	asked.ApplyOptions(options)
	return c.server.watch(k, asked.Raw != nil && asked.Raw.SendInitialEvents != nil && *asked.Raw.SendInitialEvents),
		nil
}

// Status implements client.StatusClient.
func (c *apiClient) Status() client.SubResourceWriter { return subresource{c, "status"} }

// SubResource implements client.SubResourceClientConstructor.
func (c *apiClient) SubResource(name string) client.SubResourceClient { return subresource{c, name} }

// Scheme implements client.Client.
func (c *apiClient) Scheme() *runtime.Scheme { return c.scheme }

// RESTMapper implements client.Client; nothing of ours calls it.
func (c *apiClient) RESTMapper() meta.RESTMapper { return nil }

// GroupVersionKindFor implements client.Client.
func (c *apiClient) GroupVersionKindFor(object runtime.Object) (schema.GroupVersionKind, error) {
	if k := c.server.kinds.of(object); k != nil {
		return k.gvk, nil
	}
	return schema.GroupVersionKind{}, fmt.Errorf("the simulated API server does not serve %T", object)
}

// IsObjectNamespaced implements client.Client.
func (c *apiClient) IsObjectNamespaced(object runtime.Object) (bool, error) {
	k := c.server.kinds.of(object)
	return k != nil && k.namespaced, nil
}

// subresource is status, or eviction for pods.
type subresource struct {
	client *apiClient
	name   string
}

// Get implements client.SubResourceReader; nothing of ours calls it.
func (s subresource) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return unsupported("reading the subresource " + s.name)
}

// Create implements client.SubResourceWriter for evictions.
func (s subresource) Create(ctx context.Context, object, body client.Object,
	_ ...client.SubResourceCreateOption) error {
	eviction, ok := body.(*policyv1.Eviction)
	if !ok || s.name != "eviction" {
		return unsupported("creating the subresource " + s.name)
	}
	key := client.ObjectKeyFromObject(object)
	copied := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{}}
	if eviction.DeleteOptions != nil {
		copied.DeleteOptions = eviction.DeleteOptions.DeepCopy()
	}
	return s.client.write(ctx, "evict", object, Main, func() (client.Object, error) {
		return nil, s.client.server.Evict(key, copied)
	})
}

// Update implements client.SubResourceWriter.
func (s subresource) Update(ctx context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	if s.name != "status" {
		return unsupported("updating the subresource " + s.name)
	}
	return s.client.update(ctx, object, Status)
}

// Patch implements client.SubResourceWriter.
func (s subresource) Patch(ctx context.Context, object client.Object, patch client.Patch,
	_ ...client.SubResourcePatchOption) error {
	if s.name != "status" {
		return unsupported("patching the subresource " + s.name)
	}
	return s.client.patch(ctx, object, patch, Status)
}

// Apply implements client.SubResourceWriter; nothing of ours calls it.
func (s subresource) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return unsupported("server-side apply")
}
