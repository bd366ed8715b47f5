package takeover

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// BackChecks returns the table of K-28: what to know before Karpenter gets a cluster back.
func BackChecks() []Row {
	return []Row{
		{"refused", "what Karpenter's definitions refuse and Karpenter cannot read: units, budgets, policies", Danger,
			refused},
		{"hard-limits", "`hardLimits`, which Karpenter does not have: its limits are soft", Danger, hardLimits},
		{"time-zones", "budgets whose schedule goes by a `timeZone`, which Karpenter does not have: it reads UTC",
			Danger, timeZones},
		{"dormant", "NodeOverlays, CapacityBuffers and static NodePools whose feature gate is off in Karpenter",
			Danger, dormantThere},
		{"pauses", "pauses of a NodePool or of the whole cluster, which Karpenter does not know", Warning, pauses},
		{"keeps", "floors, headroom and shares of spot of NodePools, which Karpenter does not know", Warning, keeps},
		{"in-flight", "drains and moves under way", Wait, inFlightBack},
		{"marks", "annotations of Joiner's that mean nothing to Karpenter", Warning, marks},
	}
}

// Back runs the checks of K-28. A finding with a Patch is resolved by that patch.
func Back(in Input) ([]Finding, error) {
	return through(BackChecks(), in)
}

// What Karpenter 1.15 accepts. A test in the module bench compares these with its definitions.
var (
	theirDuration = regexp.MustCompile(`^(([0-9]+(s|m|h))+|Never)$`)
	theirBudget   = regexp.MustCompile(`^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$`)
)

// refused finds NodePools and NodeClaims that Karpenter's definitions refuse. A claim gets no patch: the definition of
// NodeClaims forbids every change of their spec.
func refused(p *picture) (found []Finding) {
	const cannot = "; Karpenter cannot read the object then, and so lists none of its kind"
	for _, kind := range []string{kindPool, kindClaim} {
		for _, o := range p.others[kind] {
			fixed, faults := ForKarpenter(o.Object)
			if len(faults) == 0 {
				continue
			}
			f := Finding{Severity: Danger, Kind: kind, Name: o.GetName(),
				Consequence: "Karpenter's definitions refuse " + strings.Join(faults, "; ") + cannot,
				Remedy: "its spec cannot be changed: delete it while Joiner runs, which drains its node and launches " +
					"another one where one is needed, in units that Karpenter can read"}
			if kind == kindPool {
				f.Remedy = "write it as Karpenter does, which means the same: the patch does it"
				f.Patch = p.patch(o.Object, fixed)
			}
			found = append(found, f)
		}
	}
	return found
}

// BackNotes returns what to do once Joiner is stopped, so that it finds the cluster as at its first start if it comes
// back later (K-27). That is no finding: before Joiner is stopped, nothing can be done about it.
func (in Input) BackNotes() (notes []string) {
	for _, d := range in.Documents {
		o := unstructured.Unstructured{Object: d.Content}
		if o.GetKind() == "ConfigMap" && o.GetName() == translate.TakeoverName {
			notes = append(notes, fmt.Sprintf("once Joiner is stopped, run: kubectl delete configmap %s --namespace %s; "+
				"otherwise a later start of Joiner counts as a restart, and removes nodes at once", o.GetName(),
				o.GetNamespace()))
		}
	}
	return notes
}

// patch returns the merge patch from one state of an object to another.
func (p *picture) patch(from, to map[string]any) string {
	before, err := json.Marshal(from)
	if err != nil {
		p.err = err
		return ""
	}
	after, err := json.Marshal(to)
	if err != nil {
		p.err = err
		return ""
	}
	patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(before, after, before)
	if err != nil {
		p.err = err
	}
	return string(patch)
}

