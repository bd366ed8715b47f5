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

// FeatureGate is the name of the gate that a door in kube-apiserver reads: while it is off, which it is by default, the
// door has no policy (N5).
const FeatureGate = "OpenShiftNodeSchedulingPolicy"

// Sources is what a policy is made of.
type Sources struct {
	// Config is the configuration of the door. None at all is no policy (N4).
	Config *v1alpha1.NodeSchedulingPolicyConfig
	// Scheduler is the cluster's Scheduler, or nil where there is none (N12). One that is not called cluster does not
	// count (N8).
	Scheduler *configv1.Scheduler
	// Live is the source that administrators write while the cluster runs: FromScheduler, which it is where it is empty,
	// or FromGroups. What the other one says does not count.
	Live Source
	// Groups are the cluster's NodeSchedulingGroups.
	Groups []groupsv1alpha1.NodeSchedulingGroup
	// SelfNamespace, where set, is the namespace of the door itself, whose pods are not judged: a webhook that must run
	// on protected nodes could not start otherwise. A door in kube-apiserver leaves it empty.
	SelfNamespace string
}

// Policy is what is in force: the groups, their modes and who is authorized. It does not change; a nil Policy protects
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
	labelKey string // a label whose absence keeps a pod off the group's nodes, "" if there is no single one
	live     Source
	entries  []Entry
	authorized
}

// Effective is one group as it came out of both sources, for metrics and logs (N66).
type Effective struct {
	Group      string
	Mode       configv1.GroupMode // never empty
	Authorized int                // entries
}

// Source is where an entry stands.
type Source string

const (
	// FromConfig: in the configuration of the door.
	FromConfig Source = "Config"
	// FromScheduler: in the cluster's Scheduler.
	FromScheduler Source = "Scheduler"
	// FromGroups: in the cluster's NodeSchedulingGroups.
	FromGroups Source = "NodeSchedulingGroup"
	// NoSource is the live source of a cluster that has neither kind with the field.
	NoSource Source = "None"
)

// Lives lists the live sources that a cluster may have beside the configuration.
func Lives() []Source { return []Source{FromScheduler, FromGroups, NoSource} }

// Entry is a line of authorizedUsers.
type Entry struct {
	Group, Text string
	Source      Source
	read        entry
}

// Ignored is a part of the live source that has no effect.
type Ignored struct {
	// Object is what has it, as in "Scheduler cluster".
	Object string
	// Field is its path.
	Field string
	// Why says what is wrong with it and what is allowed.
	Why string
}

// New makes a policy of its sources. Entries of the live source add to those of the configuration and take none away
// (N7, N9); its mode, where it is not empty, replaces that of the configuration (N10, H11). It is written at run
// time, so what is wrong with it does not fail: it is ignored, and returned. An error is [Check]'s.
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
			members: members, labelKey: labelKey(configured.LabelSelector), live: sources.live(), authorized: newAuthorized(),
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

// live is the source that counts.
func (s Sources) live() Source { return cmp.Or(s.Live, FromScheduler) }

// said is an entry of the live source, and where it stands.
type said struct {
	object, path string
	group        configv1.SchedulingGroup
}

// said lists what the live source says, in its order.
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

// extend reads the live source: what it adds to each group of the configuration, by name, without what has no effect.
func extend(sources Sources) (map[configv1.GroupName]configv1.SchedulingGroup, []Ignored) {
	all, ignored := sources.said()
	found := map[configv1.GroupName]configv1.SchedulingGroup{}
	for _, s := range all {
		group, path := s.group, s.path
		ignore := func(field, format string, args ...any) {
			ignored = append(ignored, Ignored{Object: s.object, Field: field, Why: fmt.Sprintf(format, args...)})
		}
		if !slices.ContainsFunc(sources.Config.Groups, func(c v1alpha1.SchedulingPolicyGroup) bool { return c.Name == group.Name }) {
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
			ignore(path+".mode", "is %q: it must be empty, %s, %s or %s", shorten(string(group.Mode)), configv1.Disable, configv1.Enable, configv1.Inform)
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

// labelKey finds the label that every node of a group has, so that users can be told to avoid it. The first by name.
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

// Effective lists the groups in the order of the configuration, with the disabled ones.
func (p *Policy) Effective() []Effective {
	if p == nil {
		return nil
	}
	return slices.Clone(p.effective)
}

// watches says whether any request can concern the policy: a group is not disabled, or the annotation of the override means
// something.
func (p *Policy) watches() bool { return len(p.groups) > 0 || p.override && len(p.all) > 0 }

// Entries lists the entries of the groups whose mode is not Disable, in the order of the configuration, with the live
// source's behind those of the file. A text that stands in both is listed twice; it is the first that is used.
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

// GroupsOf names the groups that a node is of, whatever their mode.
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
