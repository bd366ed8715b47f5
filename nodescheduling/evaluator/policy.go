package evaluator

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	groupsv1alpha1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/scheduling/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
)

// FeatureGate is the name of the gate that a door in kube-apiserver reads. It is off by default. While it is off, the
// door has no policy (N5).
const FeatureGate = "OpenShiftNodeSchedulingPolicy"

// Sources is the input of [New].
type Sources struct {
	// Config is the configuration of the door. Nil means no policy (N4).
	Config *v1alpha1.NodeSchedulingPolicyConfig
	// Scheduler is the cluster's Scheduler, or nil if there is none (N12). It is ignored unless its name is cluster
	// (N8).
	Scheduler *configv1.Scheduler
	// Live is the source that administrators write while the cluster runs: FromScheduler, which is the default, or
	// FromGroups. The other one is ignored.
	Live Source
	// Groups are the cluster's NodeSchedulingGroups.
	Groups []groupsv1alpha1.NodeSchedulingGroup
	// SelfNamespace is the namespace of the door itself. Its pods are not judged: otherwise a webhook that must run on
	// protected nodes could not start. A door in kube-apiserver leaves it empty.
	SelfNamespace string
}

// Policy is what is in force: the groups, their modes and who is authorized. It is immutable. A nil Policy protects
// nothing.
type Policy struct {
	groups    []group // those with mode Enable or Inform, in the order of the configuration
	all       []group // those with mode Disable too
	effective []Effective
	rbac      bool
	override  bool
	automatic bool // a door that can change pods writes the annotation of the override
	pins      bool // entries need the UID of the namespace that they name
	self      string
}

// group is a group of nodes that the configuration names.
type group struct {
	name     string
	mode     configv1.GroupMode
	members  Members
	labelKey string // a label of all nodes of the group, which pods can avoid; "" if there is none
	live     Source
	entries  []Entry
	authorized
}

// Effective is one group as it results from both sources, for metrics and logs (N66).
type Effective struct {
	Group      string
	Mode       configv1.GroupMode // never empty
	Authorized int                // entries
}

// Source is where an entry comes from.
type Source string

const (
	// FromConfig: in the configuration of the door.
	FromConfig Source = "Config"
	// FromScheduler: in the cluster's Scheduler.
	FromScheduler Source = "Scheduler"
	// FromGroups: in the cluster's NodeSchedulingGroups.
	FromGroups Source = "NodeSchedulingGroup"
	// NoSource is the live source of a cluster without NodeSchedulingGroups, and without the field in Scheduler.
	NoSource Source = "None"
)

// Lives returns the live sources that a cluster may have besides the configuration.
func Lives() []Source { return []Source{FromScheduler, FromGroups, NoSource} }

// Entry is a line of authorizedUsers.
type Entry struct {
	Group, Text string
	Source      Source
	read        entry
}

// Ignored is a part of the live source that has no effect.
type Ignored struct {
	// Object is the object that has it, such as "Scheduler cluster".
	Object string
	// Field is the path of the ignored part.
	Field string
	// Why says what is wrong with it and what is allowed.
	Why string
}

// New makes a policy from its sources. Entries of the live source add to those of the configuration, and remove none
// (N7, N9). A non-empty mode of the live source replaces that of the configuration (N10, H11). The live source is
// written at run time, so its mistakes are no error: New ignores and returns them. The error is that of [Check].
func New(sources Sources) (*Policy, []Ignored, error) {
	if sources.Config == nil {
		return nil, nil, nil
	}
	if err := Check(sources.Config); err != nil {
		return nil, nil, err
	}
	extensions, ignored := extend(sources)
	policy := &Policy{
		rbac: sources.Config.Authorization == v1alpha1.ListsAndRBAC,
		override: sources.Config.EmergencyOverride == v1alpha1.OverrideEnable ||
			sources.Config.EmergencyOverride == v1alpha1.OverrideAutomatic,
		automatic: sources.Config.EmergencyOverride == v1alpha1.OverrideAutomatic,
		pins:      sources.Config.EntryPins == v1alpha1.PinsRequire,
		self:      sources.SelfNamespace,
	}
	for _, configured := range sources.Config.Groups {
		members, err := MembersOf(&configured)
		if err != nil {
			return nil, nil, fmt.Errorf("group %s: %w", configured.Name, err)
		}
		extension := extensions[configured.Name]
		g := group{
			name: string(configured.Name), mode: cmp.Or(extension.Mode, configured.Mode, configv1.Disable),
			members: members, labelKey: labelKey(configured.LabelSelector), live: sources.live(),
			authorized: newAuthorized(),
		}
		texts := slices.Concat(configured.AuthorizedUsers, extension.AuthorizedUsers)
		for i, text := range texts {
			read, err := readEntry(text, policy.pins)
			if err != nil {
				return nil, nil, fmt.Errorf("group %s: entry %q: %w", g.name, shorten(text), err)
			}
			g.add(text, read)
			source := FromConfig
			if i >= len(configured.AuthorizedUsers) {
				source = sources.live()
			}
			g.entries = append(g.entries, Entry{Group: g.name, Text: text, Source: source, read: read})
		}
		policy.effective = append(policy.effective, Effective{Group: g.name, Mode: g.mode, Authorized: len(texts)})
		policy.all = append(policy.all, g)
		if g.mode != configv1.Disable {
			policy.groups = append(policy.groups, g)
		}
	}
	return policy, ignored, nil
}

