package schedulingtest

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// World is the cluster of a script. The zero World is not usable; see [NewWorld].
type World struct {
	Sources  evaluator.Sources
	NotReady bool // the nodes are not listed yet

	nodes      map[string]*corev1.Node // in the cache
	live       map[string]*corev1.Node // only the API server knows them
	pods       map[string]*corev1.Pod
	grants     map[string]bool   // "subject verb group"
	unreadable bool              // the API server does not answer
	namespaces map[string]string // UIDs that differ from NamespaceUID; "" if there is none
}

// NamespaceUID is the UID of every namespace that a script does not change.
const NamespaceUID = "00000000-0000-0000-0000-000000000001"

// NewWorld returns a cluster without nodes and without a policy.
func NewWorld() *World {
	return &World{nodes: map[string]*corev1.Node{}, live: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{},
		grants: map[string]bool{}, namespaces: map[string]string{}}
}

// Asked is a request of a script, with its objects as the API server would send them.
type Asked struct {
	evaluator.Request
	Object, Old Object
}

// Objects returns the objects that the API server sends. For a connection that is its options, not the pod, which is
// in Object.
func (a Asked) Objects() (object, old runtime.Object) {
	if a.Operation == evaluator.Connect {
		return evaluator.NewObject(a.Group, a.Resource, a.Subresource), nil
	}
	if a.Old != nil {
		old = a.Old
	}
	return a.Object, old
}

// Object is an object of a request.
type Object interface {
	metav1.Object
	runtime.Object
}

// Answer is what a client and the audit log see.
type Answer struct {
	Allowed  bool
	Message  string
	Warnings []string
	Audit    map[string]string // keys without prefix
}

// Door answers a request in a world.
type Door func(*World, Asked) (Answer, error)

// Function is the door that calls the evaluator directly. Like an API server, it first lets the policy write the
// annotation.
func Function(w *World, asked Asked) (Answer, error) {
	asked, err := w.Admit(asked)
	if err != nil {
		return Answer{}, err
	}
	verdict, err := w.Evaluate(asked)
	return Answer{Allowed: verdict.Allowed, Message: verdict.Message, Warnings: verdict.Warnings,
		Audit: verdict.Audit()}, err
}

// Admit returns a request with what the policy writes into it.
func (w *World) Admit(asked Asked) (Asked, error) {
	policy, _, err := evaluator.New(w.Sources)
	if err != nil {
		return asked, err
	}
	pod, isPod := asked.Object.(*corev1.Pod)
	if !isPod || asked.Operation != evaluator.Create || asked.Subresource != "" {
		return asked, nil
	}
	request := asked.Request
	if err := request.SetObjects(pod, nil); err != nil {
		return asked, err
	}
	if reason := policy.Automatic(&request, w.Cluster()); reason != "" {
		pod = pod.DeepCopy()
		pod.Annotations = maps.Clone(pod.Annotations)
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[evaluator.OverrideAnnotation] = reason
		asked.Object = pod
	}
	return asked, nil
}

// Evaluate returns the verdict on a request.
func (w *World) Evaluate(asked Asked) (evaluator.Verdict, error) {
	policy, _, err := evaluator.New(w.Sources)
	if err != nil {
		return evaluator.Verdict{}, err
	}
	request := asked.Request
	if evaluator.NewObject(request.Group, request.Resource, request.Subresource) == nil {
		return policy.Evaluate(&request, w.Cluster()), nil
	}
	object, old := asked.Objects()
	if err := request.SetObjects(object, old); err != nil {
		return evaluator.Verdict{}, err
	}
	return policy.Evaluate(&request, w.Cluster()), nil
}

// Cluster fills the ports of the evaluator from the world.
func (w *World) Cluster() evaluator.Cluster {
	return evaluator.Cluster{
		Nodes: w,
		LiveNode: func(name string) (*corev1.Node, error) {
			if w.unreadable {
				return nil, errors.New("connection refused")
			}
			return w.live[name], nil
		},
		Namespace: w.Namespace,
		LivePod: func(namespace, name string) (*corev1.Pod, error) {
			if w.unreadable {
				return nil, errors.New("connection refused")
			}
			return w.pods[namespace+"/"+name], nil
		},
		Allowed: func(a evaluator.Access) (bool, error) {
			if w.unreadable {
				return false, errors.New("connection refused")
			}
			// Of OpenShift's scopes, only this one says anything about groups of nodes. Users with tokens have a UID.
			if scopes := a.User.Extra[scopesOf]; len(scopes) > 0 &&
				(a.User.UID == "" || !slices.Contains(scopes, "user:full")) {
				return false, nil
			}
			for _, subject := range append([]string{a.User.Name}, a.User.Groups...) {
				if w.grants[fmt.Sprintf("%s %s %s", subject, a.Verb, a.Group)] {
					return true, nil
				}
			}
			return false, nil
		},
	}
}

