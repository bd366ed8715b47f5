package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

const featureGates = "feature-gates"

// started is how the controller of a cluster was started, as far as its pod shows it: by arguments and environment
// variables. So a plan for a cluster is made with the settings of its controller.
type started struct {
	pod string // namespace/name; "" if no pod of Joiner was read
	// values are the settings by their flags.
	values map[string]string
	// unread are settings whose values the pod does not show.
	unread []string
}

// startedWith finds the newest pod of Joiner, and how it was started.
func startedWith(documents []whatif.Document) started {
	var newest *corev1.Pod
	for _, d := range documents {
		o := unstructured.Unstructured{Object: d.Content}
		if o.GetKind() != "Pod" || !whatif.OfJoiner(o.GetLabels()) {
			continue // as nearly all: only the others are decoded
		}
		var pod corev1.Pod
		if understand(d.Content, &pod) != nil || ends(&pod) {
			continue
		}
		if newest == nil || newest.CreationTimestamp.Before(&pod.CreationTimestamp) {
			newest = &pod
		}
	}
	if newest == nil || len(newest.Spec.Containers) == 0 {
		return started{}
	}
	s := started{pod: newest.Namespace + "/" + newest.Name, values: map[string]string{}}
	container := newest.Spec.Containers[0]
	for _, c := range newest.Spec.Containers {
		if c.Name == "controller" || c.Name == "joiner" {
			container = c
		}
	}
	s.environment(container)
	s.arguments(slices.Concat(container.Command, container.Args))
	return s
}

func ends(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed ||
		pod.Status.Phase == corev1.PodSucceeded
}

// environment reads the variables of a container.
func (s *started) environment(container corev1.Container) {
	for _, flag := range flagsOfPlans() {
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
	flags := flagsOfPlans()
	for i, argument := range list {
		name, value, given := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		known := slices.ContainsFunc(flags, func(f flagOfPlans) bool { return f.name == name })
		if !strings.HasPrefix(argument, "--") || !known && name != "config" {
			continue
		}
		if !given {
			value = "true"
			if i+1 < len(list) && !strings.HasPrefix(list[i+1], "--") {
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
}

func flagsOfPlans() []flagOfPlans {
	return []flagOfPlans{
		{"price-tolerance", strconv.Itoa(whatif.DefaultPriceTolerance),
			func(c *costs, value string) (err error) { c.tolerance, err = strconv.Atoi(value); return err }},
		{"node-overhead-price", "0",
			func(c *costs, value string) (err error) { c.overhead, err = strconv.ParseFloat(value, 64); return err }},
		{"max-nodes", "0",
			func(c *costs, value string) (err error) {
				c.maxNodes, err = strconv.ParseInt(value, 10, 64)
				return err
			}},
		{"max-node-claims-hard", "0",
			func(c *costs, value string) (err error) {
				c.maxClaims, err = strconv.ParseInt(value, 10, 64)
				return err
			}},
		{name: "commitments-file"}, {name: "ignore-dra-requests", byDefault: "true"},
		{name: "min-values-policy", byDefault: "Strict"}, {name: "preference-policy", byDefault: "Respect"},
		{name: "consolidation-min-saving", byDefault: "0"}, {name: "consolidation-min-saving-percent", byDefault: "5"},
		{name: featureGates},
	}
}

// matters reports whether a value of the setting makes other plans than its default.
func (f flagOfPlans) matters(value string) bool {
	if f.name == featureGates {
		return strings.Contains(value, "SpotToSpotConsolidation=true")
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
				left = append(left, flag.name+"="+value)
			}
			continue
		}
		with := c
		if err := flag.take(&with, value); err != nil {
			left = append(left, fmt.Sprintf("%s=%q, which is no number", flag.name, value))
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
