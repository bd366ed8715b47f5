package schedulingtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	groupsv1alpha1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/scheduling/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// change applies one line of the command cluster.
func (w *World) change(line string) error {
	words := strings.Fields(line)
	name := ""
	if len(words) > 1 {
		name = words[1]
	}
	a := map[string][]string{}
	if len(words) > 2 {
		a = attributes(words[2:])
	}
	switch words[0] {
	case "new":
		*w = *NewWorld()
		return nil
	case "ready", "not-ready":
		w.NotReady = words[0] == "not-ready"
		return nil
	case "readable", "unreadable":
		w.unreadable = words[0] == "unreadable"
		return nil
	case "no-scheduler":
		w.Sources.Scheduler = nil
		return nil
	case "self":
		w.Sources.SelfNamespace = name
		return nil
	case "live":
		w.Sources.Live = evaluator.Source(name)
		return nil
	case "namespace":
		w.namespaces[name] = last(a["uid"])
		return nil
	case "no-namespace":
		w.namespaces[name] = ""
		return nil
	case "no-node":
		delete(w.nodes, name)
		delete(w.live, name)
		return nil
	case "grant":
		if len(words) != 4 {
			return errors.New("want grant SUBJECT VERB GROUP")
		}
		w.grants[strings.Join(words[1:], " ")] = true
		return nil
	}
	return w.set(words, name, a)
}

// set applies a line that has attributes.
func (w *World) set(words []string, name string, a map[string][]string) error {
	switch words[0] {
	case "group":
		return w.group(name, a)
	case "authorization":
		w.config().Authorization = v1alpha1.Authorization(name)
	case "pins":
		w.config().EntryPins = v1alpha1.EntryPins(name)
	case "override":
		w.config().EmergencyOverride = v1alpha1.EmergencyOverride(name)
	case "scheduler":
		w.Sources.Scheduler = scheduler(name, a)
	case "own":
		w.own(name, a)
	case "node", "live-node":
		node, err := newNode(name, a)
		if err != nil {
			return err
		}
		into := w.nodes
		if words[0] == "live-node" {
			into = w.live
		}
		into[name] = node
	case "pod":
		pod, err := newPod(name, words[2:])
		if err != nil {
			return err
		}
		w.pods[name] = pod
	default:
		return errors.New(
			"want new, group, authorization, override, pins, scheduler, no-scheduler, live, own, node, live-node, no-node, " +
				"pod, grant, namespace, no-namespace, self, ready, not-ready, readable or unreadable")
	}
	return nil
}

// group sets a group of the configuration: select (a requirement), taints, mode, users.
func (w *World) group(name string, a map[string][]string) error {
	g := v1alpha1.SchedulingPolicyGroup{Name: configv1.GroupName(name), Mode: configv1.GroupMode(last(a["mode"])),
		AuthorizedUsers: list(a["users"])}
	for _, text := range list(a["select"]) {
		r, err := requirement(text)
		if err != nil {
			return err
		}
		if r.Operator == corev1.NodeSelectorOpIn && len(r.Values) == 1 {
			g.LabelSelector.MatchLabels = with(g.LabelSelector.MatchLabels, r.Key+"="+r.Values[0])
			continue
		}
		g.LabelSelector.MatchExpressions = append(g.LabelSelector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: r.Key, Operator: metav1.LabelSelectorOperator(r.Operator),
				Values: r.Values})
	}
	for _, text := range list(a["taints"]) {
		key, effect, _ := strings.Cut(text, ":")
		g.Taints = append(g.Taints, v1alpha1.GroupTaint{Key: key, Effect: corev1.TaintEffect(effect)})
	}
	config := w.config()
	for i := range config.Groups {
		if config.Groups[i].Name == g.Name {
			config.Groups[i] = g
			return nil
		}
	}
	config.Groups = append(config.Groups, g)
	return nil
}

// scheduler makes a Scheduler of that name: mode, users, group (ControlPlane if unset).
func scheduler(name string, a map[string][]string) *configv1.Scheduler {
	s := &configv1.Scheduler{ObjectMeta: metav1.ObjectMeta{Name: name}}
	group := configv1.ControlPlane
	if len(a["group"]) > 0 {
		group = configv1.GroupName(last(a["group"]))
	}
	s.Spec.SchedulingGroups = []configv1.SchedulingGroup{
		{Name: group, Mode: configv1.GroupMode(last(a["mode"])), AuthorizedUsers: list(a["users"])},
	}
	return s
}

// own sets a NodeSchedulingGroup of that name: mode, users, group (ControlPlane if unset).
func (w *World) own(name string, a map[string][]string) {
	entry := scheduler(name, a).Spec.SchedulingGroups[0]
	object := groupsv1alpha1.NodeSchedulingGroup{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: groupsv1alpha1.NodeSchedulingGroupSpec{Name: string(entry.Name), Mode: string(entry.Mode),
			AuthorizedUsers: entry.AuthorizedUsers}}
	w.Sources.Groups = slices.DeleteFunc(w.Sources.Groups,
		func(g groupsv1alpha1.NodeSchedulingGroup) bool { return g.Name == name })
	w.Sources.Groups = append(w.Sources.Groups, object)
}

// newNode makes a node: labels, taints.
func newNode(name string, a map[string][]string) (*corev1.Node, error) {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid, Labels: map[string]string{corev1.LabelHostname: name}},
	}
	for _, text := range list(a["labels"]) {
		key, value, _ := strings.Cut(text, "=")
		node.Labels[key] = value
	}
	for _, text := range list(a["taints"]) {
		rest, effect, found := strings.Cut(text, ":")
		if !found {
			return nil, fmt.Errorf("taint %s has no effect", text)
		}
		key, value, _ := strings.Cut(rest, "=")
		node.Spec.Taints = append(node.Spec.Taints,
			corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	return node, nil
}

// attributes reads words of the form key=value; a word without = has an empty value.
func attributes(words []string) map[string][]string {
	a := map[string][]string{}
	for _, word := range words {
		key, value, _ := strings.Cut(word, "=")
		a[key] = append(a[key], value)
	}
	return a
}

func last(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[len(values)-1]
}

// list splits values at commas. It is never nil.
func list(values []string) []string {
	all := []string{}
	for _, value := range values {
		if value != "" {
			all = append(all, strings.Split(value, ",")...)
		}
	}
	return all
}