// Namespace is the port Namespace of evaluator.Cluster.
func (w *World) Namespace(name string) (string, bool, error) {
	if w.unreadable {
		return "", false, errors.New("connection refused")
	}
	uid, changed := w.namespaces[name]
	if !changed {
		uid = NamespaceUID
	}
	return uid, uid != "", nil
}

// Ready implements evaluator.Nodes, without waiting.
func (w *World) Ready() bool { return !w.NotReady }

// Synced implements evaluator.Nodes.
func (w *World) Synced() bool { return !w.NotReady }

// Get implements evaluator.Nodes.
func (w *World) Get(name string) (*corev1.Node, bool) {
	node, found := w.nodes[name]
	return node, found && !w.NotReady
}

// All implements evaluator.Nodes.
func (w *World) All() iter.Seq[*corev1.Node] {
	if w.NotReady {
		return func(func(*corev1.Node) bool) {}
	}
	return maps.Values(w.nodes)
}

// Run runs one command of a script and returns what it prints. Commands:
//
//	cluster  lines change the world (the first line "new" empties it); prints the groups in force
//	ask      lines are requests; prints an answer for each, with "text" also what the user reads
//	config   the input is a configuration file; prints what is wrong with it
func (w *World) Run(command string, text bool, input string, door Door) (string, error) {
	var out strings.Builder
	switch command {
	case "config":
		if _, err := evaluator.Decode([]byte(input)); err != nil {
			return err.Error() + "\n", nil
		}
		return "ok\n", nil
	case "cluster":
		for line := range lines(input) {
			if err := w.change(line); err != nil {
				return "", fmt.Errorf("line %q: %w", line, err)
			}
		}
		policy, ignored, err := evaluator.New(w.Sources)
		if err != nil {
			return err.Error() + "\n", nil
		}
		for _, g := range policy.Effective() {
			fmt.Fprintf(&out, "%s %s, entries: %d\n", g.Group, g.Mode, g.Authorized)
		}
		for _, i := range ignored {
			fmt.Fprintf(&out, "ignored: %s %s\n", i.Field, i.Why)
		}
		if out.Len() == 0 {
			out.WriteString("no policy\n")
		}
		return out.String(), nil
	case "ask":
		for line := range lines(input) {
			asked, err := ParseRequest(line)
			if err != nil {
				return "", fmt.Errorf("line %q: %w", line, err)
			}
			answer, err := door(w, asked)
			if err != nil {
				return "", fmt.Errorf("line %q: %w", line, err)
			}
			fmt.Fprintf(&out, "%s: %s\n", answer, line)
			if text {
				out.WriteString(answer.Text())
			}
		}
		return out.String(), nil
	}
	return "", fmt.Errorf("unknown command %q; want cluster, ask or config", command)
}

func lines(input string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.SplitSeq(input, "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !yield(line) {
				return
			}
		}
	}
}

// String returns the answer in a few words, for example "deny NodeName (not authorized: actor, namespace)". It names
// groups other than ControlPlane.
func (a Answer) String() string {
	text := "deny"
	if a.Allowed {
		text = "allow"
	}
	if a.Audit == nil {
		return text
	}
	column := func(key string) []string { return strings.Split(a.Audit[key], ",") }
	decisions, groups, reasons := column(evaluator.AuditDecision), column(evaluator.AuditGroup),
		column(evaluator.AuditReason)
	actors, pods := column(evaluator.AuditActor), column(evaluator.AuditPod)
	for i := range decisions {
		if i > 0 {
			text += " and"
		}
		if decisions[i] != string(evaluator.Deny) {
			text += ", " + decisions[i]
		}
		text += " "
		if groups[i] != string(configv1.ControlPlane) {
			text += groups[i] + "/"
		}
		text += reasons[i]
		var lacks []string
		if actors[i] != "true" {
			lacks = append(lacks, "actor")
		}
		if pods[i] != "true" {
			lacks = append(lacks, "namespace")
		}
		if len(lacks) > 0 {
			text += " (not authorized: " + strings.Join(lacks, ", ") + ")"
		}
	}
	return text
}

// Text returns what the client and the audit log see, line by line.
func (a Answer) Text() string {
	var b strings.Builder
	if a.Message != "" {
		fmt.Fprintf(&b, "  message: %s\n", a.Message)
	}
	for _, warning := range a.Warnings {
		fmt.Fprintf(&b, "  warning: %s\n", warning)
	}
	for _, key := range slices.Sorted(maps.Keys(a.Audit)) {
		fmt.Fprintf(&b, "  audit %s: %s\n", key, a.Audit[key])
	}
	return b.String()
}

// config returns the configuration of the world, and creates it when first needed.
func (w *World) config() *v1alpha1.NodeSchedulingPolicyConfig {
	if w.Sources.Config == nil {
		w.Sources.Config = &v1alpha1.NodeSchedulingPolicyConfig{Groups: []v1alpha1.SchedulingPolicyGroup{}}
	}
	return w.Sources.Config
}
