package suggest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/admission/audit"
	"github.com/joiner-autoscaler/joiner/internal/admission/platform"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// maxActors bounds the actors from an audit log: a list in Scheduler has at most that many entries.
const maxActors = 1000

// Config is the configuration of a [Collector].
type Config struct {
	// Sources are the sources of the policy in force.
	Sources evaluator.Sources
	// Cluster are the ports of the evaluator. It must know all nodes.
	Cluster evaluator.Cluster
	// Platform is the list of entries with class platform.
	Platform platform.List
	// Owner returns the workload behind a controller, as in the audit. If nil, the controller itself is named.
	Owner func(namespace string, controller metav1.OwnerReference) audit.Owner
	// Target returns where to write the entries of a group.
	Target func(group string) Target
}

// Target is a source of entries.
type Target string

// The targets. A further source of entries needs a further target: its name here, its text in [Report.WriteYAML], and
// its choice in Config.Target.
const (
	// Scheduler is the cluster's Scheduler, which is written while the cluster runs.
	Scheduler Target = "Scheduler"
	// Groups are the cluster's NodeSchedulingGroups, if Scheduler has no field for entries.
	Groups Target = "NodeSchedulingGroup"
	// File is the file that the door reads when it starts.
	File Target = "File"
)

// Collector looks at one object after another, and remembers who needs which entry. It is not safe for concurrent use.
type Collector struct {
	config Config
	bare   *evaluator.Policy // the same groups without a single entry: it finds every pod that needs one
	full   *evaluator.Policy // the lists as they are, every group with the mode Enable: which entry covers a need
	groups map[string]*needs
	order  []string
	notes  map[string]bool
	uses   map[use]float64
	more   int // actors of audit logs beyond the bound
}

type use struct{ group, entry string }

// needs are the needs of a group.
type needs struct {
	member     string // a node of the group
	namespaces map[string]*need
	actors     map[string]*need // by user name
}

// need is why a namespace or an actor must be listed.
type need struct {
	groups  []string        // of the actor, as it logged in
	reasons map[string]bool // what was found
	serves  map[string]bool // the namespaces whose pods the actor puts there
}

// New returns a Collector, or an error if the policy is invalid.
func New(config Config) (*Collector, error) {
	c := &Collector{config: config, groups: map[string]*needs{}, notes: map[string]bool{}, uses: map[use]float64{}}
	var err error
	if c.bare, _, err = evaluator.New(without(config.Sources)); err != nil {
		return nil, err
	}
	if c.full, _, err = evaluator.New(enabled(config.Sources)); err != nil {
		return nil, err
	}
	for _, group := range c.full.Effective() {
		c.order = append(c.order, group.Group)
		c.groups[group.Group] = &needs{namespaces: map[string]*need{}, actors: map[string]*need{}}
	}
	for node := range config.Cluster.Nodes.All() {
		for _, group := range c.full.GroupsOf(node) {
			if g := c.groups[group]; g.member == "" || node.Name < g.member {
				g.member = node.Name
			}
		}
	}
	return c, nil
}

// without returns the sources without entries.
func without(sources evaluator.Sources) evaluator.Sources {
	config := sources.Config.DeepCopy()
	config.Authorization, config.EntryPins = v1alpha1.Lists, v1alpha1.PinsWarn
	for i := range config.Groups {
		config.Groups[i].AuthorizedUsers = []string{}
	}
	return evaluator.Sources{Config: config, SelfNamespace: sources.SelfNamespace}
}

// enabled returns the sources with every group in mode Enable, so that each of them is judged.
func enabled(sources evaluator.Sources) evaluator.Sources {
	config := sources.Config.DeepCopy()
	config.Authorization = v1alpha1.Lists
	for i := range config.Groups {
		config.Groups[i].Mode = configv1.Enable
	}
	all := evaluator.Sources{Config: config, Live: sources.Live, Groups: slices.Clone(sources.Groups)}
	for i := range all.Groups {
		all.Groups[i].Spec.Mode = ""
	}
	if sources.Scheduler != nil {
		all.Scheduler = sources.Scheduler.DeepCopy()
		for i := range all.Scheduler.Spec.SchedulingGroups {
			all.Scheduler.Spec.SchedulingGroups[i].Mode = ""
		}
	}
	return all
}

// Look notes what a pod needs. Pods that have ended, and those placed by the emergency override, need no entry.
func (c *Collector) Look(pod *corev1.Pod) error {
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	inspections, err := c.bare.Inspect(pod, c.config.Cluster)
	if err != nil {
		return err
	}
	for _, i := range inspections {
		if i.Class != evaluator.OnProtectedNode && i.Class != evaluator.AimsAtProtectedNode {
			continue
		}
		controller := metav1.GetControllerOfNoCopy(pod)
		reason, kind := "pods without a controller", ""
		if controller != nil {
			owner := audit.Owner{Kind: controller.Kind, Name: controller.Name}
			if c.config.Owner != nil {
				owner = c.config.Owner(pod.Namespace, *controller)
			}
			reason, kind = owner.Kind+" "+owner.Name, controller.Kind
		}
		c.needed(i.Group, pod.Namespace, reason, kind, pod.Spec.SchedulerName)
	}
	return nil
}