// ForKarpenter returns a NodePool or a NodeClaim in a form that Karpenter can read, with the same meaning. faults say
// what was changed. hardLimits stay: removing them would change the meaning.
func ForKarpenter(object map[string]any) (fixed map[string]any, faults []string) {
	w := &rewriting{}
	fixed = runtime.DeepCopyJSON(object)
	for _, at := range [][]string{{"spec"}, {"spec", "template", "spec"}} {
		spec := objectAt(fixed, at...)
		for _, field := range []string{"expireAfter", "terminationGracePeriod"} {
			w.duration(theirDuration, plainly, spec, field, strings.Join(at, "."))
		}
	}
	disruption := objectAt(fixed, "spec", "disruption")
	w.duration(theirDuration, plainly, disruption, "consolidateAfter", "spec.disruption")
	policy := disruption["consolidationPolicy"]
	if policy == string(karpenterv1.ConsolidationPolicyWhenUnderutilized) {
		disruption["consolidationPolicy"] = string(karpenterv1.ConsolidationPolicyWhenEmptyOrUnderutilized)
		w.fault("spec.disruption.consolidationPolicy %q: %s is the same", policy, disruption["consolidationPolicy"])
	}
	if list, is := disruption["budgets"].([]any); is {
		kept := []any{}
		for i, entry := range list {
			budget, _ := entry.(map[string]any)
			if w.budget(budget, fmt.Sprintf("spec.disruption.budgets[%d]", i)) {
				kept = append(kept, entry)
			}
		}
		disruption["budgets"] = kept
	}
	return fixed, w.faults
}

// objectAt returns an object inside another one; nil, which is like an empty one, if there is none.
func objectAt(object map[string]any, at ...string) map[string]any {
	inner, _, _ := unstructured.NestedFieldNoCopy(object, at...)
	of, _ := inner.(map[string]any)
	return of
}

// rewriting notes what was changed.
type rewriting struct{ faults []string }

func (w *rewriting) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

func plainly(d time.Duration) string { return karpenterv1.Duration{Duration: d}.String() }

func inMinutes(d time.Duration) string { return fmt.Sprintf("%dm", d/time.Minute) }

// duration rewrites a duration that Karpenter would refuse.
func (w *rewriting) duration(fits *regexp.Regexp, write func(time.Duration) string, of map[string]any,
	field, path string) {
	text, is := of[field].(string)
	if !is || fits.MatchString(text) {
		return
	}
	var read karpenterv1.Duration
	if err := json.Unmarshal(fmt.Appendf(nil, "%q", text), &read); err != nil {
		w.fault("%s.%s %q, which nobody can read", path, field, text)
		return
	}
	of[field] = write(read.Duration)
	w.fault("%s.%s %q: %s is the same", path, field, text, of[field])
}

