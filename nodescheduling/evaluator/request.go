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

// The operations that are looked at; any other passes.
const (
	Create  Operation = "CREATE"
	Update  Operation = "UPDATE"
	Connect Operation = "CONNECT"
)

// User is who sends a request.
type User struct {
	Name   string
	Groups []string
}

// Request is what a door was asked, in the words of the API server. A door fills the first block, and the objects with
// [Request.SetObjects].
type Request struct {
	Operation Operation
	// Group, Resource and Subresource are what the request is about, for example "", "pods" and "binding".
	Group, Resource, Subresource string
	Namespace                    string
	// Name is empty where the API server is to choose it.
	Name   string
	User   User
	DryRun bool

	// Pod and OldPod are the object of a request about pods, as it will be stored, and as it is stored.
	Pod, OldPod *corev1.Pod
	// Binding is the object of a binding, on either path (F1).
	Binding *corev1.Binding
	// Fault says why an object could not be read, where a door has one that it cannot hand over.
	Fault string
	// Workload and OldWorkload are objects whose controllers make pods (H15).
	Workload, OldWorkload *Workload
}

// Workload is what is read of an object with a pod template.
type Workload struct {
	Kind     string
	Template *corev1.PodTemplateSpec
	// Owner is the controller that wrote the object, or nil.
	Owner *metav1.OwnerReference
}

// NewObject is an empty object of the kind to decode a request about a resource into, nil if the resource is not looked
// at. Workloads are read in version v1 of their group.
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

// SetObjects takes the object of the request and, for an update, the one that is stored. Each may be nil. They are kept,
// not copied, and not changed. An error is a kind that [NewObject] does not make.
func (r *Request) SetObjects(object, old runtime.Object) error {
	for _, side := range []struct {
		object   runtime.Object
		pod      **corev1.Pod
		workload **Workload
	}{{object, &r.Pod, &r.Workload}, {old, &r.OldPod, &r.OldWorkload}} {
		switch typed := side.object.(type) {
		case nil:
		case *corev1.PodExecOptions, *corev1.PodAttachOptions, *corev1.PodPortForwardOptions: // the pod decides, not what is done in it
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

// Nodes is what a door knows of the nodes, from a cache.
type Nodes interface {
	// Ready says whether the cache holds all nodes. It is asked only when nodes decide, and may wait a while for them,
	// at most ten seconds (N60).
	Ready() bool
	// Synced is Ready without waiting.
	Synced() bool
	// Get returns a node by name. It is not changed.
	Get(name string) (*corev1.Node, bool)
	// All yields every node, in any order. They are not changed.
	All() iter.Seq[*corev1.Node]
}

// Cluster is what the evaluator may ask of the cluster. Every port but Nodes may be nil. Ports are asked for one request
// at a time, so a door may tie them to the request's deadline.
type Cluster struct {
	Nodes Nodes
	// Members yields the nodes of a group by its name, from an index of the cache that Nodes is; more than those do no harm.
	// Without the port all nodes are looked through: with thousands of them that takes most of a verdict's time (N68).
	Members func(group string) iter.Seq[*corev1.Node]
	// LiveNode reads a node from the API server, for a name that the cache does not know (N57). No such node is nil and
	// no error. Without the port such a node is unknown.
	LiveNode func(name string) (*corev1.Node, error)
	// LivePod reads a pod from the API server; no such pod is nil and no error. It is asked only while the emergency
	// override is enabled: for a binding that would be denied. It must not answer from a cache: a pod of the same name
	// that is gone may have had the override. It is asked too for whoever wants to enter a pod.
	LivePod func(namespace, name string) (*corev1.Pod, error)
	// Namespace returns the UID of a namespace, and whether it exists. It is asked for the namespaces of entries only.
	// Without the port an entry with a UID authorizes nobody, and one without holds.
	Namespace func(name string) (uid string, exists bool, err error)
	// Allowed asks the cluster's authorizer. It is asked only where the configuration says ListsAndRBAC, when the lists
	// do not authorize.
	Allowed func(Access) (bool, error)
}

// Access is a question to the authorizer: may this user do this to the object of that name of the resource
// nodeschedulinggroups in the group scheduling.openshift.io, cluster-wide. The resource exists for the authorizer only.
// That the question has no namespace matters: whoever rules one namespace must not be able to grant it.
type Access struct {
	User User
	Verb Verb
	// Group is the group of nodes.
	Group string
}

// AccessResource is the resource of every [Access], in the API group scheduling.openshift.io.
const AccessResource = "nodeschedulinggroups"

// Verb is what somebody wants to do with a group of nodes.
type Verb string

const (
	// Assign is to place pods on the group's nodes: the actor's half.
	Assign Verb = "assign"
	// Occupy is to be placed there: the half of the pod's namespace. It is asked of the namespace's service account
	// default, so it is granted to the group system:serviceaccounts:NAMESPACE.
	Occupy Verb = "occupy"
	// Override is to place pods of any namespace, with a reason.
	Override Verb = "override"
)
