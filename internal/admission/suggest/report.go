package suggest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// Class is whose an entry is.
type Class string

const (
	// Platform: the list of the platform's components has it.
	Platform Class = "platform"
	// Known: an entry that is there covers it, or it is Kubernetes' own: the namespace kube-system, and controllers
	// that put pods there which may be there.
	Known Class = "known"
	// Unknown: somebody has to decide about it.
	Unknown Class = "unknown"
)

func classes() []Class { return []Class{Platform, Known, Unknown} }

// Entry is a line of a list, as it is or as it is suggested.
type Entry struct {
	Text  string `json:"entry"`
	Class Class  `json:"class"`
	// Reason says what needs it; it is empty for one that nothing needs.
	Reason string `json:"reason,omitempty"`
	// Source is where it stands already, "" for one that is new.
	Source evaluator.Source `json:"source,omitempty"`
}

// Adds reports whether to add the entry without anybody's decision.
func (e Entry) Adds() bool { return e.Source == "" && e.Class != Unknown }

// Group is what is suggested for a group.
type Group struct {
	Name   string `json:"name"`
	Target Target `json:"target"`
	// Entries are those that are there and those that are suggested, by class and text.
	Entries []Entry `json:"entries"`
	// Unused are those that are there and that nothing was found to need.
	Unused []string `json:"unused,omitempty"`
}

// Report is what a Collector comes to.
type Report struct {
	Groups []Group `json:"groups"`
	// Notes say what could not be found out.
	Notes []string `json:"notes,omitempty"`
}

// Complete reports whether there is nothing to add without a decision.
func (r Report) Complete() bool {
	return !slices.ContainsFunc(r.Groups, func(g Group) bool { return slices.ContainsFunc(g.Entries, Entry.Adds) })
}

// Report returns the suggestions, in an order that does not depend on that of the pods. It returns an error if a
// namespace cannot be read.
func (c *Collector) Report() (Report, error) {
	report := Report{Groups: []Group{}}
	for _, name := range c.order {
		group, err := c.group(name)
		if err != nil {
			return Report{}, err
		}
		report.Groups = append(report.Groups, group)
	}
	if c.more > 0 {
		c.note("more than %d actors of a group: the others are left out", maxActors)
	}
	report.Notes = slices.Sorted(maps.Keys(c.notes))
	return report, nil
}

func (c *Collector) group(name string) (Group, error) {
	group := Group{Name: name, Target: c.config.Target(name), Entries: []Entry{}}
	found := map[string]map[string]bool{} // existing entries, and what uses them
	uses := func(entry, what string) {
		if found[entry] == nil {
			found[entry] = map[string]bool{}
		}
		found[entry][what] = true
	}
	listed := map[string]bool{}
	for _, entry := range c.config.Platform.Entries() {
		listed[entry] = true
	}
	fine := map[string]bool{} // namespaces of the platform, or covered by an entry
	if g := c.groups[name]; g.member != "" {
		for _, namespace := range slices.Sorted(maps.Keys(g.namespaces)) {
			covered := c.probe(name, "", nil, namespace).NamespaceEntry
			fine[namespace] = covered != "" || listed["namespace:"+namespace]
			if covered != "" {
				uses(covered, told(g.namespaces[namespace].reasons))
				continue
			}
			entry := Entry{Text: "namespace:" + namespace, Class: Unknown,
				Reason: told(g.namespaces[namespace].reasons)}
			switch {
			case listed[entry.Text]:
				entry.Class = Platform
			case namespace == metav1.NamespaceSystem:
				entry.Class, fine[namespace] = Known, true // Kubernetes' own
			}
			if err := c.suggest(&group, entry, namespace); err != nil {
				return Group{}, err
			}
		}
		for _, user := range slices.Sorted(maps.Keys(g.actors)) {
			if err := c.suggestActor(&group, user, g.actors[user], fine, listed, uses); err != nil {
				return Group{}, err
			}
		}
	}
	c.present(&group, found, listed)
	slices.SortFunc(group.Entries, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(slices.Index(classes(), a.Class), slices.Index(classes(), b.Class)),
			cmp.Compare(a.Text, b.Text))
	})
	return group, nil
}