// budget reports whether a budget stays: one for Expired alone has no effect.
func (w *rewriting) budget(budget map[string]any, path string) bool {
	switch nodes := budget["nodes"].(type) {
	case nil, string:
	default:
		budget["nodes"] = fmt.Sprint(nodes)
		w.fault("%s.nodes %v, a number: %q is the same", path, nodes, budget["nodes"])
	}
	w.duration(theirBudget, inMinutes, budget, "duration", path)
	reasons, has := budget["reasons"].([]any)
	if !has || len(reasons) == 0 {
		return true
	}
	left := slices.DeleteFunc(slices.Clone(reasons),
		func(r any) bool { return r == string(karpenterv1.DisruptionReasonExpired) })
	slices.SortStableFunc(left, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	left = slices.Compact(left)
	switch len(left) {
	case len(reasons):
	case 0:
		w.fault("%s, which is for Expired alone: expiration is bound by no budget", path)
		return false
	default:
		budget["reasons"] = left
		w.fault("%s.reasons %v: %v bind as much", path, reasons, left)
	}
	return true
}

// hardLimits finds pools whose hard limit would become a soft one.
func hardLimits(p *picture) (found []Finding) {
	for _, o := range p.others[kindPool] {
		limits, has, _ := unstructured.NestedMap(o.Object, "spec", "hardLimits")
		if !has || len(limits) == 0 {
			continue
		}
		hard, err := resource.ParseQuantity(fmt.Sprint(limits["nodes"]))
		if err != nil {
			continue // the definition allows only whole numbers of nodes
		}
		fixed := runtime.DeepCopyJSON(o.Object)
		unstructured.RemoveNestedField(fixed, "spec", "hardLimits")
		soft, set, _ := unstructured.NestedFieldNoCopy(fixed, "spec", "limits", "nodes")
		if within, err := resource.ParseQuantity(fmt.Sprint(soft)); !set || err != nil || within.Cmp(hard) > 0 {
			if err := unstructured.SetNestedField(fixed, hard.String(), "spec", "limits", "nodes"); err != nil {
				p.err = err
				return found
			}
		}
		nodes := 0
		for _, claim := range p.claims {
			if translate.PoolOf(claim) == o.GetName() {
				nodes++
			}
		}
		found = append(found, Finding{Severity: Danger, Kind: kindPool, Name: o.GetName(),
			Consequence: fmt.Sprintf("spec.hardLimits.nodes is %s, which Karpenter's definition drops: "+
				"without spec.limits.nodes nothing bounds "+
				"the pool, which has %s; and that limit is soft in Karpenter: a batch of pods, or a replacement, goes above it",
				hard.String(), count(nodes, "node", "nodes")),
			Remedy: "write the limit to spec.limits.nodes, as the patch does, and leave room below what must not be passed",
			Patch:  p.patch(o.Object, fixed)})
	}
	return found
}

// timeZones finds budgets that would be active at other hours (K-56).
func timeZones(p *picture) (found []Finding) {
	for _, pool := range p.pools {
		var zones []string
		for i, budget := range pool.Spec.Disruption.Budgets {
			if budget.TimeZone != nil {
				zones = append(zones, fmt.Sprintf("spec.disruption.budgets[%d].timeZone is %s", i, *budget.TimeZone))
			}
		}
		if len(zones) > 0 {
			found = append(found, Finding{Severity: Danger, Kind: kindPool, Name: pool.Name,
				Consequence: strings.Join(zones, ", ") +
					", which Karpenter's definition drops: the same hours count in UTC there",
				Remedy: "write the schedule in UTC, once for winter and once for summer where the zone has both, and take timeZone away"})
		}
	}
	return found
}

// dormantThere finds objects on which Karpenter would not act.
func dormantThere(p *picture) (found []Finding) {
	theirs := p.theirGates()
	look := func(gate, kind, namespace, name, stops string) {
		if !theirs[gate] {
			found = append(found, Finding{Severity: Danger, Kind: kind, Namespace: namespace, Name: name,
				Consequence: fmt.Sprintf("the gate %s is off in Karpenter: %s", gate, stops),
				Remedy:      fmt.Sprintf("start Karpenter with %s=true in FEATURE_GATES", gate)})
		}
	}
	for _, o := range p.overlays {
		look(gateOverlay, kindOverlay, "", o.Name, "it has no effect there, and prices and capacities are others")
	}
	for _, pool := range p.pools {
		if pool.Spec.Replicas != nil {
			look(gateStatic, kindPool, "", pool.Name, fmt.Sprintf("nobody keeps its %d replicas", *pool.Spec.Replicas))
		}
	}
	for _, o := range p.others[gateBuffer] {
		look(gateBuffer, gateBuffer, o.GetNamespace(), o.GetName(),
			"no room is kept for it there, and nodes that only have such room go as empty ones")
	}
	return found
}

// keeps finds what Joiner keeps and Karpenter would not.
func keeps(p *picture) (found []Finding) {
	for _, pool := range p.pools {
		for _, own := range []struct{ key, means, then, remedy string }{
			{karpenterv1.MinNodesAnnotationKey, "how many nodes it always keeps", "such nodes go as empty ones",
				"set consolidateAfter to Never, or keep pods on the nodes"},
			{karpenterv1.HeadroomAnnotationKey, "how much room it keeps free", "such nodes go as empty ones",
				"write a CapacityBuffer, with its feature gate on"},
			{karpenterv1.SpotRatioAnnotationKey, "how much of it may be spot",
				"any number of its nodes may become spot",
				"let one NodePool launch spot, with limits, and another on demand"},
		} {
			if value, has := pool.Annotations[own.key]; has {
				found = append(found, Finding{Severity: Warning, Kind: kindPool, Name: pool.Name,
					Consequence: fmt.Sprintf("%s=%s says %s, which Karpenter does not know: %s", own.key, value,
						own.means, own.then),
					Remedy: own.remedy})
			}
		}
	}
	return found
}

// pauses finds what Joiner holds back and Karpenter would not.
func pauses(p *picture) (found []Finding) {
	for _, pool := range p.pools {
		if value, paused := pool.Annotations[karpenterv1.PausedAnnotationKey]; paused {
			found = append(found, Finding{Severity: Warning, Kind: kindPool, Name: pool.Name,
				Consequence: fmt.Sprintf("%s=%s pauses it, which Karpenter does not know: it launches and disrupts again",
					karpenterv1.PausedAnnotationKey, value),
				Remedy: "for Disrupt set spec.disruption.budgets to [{nodes: \"0\"}]; for Launch set a limit, " +
					"such as cpu: 0, in spec.limits"})
		}
	}
	for _, o := range p.others["ConfigMap"] {
		data, _, _ := unstructured.NestedStringMap(o.Object, "data")
		if pause := translate.PauseOf(data, p.Now); o.GetName() == translate.SwitchName && pause.On {
			found = append(found, Finding{Severity: Warning, Kind: "ConfigMap", Namespace: o.GetNamespace(),
				Name:        o.GetName(),
				Consequence: pause.By(o.GetNamespace()+"/"+o.GetName()) + "; Karpenter does not read it, and disrupts",
				Remedy:      "set spec.disruption.budgets to [{nodes: \"0\"}] in each NodePool that is to stay as it is"})
		}
	}
	return found
}

// inFlightBack finds what Joiner has begun and not finished.
func inFlightBack(p *picture) (found []Finding) {
	add := func(name, consequence, remedy string) {
		found = append(found, Finding{Severity: Wait, Kind: kindClaim, Name: name, Consequence: consequence,
			Remedy: remedy})
	}
	for _, claim := range p.claims {
		switch replaces := translate.Replaces(claim); {
		case claim.DeletionTimestamp != nil:
			add(claim.Name, "its node drains: Karpenter goes on with it",
				"wait until it is gone, if the drain is to end as it began")
		case condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason):
			add(claim.Name, "Joiner has chosen it to go: Karpenter opens it again, and begins anew",
				"joinerctl pause, before Joiner is stopped, takes such choices back")
		case len(replaces) > 0 && !condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeInitialized):
			add(claim.Name, "it is launched in the place of "+some(replaces)+
				", which Karpenter does not know: both stay until it consolidates",
				"wait until it has taken their place")
		}
	}
	return found
}

// marks finds our annotations on NodePools. Those on NodeClaims go with the NodeClaims.
func marks(p *picture) (found []Finding) {
	for _, pool := range p.pools {
		for _, key := range []string{karpenterv1.AboveLimitAnnotationKey, karpenterv1.DisruptionBackoffAnnotationKey} {
			if _, has := pool.Annotations[key]; has {
				found = append(found, Finding{Severity: Info, Kind: kindPool, Name: pool.Name,
					Consequence: "it has the annotation " + key + ", which means nothing to Karpenter",
					Remedy:      "it may stay; the patch takes it away",
					Patch:       fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`, key)})
			}
		}
		if pool.Annotations[karpenterv1.GracefulExpirationAnnotationKey] == "true" {
			found = append(found, Finding{Severity: Warning, Kind: kindPool, Name: pool.Name,
				Consequence: "its expired nodes are replaced within the budgets (" +
					karpenterv1.GracefulExpirationAnnotationKey +
					"), which Karpenter does not know: it removes them at once",
				Remedy: "raise spec.template.spec.expireAfter, or let nodes drift instead"})
		}
	}
	return found
}
