package evaluator

import (
	"fmt"
	"iter"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Operation is what a request does.
type Operation string

// The operations that are judged; any other passes.
const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Connect Operation = "CONNECT"
)

// User is who sends a request. The lists know names and groups. UID and Extra are for the authorizer: they may
// restrict what it allows, as the scopes of OpenShift's tokens do.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// Request is an admission request, in the words of the API server. A door fills the first block itself, and the
// objects with [Request.SetObjects].
type Request struct {
	Operation Operation
	// Group, Resource and Subresource say what the request is about, for example "", "pods" and "binding".
	Group, Resource, Subresource string
	Namespace                    string
	// Name is empty if the API server will generate it.
	Name   string
	User   User
	DryRun bool

	// Pod and OldPod are the new and the stored object of a request about a pod.
	Pod, OldPod *corev1.Pod
	// Binding is the object of a binding, on either path (F1).
	Binding *corev1.Binding
	// Fault says why a door could not read an object of the request.
	Fault string
	// Workload and OldWorkload are the new and the stored object of a request about a workload, whose controller makes
	// pods (H15).
	Workload, OldWorkload *Workload
}

// Workload is the part of an object with a pod template that the evaluator reads.
type Workload struct {
	Kind     string
	Template *corev1.PodTemplateSpec
	// Owner is the controller that wrote the object, or nil.
	Owner *metav1.OwnerReference
}

// NewObject returns an empty object to decode a request about a resource into, or nil if the resource is not judged.
// Workloads are read in version v1 of their group.
func NewObject(group, resource, subresource string) runtime.Object {
	switch group + "/" + resource + "/" + subresource {
	case "/pods/", "/pods/status", "/pods/ephemeralcontainers", "/pods/resize":
		return &corev1.Pod{}
	case "/pods/exec":
		return &corev1.PodExecOptions{}
	case "/pods/attach":
		return &corev1.PodAttachOptions{}
	case "/pods/portforward":
		return &corev1.PodPortForwardOptions{}
	case "/pods/binding", "/bindings/":
		return &corev1.Binding{}
	case "/replicationcontrollers/":
		return &corev1.ReplicationController{}
	case "apps/deployments/":
		return &appsv1.Deployment{}
	case "apps/daemonsets/":
		return &appsv1.DaemonSet{}
	case "apps/statefulsets/":
		return &appsv1.StatefulSet{}
	case "apps/replicasets/":
		return &appsv1.ReplicaSet{}
	case "batch/jobs/":
		return &batchv1.Job{}
	case "batch/cronjobs/":
		return &batchv1.CronJob{}
	}
	return nil
}

// SetObjects sets the object of the request and, for an update, the stored one. Each may be nil. It keeps them without
// a copy, and does not change them. It returns an error for a kind that [NewObject] does not make.
func (r *Request) SetObjects(object, old runtime.Object) error {
	for _, side := range []struct {
		object   runtime.Object
		pod      **corev1.Pod
		workload **Workload
	}{{object, &r.Pod, &r.Workload}, {old, &r.OldPod, &r.OldWorkload}} {
		switch typed := side.object.(type) {
		case nil:
		case *corev1.PodExecOptions, *corev1.PodAttachOptions, *corev1.PodPortForwardOptions:
			// what matters is the pod, not what is done in it
		case *corev1.Pod:
			*side.pod = typed
		case *corev1.Binding:
			r.Binding = typed
		default:
			read := workload(typed)
			if read == nil {
				return fmt.Errorf("an object of type %T is not looked at", typed)
			}
			*side.workload = read
		}
	}
	return nil
}