// suggestActor suggests an entry for an actor, unless an entry covers it.
func (c *Collector) suggestActor(group *Group, user string, n *need, fine, listed map[string]bool,
	uses func(string, string)) error {
	reason := told(n.reasons) + " in " + told(n.serves)
	if covered := c.probe(group.Name, user, n.groups, "").ActorEntry; covered != "" {
		uses(covered, reason)
		return nil
	}
	namespace, _ := home(user)
	entry := Entry{Text: spell(user), Class: Unknown, Reason: reason}
	switch {
	case listed[entry.Text]:
		entry.Class = Platform
	case strings.HasPrefix(user, account+"kube-system:") && slices.ContainsFunc(slices.Collect(maps.Keys(n.serves)),
		func(s string) bool { return fine[s] }):
		entry.Class = Known // a controller of Kubernetes itself, for allowed pods
	}
	return c.suggest(group, entry, namespace)
}

// suggest adds a new entry, with the UID of the namespace that it names. It omits the UID if only the platform can
// have a namespace of that name.
func (c *Collector) suggest(group *Group, entry Entry, namespace string) error {
	if namespace != "" && !strings.HasPrefix(namespace, "openshift-") && !strings.HasPrefix(namespace, "kube-") &&
		c.config.Cluster.Namespace != nil {
		uid, exists, err := c.config.Cluster.Namespace(namespace)
		switch {
		case err != nil:
			return fmt.Errorf("reading namespace %s: %w", namespace, err)
		case !exists:
			c.note("group %s: %s is left out: there is no namespace %s any more", group.Name,
				printable(entry.Text), namespace)
			return nil
		}
		entry.Text += "@" + uid
	}
	if slices.ContainsFunc(c.full.Entries(), func(e evaluator.Entry) bool {
		return e.Group == group.Name &&
			e.Text == entry.Text
	}) {
		c.note("group %s: %s is listed and authorizes nobody now: see the entries of the audit", group.Name,
			printable(entry.Text))
		return nil
	}
	if err := valid(entry.Text); err != nil {
		c.note("group %s: %s is left out: %s", group.Name, printable(entry.Text), printable(err.Error()))
		return nil
	}
	group.Entries = append(group.Entries, entry)
	return nil
}

// present adds the existing entries. It calls those of people unused only if the metrics say so: no pod shows who
// created it.
func (c *Collector) present(group *Group, found map[string]map[string]bool, listed map[string]bool) {
	seen := map[string]bool{}
	for _, e := range c.full.Entries() {
		if e.Group != group.Name || seen[e.Text] {
			continue
		}
		seen[e.Text] = true
		entry := Entry{Text: e.Text, Class: Known, Source: e.Source, Reason: told(found[e.Text])}
		if listed[e.Text] {
			entry.Class = Platform
		}
		count, counted := c.uses[use{group.Name, e.Text}]
		switch {
		case entry.Reason != "":
		case count > 0:
			entry.Reason = "used, as the metrics say"
		case counted || !person(e.Text):
			group.Unused = append(group.Unused, e.Text)
		}
		group.Entries = append(group.Entries, entry)
	}
	slices.Sort(group.Unused)
}

// person reports whether an entry is not for a namespace, a service account or the scheduler: then pods do not show
// its use.
func person(text string) bool {
	bare, _, _ := strings.Cut(strings.TrimPrefix(text, "user:"), "@")
	switch {
	case strings.HasPrefix(bare, "namespace:"), strings.HasPrefix(bare, account), bare == kubeScheduler:
		return false
	case strings.HasPrefix(bare, "group:"), strings.HasPrefix(text, "user:"):
		return true
	}
	return !strings.Contains(bare, "/")
}

// spell returns the entry that authorizes a user as actor only.
func spell(user string) string {
	if strings.Contains(user, "/") || strings.HasPrefix(user, account) {
		return "user:" + user
	}
	for _, prefix := range []string{"user:", "group:", "namespace:"} {
		if strings.HasPrefix(user, prefix) {
			return "user:" + user
		}
	}
	return user
}

// valid returns the error that a door would return for an entry.
func valid(text string) error {
	return evaluator.Check(&v1alpha1.NodeSchedulingPolicyConfig{Groups: []v1alpha1.SchedulingPolicyGroup{{
		Name: "ControlPlane", LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}},
		AuthorizedUsers: []string{text},
	}}})
}