// live returns the live source in use.
func (s Sources) live() Source { return cmp.Or(s.Live, FromScheduler) }

// said is a group of the live source, and where it is from.
type said struct {
	object, path string
	group        configv1.SchedulingGroup
}

// said returns the groups of the live source, in its order.
func (s Sources) said() ([]said, []Ignored) {
	var all []said
	if s.live() == FromGroups {
		for _, object := range s.Groups {
			all = append(all, said{groupsv1alpha1.Kind + " " + shorten(object.Name), "spec", object.Spec.Entry()})
		}
		return all, nil
	}
	if s.Scheduler == nil {
		return nil, nil
	}
	const object = "Scheduler " + configv1.SchedulerName
	if name := s.Scheduler.Name; name != configv1.SchedulerName {
		return nil, []Ignored{{object, "metadata.name", fmt.Sprintf("is %q: only the Scheduler called %s counts",
			shorten(name), configv1.SchedulerName)}}
	}
	for i, group := range s.Scheduler.Spec.SchedulingGroups {
		all = append(all, said{object, fmt.Sprintf("spec.schedulingGroups[%d]", i), group})
	}
	return all, nil
}

// extend reads the live source. It returns what that adds to each group of the configuration, by name, and the parts
// that have no effect.
func extend(sources Sources) (map[configv1.GroupName]configv1.SchedulingGroup, []Ignored) {
	all, ignored := sources.said()
	found := map[configv1.GroupName]configv1.SchedulingGroup{}
	for _, s := range all {
		group, path := s.group, s.path
		ignore := func(field, format string, args ...any) {
			ignored = append(ignored, Ignored{Object: s.object, Field: field, Why: fmt.Sprintf(format, args...)})
		}
		if !slices.ContainsFunc(sources.Config.Groups, func(c v1alpha1.SchedulingPolicyGroup) bool {
			return c.Name == group.Name
		}) {
			ignore(path+".name", "is %q: the configuration has no such group", shorten(string(group.Name)))
			continue
		}
		kept := configv1.SchedulingGroup{Mode: group.Mode}
		if _, twice := found[group.Name]; twice {
			ignore(path+".name", "is %q a second time: the first holds", group.Name)
			continue
		}
		switch group.Mode {
		case "", configv1.Disable, configv1.Enable, configv1.Inform:
		default:
			ignore(path+".mode", "is %q: it must be empty, %s, %s or %s", shorten(string(group.Mode)),
				configv1.Disable, configv1.Enable, configv1.Inform)
			kept.Mode = ""
		}
		for j, text := range group.AuthorizedUsers {
			if _, err := readEntry(text, sources.Config.EntryPins == v1alpha1.PinsRequire); err != nil {
				ignore(fmt.Sprintf("%s.authorizedUsers[%d]", path, j), "is %q: %v", shorten(text), err)
				continue
			}
			kept.AuthorizedUsers = append(kept.AuthorizedUsers, text)
		}
		found[group.Name] = kept
	}
	return found, ignored
}

// labelKey returns a label that every node of a group has, the first by name, so that users can be told to avoid it.
func labelKey(selector metav1.LabelSelector) string {
	var keys []string
	for key := range selector.MatchLabels {
		keys = append(keys, key)
	}
	for _, expression := range selector.MatchExpressions {
		if expression.Operator == metav1.LabelSelectorOpIn || expression.Operator == metav1.LabelSelectorOpExists {
			keys = append(keys, expression.Key)
		}
	}
	if len(keys) == 0 {
		return ""
	}
	return slices.Min(keys)
}

// Effective returns all groups, including disabled ones, in the order of the configuration.
func (p *Policy) Effective() []Effective {
	if p == nil {
		return nil
	}
	return slices.Clone(p.effective)
}

// watches reports whether any request can concern the policy: a group is not disabled, or the emergency override is
// on.
func (p *Policy) watches() bool { return len(p.groups) > 0 || p.override && len(p.all) > 0 }

// Entries returns the entries of the groups whose mode is not Disable, in the order of the configuration. In each
// group, entries of the live source follow those of the file. A text in both appears twice; the first one is used.
func (p *Policy) Entries() []Entry {
	if p == nil {
		return nil
	}
	var entries []Entry
	for _, g := range p.groups {
		entries = append(entries, g.entries...)
	}
	return entries
}

// GroupsOf returns the names of the groups that a node belongs to, whatever their mode.
func (p *Policy) GroupsOf(node *corev1.Node) []string {
	if p == nil {
		return nil
	}
	var names []string
	for _, g := range p.all {
		if g.members.Has(node) {
			names = append(names, g.name)
		}
	}
	return names
}
