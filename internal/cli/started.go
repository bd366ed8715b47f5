package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/joiner-autoscaler/joiner/internal/takeover"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

const (
	featureGates = "feature-gates"
	observeOnly  = "observe-only"
)

// started is how the controller of a cluster was started, as far as its pod shows it: by arguments and environment
// variables. So a plan for a cluster is made with the settings of its controller.
type started struct {
	pod string // namespace/name; "" if no pod of Joiner was read
	// values are the settings by their flags.
	values map[string]string
	// unread are settings whose values the pod does not show.
	unread []string
}

// startedWith finds how the controller of a cluster was started: the pod of Joiner that leads at this time, or else a
// ready one, or else any; of several the newest. A pod that only observes does not control the cluster.
func startedWith(documents []whatif.Document, now time.Time) (found started) {
	leads := leaders(documents, now)
	var best rank
	for _, d := range documents {
		o := unstructured.Unstructured{Object: d.Content}
		if o.GetKind() != "Pod" || !whatif.OfJoiner(o.GetLabels()) {
			continue // as nearly all: only the others are decoded
		}
		var pod corev1.Pod
		if understand(d.Content, &pod) != nil || ends(&pod) || len(pod.Spec.Containers) == 0 {
			continue
		}
		own := rank{leads: leads[pod.Name], ready: isReady(&pod), created: pod.CreationTimestamp.Time}
		if found.pod != "" && !own.above(best) {
			continue
		}
		if s := startedBy(&pod); !s.observes() {
			found, best = s, own
		}
	}
	return found
}