func workload(object runtime.Object) *Workload {
	read := func(kind string, template *corev1.PodTemplateSpec, meta metav1.Object) *Workload {
		return &Workload{Kind: kind, Template: template, Owner: metav1.GetControllerOfNoCopy(meta)}
	}
	switch typed := object.(type) {
	case *corev1.ReplicationController:
		return read("ReplicationController", typed.Spec.Template, typed)
	case *appsv1.Deployment:
		return read("Deployment", &typed.Spec.Template, typed)
	case *appsv1.DaemonSet:
		return read("DaemonSet", &typed.Spec.Template, typed)
	case *appsv1.StatefulSet:
		return read("StatefulSet", &typed.Spec.Template, typed)
	case *appsv1.ReplicaSet:
		return read("ReplicaSet", &typed.Spec.Template, typed)
	case *batchv1.Job:
		return read("Job", &typed.Spec.Template, typed)
	case *batchv1.CronJob:
		return read("CronJob", &typed.Spec.JobTemplate.Spec.Template, typed)
	}
	return nil
}

// Nodes is a door's cache of nodes.
type Nodes interface {
	// Ready reports whether the cache holds all nodes. The evaluator calls it only if nodes decide. It may wait for
	// them, at most ten seconds (N60).
	Ready() bool
	// Synced is like Ready, but does not wait.
	Synced() bool
	// Get returns a node by name. The evaluator does not change it.
	Get(name string) (*corev1.Node, bool)
	// All yields every node, in any order. The evaluator does not change them.
	All() iter.Seq[*corev1.Node]
}

// Unread is what a door has not read since its start, and what its Nodes therefore wait for.
type Unread struct{ Nodes, LiveSource bool }

// Cluster is what the evaluator may ask of the cluster. Every port except Nodes may be nil. A Cluster serves one
// request, so a door may tie its ports to the request's deadline.
type Cluster struct {
	Nodes Nodes
	// Members yields the nodes of a group by its name, from an index of the same cache as Nodes; further nodes do no
	// harm. Without this port the evaluator searches all nodes. With thousands of nodes, that takes most of a
	// verdict's time (N68).
	Members func(group string) iter.Seq[*corev1.Node]
	// Unread says what the door has not read yet, for the text of a request that waited for it in vain. Without this
	// port it is the nodes.
	Unread func() Unread
	// LiveNode reads a node from the API server if the cache does not know its name (N57). It returns nil and no error
	// if there is no such node. Without this port, a node that is not in the cache is unknown.
	LiveNode func(name string) (*corev1.Node, error)
	// LivePod reads a pod from the API server. It returns nil and no error if there is no such pod. The evaluator
	// calls it only while the emergency override is enabled: for a binding that would be denied, and for requests to
	// enter a pod. It must not answer from a cache: a deleted pod of the same name may have had the override.
	LivePod func(namespace, name string) (*corev1.Pod, error)
	// Namespace returns the UID of a namespace, and whether it exists. The evaluator asks only for namespaces
	// that entries name, and for those whose UID a message shows. Without this port, an entry with a UID authorizes
	// nobody, and one without a UID holds.
	Namespace func(name string) (uid string, exists bool, err error)
	// Allowed asks the cluster's authorizer. The evaluator calls it only if the configuration says ListsAndRBAC, and
	// only for what the lists do not authorize.
	Allowed func(Access) (bool, error)
}

// Access is a question to the authorizer: may User do Verb to the object named Group, of the resource
// nodeschedulinggroups in the API group scheduling.openshift.io? The question is cluster-wide on purpose: the
// administrator of one namespace must not be able to grant it. For this question, the resource need not be served.
type Access struct {
	User User
	Verb Verb
	// Group is the group of nodes.
	Group string
}

// AccessResource is the resource of every [Access], in API group scheduling.openshift.io.
const AccessResource = "nodeschedulinggroups"

// Verb is what somebody wants to do with a group of nodes.
type Verb string

const (
	// Assign means to place pods on the group's nodes: the actor's half.
	Assign Verb = "assign"
	// Occupy means to be placed there: the half of the pod's namespace. The evaluator asks for the namespace's service
	// account default, so grant it to the group system:serviceaccounts:NAMESPACE.
	Occupy Verb = "occupy"
	// Override means to place pods of any namespace, with a reason.
	Override Verb = "override"
)
