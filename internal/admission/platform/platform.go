package platform

import (
	_ "embed" // components.yaml
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
)

//go:embed components.yaml
var components []byte

// List is what is known of the platform.
type List struct {
	// Actors put pods on nodes of the control plane. They are few: whoever is one may put any listed namespace's pods
	// there.
	Actors []Actor `json:"actors"`
	// People are groups of administrators. They are actors too.
	People []Actor `json:"people"`
	// Components are the namespaces, by name.
	Components []Component `json:"components"`
}

// Actor is who creates or binds pods.
type Actor struct {
	// Actor is a user name, or NAMESPACE/NAME of a service account.
	Actor string `json:"actor"`
	// Entry authorizes the actor alone, without a namespace.
	Entry string `json:"entry"`
	// Does says what the actor does.
	Does    string   `json:"does"`
	Sources []string `json:"sources"`
	// ToVerify says what was not read.
	ToVerify string `json:"toVerify,omitempty"`
}

// Component is a namespace of the platform that has pods on control plane nodes.
type Component struct {
	Namespace string `json:"namespace"`
	// Workloads says what makes the pods.
	Workloads string `json:"workloads"`
	// Account is what they run as. It is told for lists that know no entry for a namespace alone; most accounts are no
	// actors.
	Account string `json:"account,omitempty"`
	// Pods are the ways in which its pods come to their nodes.
	Pods []Way `json:"pods"`
	// Entry authorizes the namespace, and no actor (H5). It is empty where all pods are static ones (N59).
	Entry    string   `json:"entry,omitempty"`
	Sources  []string `json:"sources"`
	ToVerify string   `json:"toVerify,omitempty"`
}

// Way is how a pod comes to its node.
type Way struct {
	How How `json:"how"`
	// Actor creates the pod, as [Actor] spells it. It is empty for static pods: the kubelet shows them.
	Actor string `json:"actor,omitempty"`
}

// How is the form of a way.
type How string

// The forms; components.yaml says what they are.
const (
	Deployment How = "Deployment"
	Job        How = "Job"
	Pod        How = "Pod"
	DaemonSet  How = "DaemonSet"
	NodeName   How = "NodeName"
	Affinity   How = "Affinity"
	Static     How = "Static"
)

// scheduler binds all pods that do not name their node.
const scheduler = "system:kube-scheduler"

func hows() []How { return []How{Deployment, Job, Pod, DaemonSet, NodeName, Affinity, Static} }

// Load returns the list that is embedded in the program.
func Load() (List, error) { return Read(components) }

// Read parses a list and checks it. The error names each wrong row, its value and what is allowed.
func Read(document []byte) (List, error) {
	var list List
	if err := yaml.UnmarshalStrict(document, &list); err != nil {
		return List{}, fmt.Errorf("list of components: %w", err)
	}
	if err := list.check(); err != nil {
		return List{}, fmt.Errorf("list of components: %w", err)
	}
	return list, nil
}

// source matches where a row was read: REPOSITORY@COMMIT PATH, and how many more files of that kind are beside it.
var source = regexp.MustCompile(`^[a-z0-9-]+@(v[0-9.]+|[0-9a-f]{9,40}) [A-Za-z0-9_.{}/-]+( \+[0-9]+)?$`)

func (l List) check() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	actors := map[string]bool{}
	for _, rows := range []struct {
		name string
		rows []Actor
	}{{"actors", l.Actors}, {"people", l.People}} {
		for i, a := range rows.rows {
			path := fmt.Sprintf("%s[%d]", rows.name, i)
			if want := spell(a.Actor); a.Actor == "" || a.Entry != want {
				wrong("%s.entry is %q: for the actor %q it must be %q", path, a.Entry, a.Actor, want)
			}
			if actors[a.Actor] {
				wrong("%s.actor is %q a second time", path, a.Actor)
			}
			actors[a.Actor] = true
			errs = append(errs, sourced(path, a.Sources)...)
		}
	}
	last := ""
	for i, c := range l.Components {
		path := fmt.Sprintf("components[%d]", i)
		if problems := validation.IsDNS1123Label(c.Namespace); len(problems) > 0 {
			wrong("%s.namespace is %q: it must be the name of a namespace", path, c.Namespace)
		}
		if c.Namespace <= last {
			wrong("%s.namespace is %q after %q: rows are in order, one for each namespace", path, c.Namespace, last)
		}
		last = c.Namespace
		if want := c.wanted(); c.Entry != want {
			wrong("%s.entry is %q: it must be %q", path, c.Entry, want)
		}
		if len(c.Pods) == 0 {
			wrong("%s.pods is missing: it must say how the pods come to their nodes", path)
		}
		for j, way := range c.Pods {
			if !slices.Contains(hows(), way.How) {
				wrong("%s.pods[%d].how is %q: it must be one of %v", path, j, way.How, hows())
			}
			if listed := actors[way.Actor]; listed == (way.How == Static) {
				wrong("%s.pods[%d].actor is %q: it must be one of the actors, and none for static pods", path, j,
					way.Actor)
			}
		}
		errs = append(errs, sourced(path, c.Sources)...)
	}
	return errors.Join(errs...)
}

func sourced(path string, sources []string) []error {
	if len(sources) == 0 {
		return []error{fmt.Errorf("%s.sources is missing: it must say where the row was read", path)}
	}
	var errs []error
	for i, text := range sources {
		if !source.MatchString(text) {
			errs = append(errs, fmt.Errorf("%s.sources[%d] is %q: it must be REPOSITORY@COMMIT PATH", path, i, text))
		}
	}
	return errs
}

// spell returns the entry of an actor alone.
func spell(actor string) string {
	if namespace, name, account := strings.Cut(actor, "/"); account {
		return "user:system:serviceaccount:" + namespace + ":" + name
	}
	return actor
}

// wanted returns the entry that a component must have.
func (c Component) wanted() string {
	if !slices.ContainsFunc(c.Pods, func(w Way) bool { return w.How != Static }) {
		return ""
	}
	return "namespace:" + c.Namespace
}

// Entries returns the entries of the whole platform: actors, people, namespaces.
func (l List) Entries() []string {
	var entries []string
	for _, a := range slices.Concat(l.Actors, l.People) {
		entries = append(entries, a.Entry)
	}
	for _, c := range l.Components {
		if c.Entry != "" {
			entries = append(entries, c.Entry)
		}
	}
	return entries
}

// Config returns the plugin's configuration on OpenShift: the group of the control plane nodes without a mode, so that
// nothing happens until Scheduler sets one.
func (l List) Config() *v1alpha1.NodeSchedulingPolicyConfig {
	const label = "node-role.kubernetes.io/"
	return &v1alpha1.NodeSchedulingPolicyConfig{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.Group + "/" + v1alpha1.Version, Kind: v1alpha1.Kind},
		Groups: []v1alpha1.SchedulingPolicyGroup{{
			Name:          configv1.ControlPlane,
			LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{label + "control-plane": ""}},
			Taints: []v1alpha1.GroupTaint{
				{Key: label + "control-plane", Effect: corev1.TaintEffectNoSchedule},
				{Key: label + "master", Effect: corev1.TaintEffectNoSchedule},
			},
			AuthorizedUsers: l.Entries(),
		}},
	}
}