// leaders returns the names of the pods that lead by a lease.
func leaders(documents []whatif.Document, now time.Time) map[string]bool {
	names := map[string]bool{}
	for _, d := range documents {
		var lease coordinationv1.Lease
		if d.Content["kind"] == "Lease" && understand(d.Content, &lease) == nil {
			names[whatif.LeaderOf(lease, now)] = true
		}
	}
	return names
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// rank says how likely a pod is to control its cluster.
type rank struct {
	leads, ready bool
	created      time.Time
}

func (r rank) above(other rank) bool {
	switch {
	case r.leads != other.leads:
		return r.leads
	case r.ready != other.ready:
		return r.ready
	}
	return other.created.Before(r.created)
}

// startedBy reads how the container of a pod was started.
func startedBy(pod *corev1.Pod) started {
	s := started{pod: pod.Namespace + "/" + pod.Name, values: map[string]string{}}
	container := pod.Spec.Containers[0]
	for _, c := range pod.Spec.Containers {
		if c.Name == "controller" || c.Name == "joiner" {
			container = c
		}
	}
	s.environment(container)
	s.arguments(slices.Concat(container.Command, container.Args))
	return s
}

// observes reports whether the program writes nothing, so that another one controls the cluster (K-26).
func (s started) observes() bool {
	is, err := strconv.ParseBool(s.values[observeOnly])
	return err == nil && is
}

func ends(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed ||
		pod.Status.Phase == corev1.PodSucceeded
}

// environment reads the variables of a container.
func (s *started) environment(container corev1.Container) {
	for _, flag := range flagsRead() {
		name := strings.ToUpper(strings.ReplaceAll(flag.name, "-", "_"))
		for _, variable := range container.Env {
			switch {
			case variable.Name != name:
			case variable.ValueFrom != nil || strings.Contains(variable.Value, "$("):
				s.unread = append(s.unread, "the variable "+name)
			default:
				s.values[flag.name] = variable.Value
			}
		}
	}
	if len(container.EnvFrom) > 0 {
		s.unread = append(s.unread, "the variables of envFrom")
	}
}

// arguments reads the flags of a container. They win over variables.
func (s *started) arguments(list []string) {
	flags := flagsRead()
	for i, argument := range list {
		text, dashed := strings.CutPrefix(argument, "-")
		name, value, given := strings.Cut(strings.TrimPrefix(text, "-"), "=")
		at := slices.IndexFunc(flags, func(f flagOfPlans) bool { return f.name == name })
		if !dashed || at < 0 && name != "config" {
			continue
		}
		if !given {
			value = "true"
			if i+1 < len(list) && !strings.HasPrefix(list[i+1], "--") && (at < 0 || !flags[at].alone) {
				value = list[i+1]
			}
		}
		switch {
		case name == "config":
			s.unread = append(s.unread, "the file "+value)
		case strings.Contains(value, "$("):
			s.unread = append(s.unread, "the flag "+argument)
			delete(s.values, name) // of a variable, which does not count
		default:
			s.values[name] = value
		}
	}
}

// flagOfPlans is a setting of the controller that plans depend on.
type flagOfPlans struct {
	name, byDefault string
	// take writes a value into the costs; nil for a setting that is not taken from the pod.
	take func(c *costs, value string) error
	// alone is set for a switch, whose value is not in the next argument.
	alone bool
}

// flagsRead are the flags to look for in a pod.
func flagsRead() []flagOfPlans {
	return append(flagsOfPlans(), flagOfPlans{name: observeOnly, alone: true})
}

func flagsOfPlans() []flagOfPlans {
	return []flagOfPlans{
		{name: "price-tolerance", byDefault: strconv.Itoa(whatif.DefaultPriceTolerance),
			take: func(c *costs, value string) (err error) { c.tolerance, err = strconv.Atoi(value); return err }},
		{name: "node-overhead-price", byDefault: "0",
			take: func(c *costs, value string) (err error) {
				c.overhead, err = strconv.ParseFloat(value, 64)
				return err
			}},
		{name: "max-nodes", byDefault: "0",
			take: func(c *costs, value string) (err error) {
				c.maxNodes, err = strconv.ParseInt(value, 10, 64)
				return err
			}},
		{name: "max-node-claims-hard", byDefault: "0",
			take: func(c *costs, value string) (err error) {
				c.maxClaims, err = strconv.ParseInt(value, 10, 64)
				return err
			}},
		{name: featureGates,
			take: func(c *costs, value string) (err error) { c.gates, err = takeover.GatesOf(value); return err }},
		{name: "commitments-file"}, {name: "ignore-dra-requests", byDefault: "true", alone: true},
		{name: "default-spread-constraints", byDefault: translate.DefaultSpreadNone}, {name: "scheduler-config"},
		{name: "min-values-policy", byDefault: "Strict"}, {name: "preference-policy", byDefault: "Respect"},
		{name: "consolidation-min-saving", byDefault: "0"}, {name: "consolidation-min-saving-percent", byDefault: "5"},
	}
}

// matters reports whether a value of the setting makes other plans than its default.
func (f flagOfPlans) matters(value string) bool {
	if f.name == featureGates {
		gates, err := takeover.GatesOf(value)
		return err != nil || gates != whatif.Gates{}
	}
	return value != "" && value != f.byDefault
}

// of returns the costs with the settings of the controller, except those that the user has given. The text says, for
// the line of sources, which ones differ from their defaults, and which ones are not considered; "" if none.
func (c costs) of(s started) (costs, string) {
	if s.pod == "" {
		return c, ""
	}
	var taken []string
	left := slices.Clone(s.unread)
	for _, flag := range flagsOfPlans() {
		value, known := s.values[flag.name]
		if !known || c.given != nil && c.given(flag.name) {
			continue
		}
		if flag.take == nil {
			if flag.matters(value) {
				left = append(left, flag.name+"="+strings.Join(strings.Fields(value), " "))
			}
			continue
		}
		with := c
		if err := flag.take(&with, value); err != nil {
			left = append(left, fmt.Sprintf("%s=%q, which cannot be read", flag.name, value))
			continue
		}
		if c = with; flag.matters(value) {
			taken = append(taken, flag.name+"="+value)
		}
	}
	if len(taken)+len(left) == 0 {
		return c, ""
	}
	text := "; settings of pod " + s.pod + ": " + cmp.Or(strings.Join(taken, ", "), "defaults")
	if len(left) > 0 {
		text += "; not considered: " + strings.Join(left, ", ")
	}
	return c, text
}
