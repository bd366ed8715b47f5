package foretell

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/spec"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/world"
)

// driftNodeClass is the reason of drift found by the hash of a node class.
const driftNodeClass = "NodeClassDrift"

// judge updates what controllers would write onto objects: which claims have drifted, and how many disruptions
// PodDisruptionBudgets allow.
func (s *Stage) judge() {
	for _, name := range sortedNames(s.claims) {
		s.judgeDrift(s.claims[name])
	}
	for _, key := range sortedKeys(s.budgets) {
		s.count(s.budgets[key])
	}
}

// judgeDrift sets the condition Drifted with the controllers' own functions. Drift that a cloud reported before stays,
// because no cloud is asked here.
func (s *Stage) judgeDrift(claim *karpenterv1.NodeClaim) {
	pool := s.pools[translate.PoolOf(claim)]
	if pool == nil || claim.DeletionTimestamp != nil || !s.in.Fleet.OwnsClaim(claim) {
		return
	}
	reason, text := s.driftOf(pool, claim)
	known, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDrifted)
	if known.Reason == reason || reason == "" && !slices.Contains(foretold(), known.Reason) {
		return
	}
	fresh := claim.DeepCopy()
	if reason == "" {
		condition.Clear(&fresh.Status.Conditions, karpenterv1.ConditionTypeDrifted)
	} else {
		condition.Set(&fresh.Status.Conditions, fresh.Generation,
			condition.True(karpenterv1.ConditionTypeDrifted, reason,
				text),
			s.clock)
	}
	s.put(fresh)
}

// foretold returns the reasons of drift that are judged here.
func foretold() []string {
	return []string{translate.DriftNodePool, translate.DriftRequirements, driftNodeClass,
		provider.DriftInstanceTypeNotFound}
}

func (s *Stage) driftOf(pool *karpenterv1.NodePool, claim *karpenterv1.NodeClaim) (reason, text string) {
	if reason, text = translate.Drift(pool, claim, s.nodes[claim.Status.NodeName]); reason != "" {
		return reason, text
	}
	if class := s.classOf(claim); class != nil {
		hash, err := spec.Hash(class)
		if err == nil && spec.Drifted(claim.Annotations, map[string]string{spec.HashKey: hash,
			spec.HashVersionKey: spec.HashVersion}) {
			return driftNodeClass, spec.DriftText(class.Name)
		}
	}
	kind := claim.Labels[string(catalog.LabelInstanceType)]
	offered := s.offers(claim).Types
	if kind == "" || len(offered) == 0 ||
		slices.ContainsFunc(offered, func(t catalog.Type) bool { return t.Name == kind }) {
		return "", ""
	}
	drift := provider.TypeNotFound(kind)
	return drift.Reason, drift.Message
}

// offers returns what the node class of a claim offers.
func (s *Stage) offers(claim *karpenterv1.NodeClaim) catalog.Catalog {
	if ref := claim.Spec.NodeClassRef; ref != nil {
		return s.in.Offers[world.ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name}]
	}
	return catalog.Catalog{}
}

// classOf returns the EC2NodeClass of a claim, nil when it has none.
func (s *Stage) classOf(claim *karpenterv1.NodeClaim) *awsv1.EC2NodeClass {
	ref := claim.Spec.NodeClassRef
	if ref == nil || ref.Kind != "EC2NodeClass" {
		return nil
	}
	return s.classes[ref.Name]
}

// count updates the status of a PodDisruptionBudget, as Kubernetes' controller does. Percentages are of the pods that
// exist: the scale of their workload is not known here.
func (s *Stage) count(old *policyv1.PodDisruptionBudget) {
	selector, err := metav1.LabelSelectorAsSelector(old.Spec.Selector)
	if err != nil {
		return
	}
	expected, healthy := 0, 0
	for key, pod := range s.pods {
		if key.Namespace != old.Namespace || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if expected++; isHealthy(pod) {
			healthy++
		}
	}
	desired := 0
	switch {
	case old.Spec.MinAvailable != nil:
		desired = shareOf(old.Spec.MinAvailable, expected)
	case old.Spec.MaxUnavailable != nil:
		desired = max(0, expected-shareOf(old.Spec.MaxUnavailable, expected))
	}
	fresh := old.DeepCopy()
	fresh.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: old.Generation,
		ExpectedPods:   int32(expected),
		CurrentHealthy: int32(healthy), DesiredHealthy: int32(desired),
		DisruptionsAllowed: int32(max(0, healthy-desired))}
	if !equality.Semantic.DeepEqual(old.Status, fresh.Status) {
		s.put(fresh)
	}
}

// isHealthy reports whether a pod counts as healthy for its budget. A running pod without a Ready condition does, as
// in a file.
func isHealthy(pod *corev1.Pod) bool {
	if pod.Spec.NodeName == "" {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return true
}

// shareOf returns the number, or the percentage of all, rounded up.
func shareOf(value *intstr.IntOrString, all int) int {
	n, err := intstr.GetScaledValueFromIntOrPercent(value, all, true)
	if err != nil {
		return all // whoever wrote it wanted protection
	}
	return n
}

// admit changes a daemon's pod to what an API server would store.
func (s *Stage) admit(pod *corev1.Pod) {
	var given translate.Admission
	for _, o := range s.others {
		switch o := o.(type) {
		case *corev1.LimitRange:
			if o.Namespace == pod.Namespace {
				given.Limits = append(given.Limits, o)
			}
		case *nodev1.RuntimeClass:
			if pod.Spec.RuntimeClassName != nil && o.Name == *pod.Spec.RuntimeClassName {
				given.Class = o
			}
		}
	}
	given.Admit(&pod.Spec)
}