// LookAtWorkload notes what the pods of a workload need, since it may have none at the moment.
func (c *Collector) LookAtWorkload(object evaluator.WorkloadObject, kind string) error {
	inspections, err := c.bare.InspectWorkload(object, c.config.Cluster)
	if err != nil {
		return err
	}
	made := kind
	switch kind {
	case "Deployment":
		made = "ReplicaSet"
	case "CronJob":
		made = "Job"
	}
	for _, i := range inspections {
		c.needed(i.Group, object.GetNamespace(), kind+" "+object.GetName(), made, "")
	}
	return nil
}

// creator returns the service account that creates the pods of a kind, "" if it is not a kind of Kubernetes. It
// assumes that each controller has its own account, as on OpenShift and with kubeadm.
func creator(kind string) string {
	switch kind {
	case "ReplicaSet", "StatefulSet", "Job":
		return strings.ToLower(kind) + "-controller"
	case "DaemonSet":
		return "daemon-set-controller"
	case "ReplicationController":
		return "replication-controller"
	}
	return ""
}

const (
	account          = "system:serviceaccount:"
	kubeScheduler    = "system:kube-scheduler"
	defaultScheduler = "default-scheduler"
)

// needed notes the needs of a pod: its namespace, who creates it and who binds it.
func (c *Collector) needed(group, namespace, reason, kind, scheduler string) {
	g := c.groups[group]
	c.namespace(g, namespace, reason)
	switch name := creator(kind); {
	case name != "":
		c.actor(g, account+"kube-system:"+name, nil, namespace, "creates pods of a "+kind)
	case !c.creates(g, namespace):
		c.note("group %s: who creates %s of namespace %s is not known: give --audit-log", group, reason,
			namespace)
	}
	if scheduler != "" && scheduler != defaultScheduler {
		c.note("group %s: the user of the scheduler %s, which pods of namespace %s ask for, is not known: "+
			"give --audit-log", group, scheduler, namespace)
		return
	}
	c.actor(g, kubeScheduler, nil, namespace, "binds pods")
}

// creates notes the operators that the platform's list names as creators of pods in a namespace, and reports whether
// there are any.
func (c *Collector) creates(g *needs, namespace string) bool {
	found := false
	for _, row := range c.config.Platform.Components {
		for _, way := range row.Pods {
			home, name, is := strings.Cut(way.Actor, "/")
			if row.Namespace == namespace && is && home != "kube-system" {
				c.actor(g, account+home+":"+name, nil, namespace, "creates pods itself")
				found = true
			}
		}
	}
	return found
}

// namespace notes that pods of a namespace are there, or aim there.
func (c *Collector) namespace(g *needs, name, reason string) {
	if g.namespaces[name] == nil {
		g.namespaces[name] = &need{reasons: map[string]bool{}}
	}
	g.namespaces[name].reasons[reason] = true
}

// actor notes who puts pods of a namespace there. The groups of a service account follow from its name.
func (c *Collector) actor(g *needs, user string, groups []string, namespace, reason string) {
	if g.actors[user] == nil {
		if len(g.actors) >= maxActors {
			c.more++
			return
		}
		if home, is := home(user); is {
			groups = []string{"system:serviceaccounts", "system:serviceaccounts:" + home, "system:authenticated"}
		}
		g.actors[user] = &need{groups: groups, reasons: map[string]bool{}, serves: map[string]bool{}}
	}
	g.actors[user].reasons[reason] = true
	g.actors[user].serves[namespace] = true
}

// home returns the namespace of a service account.
func home(user string) (string, bool) {
	rest, is := strings.CutPrefix(user, account)
	if !is {
		return "", false
	}
	namespace, _, is := strings.Cut(rest, ":")
	return namespace, is
}

// probe asks the evaluator which entries cover an actor and a namespace now.
func (c *Collector) probe(group, user string, groups []string, namespace string) evaluator.Finding {
	member := c.groups[group].member
	verdict := c.full.Evaluate(&evaluator.Request{
		Operation: evaluator.Create, Resource: "pods", Namespace: namespace,
		Pod:  &corev1.Pod{Spec: corev1.PodSpec{NodeName: member}},
		User: evaluator.User{Name: user, Groups: groups},
	}, c.config.Cluster)
	for _, finding := range verdict.Findings {
		if finding.Group == group {
			return finding
		}
	}
	return evaluator.Finding{}
}

// note keeps a note about what could not be found out, once.
func (c *Collector) note(format string, args ...any) { c.notes[fmt.Sprintf(format, args...)] = true }

// told joins at most three texts.
func told(texts map[string]bool) string {
	const most = 3
	sorted := slices.Sorted(maps.Keys(texts))
	if len(sorted) > most {
		sorted = append(sorted[:most:most], fmt.Sprintf("%d more", len(sorted)-most))
	}
	return strings.Join(sorted, ", ")
}
