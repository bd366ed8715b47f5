package whatif

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/foretell"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// notForetold lists what may happen differently in this cluster, because it is not known here.
func (w *World) notForetold(c *Comparison, record foretell.Record) []string {
	var images, expiring, windows, classes []string
	unbound := 0
	for _, o := range w.told {
		switch o := o.(type) {
		case *awsv1.EC2NodeClass:
			classes = append(classes, o.Name)
			if c.changesSelectorsOf(o.Name) {
				images = append(images, o.Name)
			}
		case *karpenterv1.NodePool:
			if o.Spec.Template.Spec.ExpireAfter.Duration != nil {
				expiring = append(expiring, o.Name)
			}
			if !translate.NextBudgetChange(o, w.now).IsZero() {
				windows = append(windows, o.Name)
			}
		case *corev1.PersistentVolumeClaim:
			if o.Spec.VolumeName == "" {
				unbound++
			}
		}
	}
	lines := []string{}
	if c.Until == UntilPlan {
		lines = append(lines, "what goes, drifts or moves after one plan: --until quiet foretells it")
	}
	add := func(format string, names []string) {
		if len(names) > 0 {
			slices.Sort(names)
			lines = append(lines, fmt.Sprintf(format, listed(names)))
		}
	}
	if len(images) > 0 {
		add(
			"which nodes drift because the selectors of EC2NodeClass %s come to something else: the cloud resolves them",
			images)
	} else {
		add("drift by what the selectors of EC2NodeClass %s come to: the cloud resolves them", classes)
	}
	add("expiry: expireAfter of NodePool %s", expiring)
	add("budgets that open or close later: those of NodePool %s count as they are now", windows)
	if unbound > 0 {
		lines = append(lines, "where volumes are made: "+
			count(unbound, "PersistentVolumeClaim that is not bound counts",
				"PersistentVolumeClaims that are not bound count")+" as usable wherever they are now")
	}
	for _, kind := range slices.Sorted(maps.Keys(w.Ignored)) {
		if strings.Contains(kind, "Autoscaler") || kind == "ScaledObject" {
			lines = append(lines, "what a "+kind+" would scale")
		}
	}
	if record.Unlaunched != "" {
		lines = append(lines, "a launch that the catalogue had nothing for: "+record.Unlaunched)
	}
	return lines
}

// changesSelectorsOf reports whether the change affects the selectors of an EC2NodeClass.
func (c *Comparison) changesSelectorsOf(class string) bool {
	return slices.ContainsFunc(c.Changes, func(change ObjectChange) bool {
		return change.Object.Kind == "EC2NodeClass" && change.Object.Name == class &&
			strings.Contains(strings.ToLower(change.Path), "selector")
	})
}
