package door

import (
	"context"
	"fmt"
	"iter"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// nodePort gives the evaluator the nodes of a cache, for one request.
type nodePort struct {
	ctx   context.Context // has the request's deadline, for Ready
	nodes *Nodes
	known Known
}

// Known says what a door has read since its start. A function that is nil is never asked.
type Known struct {
	// Nodes reports whether the cache holds all nodes, LiveSource whether the live source was read.
	Nodes, LiveSource func() bool
}

// unread returns what a request has to wait for.
func (k Known) unread() evaluator.Unread {
	missing := func(known func() bool) bool { return known != nil && !known() }
	return evaluator.Unread{Nodes: missing(k.Nodes), LiveSource: missing(k.LiveSource)}
}

// All reports whether everything was read.
func (k Known) All() bool { return k.unread() == evaluator.Unread{} }

// nodesReadyEvery is how often a request checks whether the nodes are listed.
const nodesReadyEvery = 50 * time.Millisecond

// Ready implements evaluator.Nodes. It waits until the request's deadline (N60).
func (p nodePort) Ready() bool {
	for !p.Synced() {
		timer := time.NewTimer(nodesReadyEvery)
		select {
		case <-p.ctx.Done():
			timer.Stop()
			return p.Synced()
		case <-timer.C:
		}
	}
	return true
}

// Synced implements evaluator.Nodes. Without the live source, the nodes alone decide nothing.
func (p nodePort) Synced() bool { return p.known.All() }

// Get implements evaluator.Nodes.
func (p nodePort) Get(name string) (*corev1.Node, bool) {
	found, _, _ := p.nodes.cache.GetByKey(name) // nil where there is none
	node, ok := found.(*corev1.Node)
	return node, ok
}

// All implements evaluator.Nodes.
func (p nodePort) All() iter.Seq[*corev1.Node] { return each(p.nodes.list()) }

// SlimNode is a transformer for an informer of nodes. It keeps only what the evaluator reads, since thousands of nodes
// stay in memory.
func SlimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil // the tombstone of a deletion that was missed
	}
	return &corev1.Node{
		TypeMeta: node.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion,
			Labels: node.Labels},
		Spec: corev1.NodeSpec{Taints: node.Spec.Taints},
	}, nil
}

// Ports is [Known.Ports] for who has read the live source. listed reports whether the cache holds all nodes.
func Ports(clients kubernetes.Interface, nodes *Nodes, namespaces Namespaces,
	listed func() bool) func(context.Context) evaluator.Cluster {
	return Known{Nodes: listed}.Ports(clients, nodes, namespaces)
}

// Ports returns a function that makes the ports of the evaluator for one request. They keep the deadline of its
// context. A request waits until everything is known.
func (k Known) Ports(clients kubernetes.Interface, nodes *Nodes,
	namespaces Namespaces) func(context.Context) evaluator.Cluster {
	return func(ctx context.Context) evaluator.Cluster {
		return evaluator.Cluster{
			Nodes: nodePort{ctx: ctx, nodes: nodes, known: k}, Members: nodes.members,
			Unread: k.unread,
			LiveNode: func(name string) (*corev1.Node, error) {
				return orNone(clients.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{}))
			},
			LivePod: func(namespace, name string) (*corev1.Pod, error) {
				return orNone(clients.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{}))
			},
			Namespace: func(name string) (string, bool, error) { return namespaces.UID(ctx, name) },
			Allowed:   func(access evaluator.Access) (bool, error) { return allowed(ctx, clients, access) },
		}
	}
}

// orNone returns nil and no error for an object that does not exist.
func orNone[T any](object *T, err error) (*T, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return object, nil
}

func allowed(ctx context.Context, clients kubernetes.Interface, access evaluator.Access) (bool, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(access.User.Extra))
	for key, values := range access.User.Extra {
		extra[key] = values
	}
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: access.User.Name, UID: access.User.UID, Groups: access.User.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: v1alpha1.Group, Resource: evaluator.AccessResource, Name: access.Group, Verb: string(access.Verb),
		},
	}}
	answer, err := clients.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking whether %s may %s: %w", access.User.Name, access.Verb, err)
	}
	return answer.Status.Allowed, nil
}
