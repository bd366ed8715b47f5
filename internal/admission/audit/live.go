package audit

import (
	"encoding/json"
	"fmt"
	"strings"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	groupsv1alpha1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/scheduling/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// LiveConfig is what was found out about the live source.
type LiveConfig struct {
	// Source is the live source. If empty, the report does not mention it.
	Source evaluator.Source
	// Served says that the cluster has the kind Scheduler. Scheduler is the object, nil if there is none.
	Served    bool
	Scheduler *configv1.Scheduler
	// Groups are the NodeSchedulingGroups of the cluster, even if they are not the source.
	Groups []groupsv1alpha1.NodeSchedulingGroup
}

// Live is what the report says of the live source.
type Live struct {
	Source evaluator.Source `json:"source"`
	// Message says why it is that one.
	Message string `json:"message"`
	// SetMode is a command that sets the mode of the control plane's group to Inform, and AddEntries one that writes
	// what is needed.
	SetMode    string `json:"setMode"`
	AddEntries string `json:"addEntries,omitempty"`
	// NotCounted are the entries and modes of the other source.
	NotCounted []string `json:"notCounted,omitempty"`
	// Note is what is between Scheduler and the mode (N70).
	Note string `json:"note,omitempty"`
}

const addEntries = "joinerctl audit control-plane --suggest -o yaml --policy-file FILE | " +
	"kubectl apply --server-side --field-manager=joinerctl -f -"

// live says where entries and modes are written in this cluster.
func (c LiveConfig) live(mode configv1.GroupMode) *Live {
	own := groupsv1alpha1.NameOf(configv1.ControlPlane)
	live := &Live{Source: c.Source, AddEntries: addEntries}
	switch c.Source {
	case evaluator.FromScheduler:
		live.Message = fmt.Sprintf("Scheduler %q (%s), which has spec.schedulingGroups", configv1.SchedulerName,
			configv1.GroupVersion())
		live.SetMode = c.setInScheduler()
		for _, group := range c.Groups {
			live.NotCounted = append(live.NotCounted, fmt.Sprintf("%s %s: mode %q, %s", groupsv1alpha1.Kind,
				group.Name, group.Spec.Mode,
				entries(len(group.Spec.AuthorizedUsers))))
		}
	case evaluator.FromGroups:
		live.Message = fmt.Sprintf("%s %q (%s), since %s", groupsv1alpha1.Kind, own, groupsv1alpha1.GroupVersion(),
			c.lacks())
		live.SetMode = c.setInGroup(own)
	default:
		live.Message = fmt.Sprintf("none, since %s and no kind %s: the file of the policy decides alone", c.lacks(),
			groupsv1alpha1.Kind)
		live.SetMode = fmt.Sprintf("kubectl apply -f charts/joiner-webhook/crds, then make a %s", groupsv1alpha1.Kind)
		live.AddEntries = ""
	}
	if c.Source != evaluator.FromScheduler && c.Scheduler != nil && c.Scheduler.Spec.MastersSchedulable {
		live.Note = fmt.Sprintf(
			"spec.mastersSchedulable of Scheduler %s is true, which opens the control plane nodes to all "+
				"pods: ", configv1.SchedulerName)
		if mode == configv1.Enable {
			live.Note += "the mode Enable holds all the same; set one of them otherwise"
		} else {
			live.Note += "until it is false, the mode cannot become Enable"
		}
	}
	return live
}

// lacks says why Scheduler is not the source.
func (c LiveConfig) lacks() string {
	if c.Served {
		return "Scheduler has no spec.schedulingGroups in this cluster"
	}
	return "the cluster has no kind Scheduler"
}

func (c LiveConfig) setInGroup(name string) string {
	for _, group := range c.Groups {
		if group.Name == name {
			return fmt.Sprintf(`kubectl patch nodeschedulinggroup %s --type=merge -p '{"spec":{"mode":"Inform"}}'`,
				name)
		}
	}
	return create(groupsv1alpha1.GroupVersion().String(), groupsv1alpha1.Kind, name,
		map[string]any{"name": configv1.ControlPlane, "mode": configv1.Inform})
}

func (c LiveConfig) setInScheduler() string {
	const patch = "kubectl patch scheduler " + configv1.SchedulerName
	if c.Scheduler == nil {
		return create(configv1.GroupVersion().String(), "Scheduler", configv1.SchedulerName,
			map[string]any{
				"schedulingGroups": []any{map[string]any{"name": configv1.ControlPlane, "mode": configv1.Inform}},
			})
	}
	for i, group := range c.Scheduler.Spec.SchedulingGroups {
		if group.Name == configv1.ControlPlane {
			return fmt.Sprintf(
				`%s --type=json -p '[{"op":"add","path":"/spec/schedulingGroups/%d/mode","value":"Inform"}]'`,
				patch, i)
		}
	}
	return patch + ` --type=merge -p '{"spec":{"schedulingGroups":[{"name":"ControlPlane","mode":"Inform"}]}}'`
}

// create returns a command that creates an object.
func create(version, kind, name string, spec map[string]any) string {
	text, err := json.Marshal(map[string]any{"apiVersion": version, "kind": kind,
		"metadata": map[string]any{"name": name}, "spec": spec})
	if err != nil {
		return err.Error() // texts always become JSON
	}
	return fmt.Sprintf("echo '%s' | kubectl apply --server-side -f -", text)
}

func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

func (l *Live) describe(b *strings.Builder) {
	if l == nil {
		return
	}
	fmt.Fprintf(b, "Live source: %s\n  set the mode: %s\n", l.Message, l.SetMode)
	if l.AddEntries != "" {
		fmt.Fprintf(b, "  add entries:  %s\n", l.AddEntries)
	}
	for _, other := range l.NotCounted {
		fmt.Fprintf(b, "  not counted:  %s\n", other)
	}
	if l.Note != "" {
		fmt.Fprintf(b, "  note:         %s\n", l.Note)
	}
	b.WriteString("\n")
}
