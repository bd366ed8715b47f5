package door

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Namespaces returns the UIDs of namespaces, from a cache, or from the API server if the cache lacks the
// namespace.
type Namespaces struct {
	clients kubernetes.Interface
	cache   cache.Store // nil: always ask the API server
}

// NamespacesOf uses the cache of an informer of namespaces. With a nil informer there is no cache.
func NamespacesOf(informer cache.SharedIndexInformer, clients kubernetes.Interface) Namespaces {
	n := Namespaces{clients: clients}
	if informer != nil {
		n.cache = informer.GetStore()
	}
	return n
}

// UID returns the UID of a namespace, and whether it exists. The cache may lag behind by as long as a watch takes. If
// it lacks the namespace, UID asks the API server.
func (n Namespaces) UID(ctx context.Context, name string) (uid string, exists bool, err error) {
	if n.cache != nil {
		found, _, _ := n.cache.GetByKey(name) // nil if there is none
		if namespace, ok := found.(*corev1.Namespace); ok {
			return string(namespace.UID), true, nil
		}
	}
	namespace, err := orNone(n.clients.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{}))
	if namespace == nil {
		return "", false, err
	}
	return string(namespace.UID), true, nil
}

// SlimNamespace is a transformer for an informer of namespaces. It keeps only the fields that are read.
func SlimNamespace(object any) (any, error) {
	namespace, ok := object.(*corev1.Namespace)
	if !ok {
		return object, nil // the tombstone of a deletion that was missed
	}
	return &corev1.Namespace{TypeMeta: namespace.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{Name: namespace.Name, UID: namespace.UID,
			ResourceVersion: namespace.ResourceVersion}}, nil
}

// Slim is SlimNode and SlimNamespace in one, for an informer factory of both.
func Slim(object any) (any, error) {
	if _, node := object.(*corev1.Node); node {
		return SlimNode(object)
	}
	return SlimNamespace(object)
}
