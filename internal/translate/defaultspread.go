package translate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
)

// This file applies the cluster's default topology spread constraints (P-03). kube-scheduler's configuration gives
// them to pods without constraints of their own (PodTopologySpreadArgs.defaultConstraints). Such a constraint counts
// the pods that belong together. Its selector joins those of the pod's services and of its ReplicationController,
// ReplicaSet or StatefulSet. A pod that belongs to none of these is not spread.

// Values of the setting other than a list.
const (
	DefaultSpreadNone   = "None"
	DefaultSpreadSystem = "System"
)

// ParseDefaultSpread reads the setting: None (or nothing) for no constraints, System for kube-scheduler's built-in
// ones, or a list in JSON. The error names the field, the value and what is allowed.
func ParseDefaultSpread(text string) ([]corev1.TopologySpreadConstraint, error) {
	switch text {
	case "", DefaultSpreadNone:
		return nil, nil
	case DefaultSpreadSystem:
		return []corev1.TopologySpreadConstraint{
			{TopologyKey: corev1.LabelHostname, MaxSkew: 3, WhenUnsatisfiable: corev1.ScheduleAnyway},
			{TopologyKey: corev1.LabelTopologyZone, MaxSkew: 5, WhenUnsatisfiable: corev1.ScheduleAnyway},
		}, nil
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	var list []corev1.TopologySpreadConstraint
	if err := decoder.Decode(&list); err != nil {
		return nil,
			fmt.Errorf(
				"want None, System or a JSON list such as "+
					"[{\"maxSkew\":1,\"topologyKey\":\"topology.kubernetes.io/zone\",\"whenUnsatisfiable\":\"DoNotSchedule\"}]: %w",
				err)
	}
	if decoder.More() {
		return nil, errors.New("there is more after the JSON list")
	}
	var faults []error
	for i, c := range list {
		faults = append(faults, checkDefault(fmt.Sprintf("[%d]", i), c, list[:i]))
	}
	return list, errors.Join(faults...)
}

// checkDefault refuses what kube-scheduler would refuse or ignore.
func checkDefault(path string, c corev1.TopologySpreadConstraint, before []corev1.TopologySpreadConstraint) error {
	var faults []error
	if c.MaxSkew <= 0 {
		faults = append(faults, fmt.Errorf("%s.maxSkew is %d: want 1 or more", path, c.MaxSkew))
	}
	if problems := validation.IsQualifiedName(c.TopologyKey); len(problems) > 0 {
		faults = append(faults, fmt.Errorf("%s.topologyKey is %q: want the name of a node label", path, c.TopologyKey))
	}
	if c.WhenUnsatisfiable != corev1.DoNotSchedule && c.WhenUnsatisfiable != corev1.ScheduleAnyway {
		faults = append(faults, fmt.Errorf("%s.whenUnsatisfiable is %q: want DoNotSchedule or ScheduleAnyway", path,
			c.WhenUnsatisfiable))
	}
	if c.LabelSelector != nil || len(c.MatchLabelKeys) > 0 {
		faults = append(faults,
			fmt.Errorf(
				"%s has labelSelector or matchLabelKeys: leave them out, each pod is selected by its services and owner",
				path))
	}
	if c.MinDomains != nil && (*c.MinDomains < 1 || c.WhenUnsatisfiable != corev1.DoNotSchedule) {
		faults = append(faults, fmt.Errorf("%s.minDomains is %d: want 1 or more, and only with DoNotSchedule", path,
			*c.MinDomains))
	}
	if slices.ContainsFunc(before, func(b corev1.TopologySpreadConstraint) bool {
		return b.TopologyKey == c.TopologyKey && b.WhenUnsatisfiable == c.WhenUnsatisfiable
	}) {
		faults = append(faults, fmt.Errorf("%s repeats topologyKey %s with %s: give each pair once", path,
			c.TopologyKey, c.WhenUnsatisfiable))
	}
	return errors.Join(faults...)
}

// Workloads is what pods belong to.
type Workloads struct {
	Services map[string]map[string]map[string]string // namespace → name → selector
	Owners   map[string]cluster.Selector             // by OwnerKey
}

// OwnerKey identifies the controller of a pod if it is of a kind whose selector spreads pods; "" otherwise.
func OwnerKey(pod *corev1.Pod) string {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return ""
	}
	switch owner.APIVersion + " " + owner.Kind {
	case "v1 ReplicationController", "apps/v1 ReplicaSet", "apps/v1 StatefulSet":
		return owner.Kind + " " + pod.Namespace + "/" + owner.Name
	}
	return ""
}

// Selector converts a label selector; one that cannot be understood selects nothing.
func Selector(from *metav1.LabelSelector) cluster.Selector {
	converted, err := selector(from)
	if err != nil {
		return cluster.Selector{}
	}
	return converted
}

// AddDefaultSpread adds the cluster's spread constraints to the shape of a pod that has none of its own. The shape
// must not be interned yet.
func AddDefaultSpread(shape *cluster.Shape, pod *corev1.Pod, constraints []corev1.TopologySpreadConstraint,
	w Workloads) {
	if len(constraints) == 0 || len(pod.Spec.TopologySpreadConstraints) > 0 {
		return
	}
	chosen := w.selectorOf(pod)
	if chosen.Labels.Len() == 0 {
		return
	}
	for _, c := range constraints {
		converted, err := spread(pod, c)
		if err != nil {
			continue // cannot happen: it has no selector of its own
		}
		converted.Pods = chosen
		if c.WhenUnsatisfiable == corev1.ScheduleAnyway {
			shape.SoftSpread = append(shape.SoftSpread, converted)
		} else {
			shape.Spread = append(shape.Spread, converted)
		}
	}
}

// selectorOf joins the selectors of the pod's services and its owner.
func (w Workloads) selectorOf(pod *corev1.Pod) cluster.Selector {
	set := requirement.NewSet()
	services := w.Services[pod.Namespace]
	for _, name := range slices.Sorted(maps.Keys(services)) {
		if own := requirement.FromLabels(services[name]); own.Matches(pod.Labels) {
			set = set.And(own)
		}
	}
	if owner := w.Owners[OwnerKey(pod)]; owner.Enabled {
		set = set.And(owner.Labels)
	}
	return cluster.Selector{Enabled: true, Labels: set}
}
