package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/nearest"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// ClaimFacts are the stages of a NodeClaim. Its names in JSON are an API (U-29).
type ClaimFacts struct {
	Pool string `json:"pool,omitempty"`
	Node string `json:"node,omitempty"`
	// Machine is the offering of the machine, and PricePerHour what it costs: nil when nobody knows.
	Machine      Offering `json:"machine,omitzero"`
	PricePerHour *Dollars `json:"pricePerHour"`
	// Estimated says that the price is not that of the account or the region.
	Estimated bool `json:"estimated,omitempty"`
	// Pods are those that are planned onto it and not bound yet, namespace/name.
	Pods []string `json:"pods,omitempty"`
	// Stages are those that the claim has come to, in order. The last one that is not reached is the one that it is
	// held at.
	Stages []Stage `json:"stages"`
}

// Stage is a part of a NodeClaim's life.
type Stage struct {
	Name string `json:"name"`
	// At is when it was reached, in RFC 3339; "" while it is not.
	At   string `json:"at,omitempty"`
	Text string `json:"text,omitempty"`
}

// The stages of a NodeClaim, in order.
const (
	stageCreated     = "created"
	stageLaunched    = "launched"
	stageRegistered  = "registered"
	stageInitialized = "initialized"
	stageChosen      = "chosen to go"
	stageDeleted     = "deleted"
	stageDrained     = "drained"
	stageDetached    = "detached"
	stageEnded       = "ended"
	stageGone        = "gone"
)

// ExplainClaim returns at which stage a NodeClaim is, when it reached each stage, and what holds it there (U-04). The
// error says that no NodeClaim has that name.
func (w *World) ExplainClaim(name string) (Explained, error) {
	e := Explained{APIVersion: APIVersion, Kind: "Explanation", About: About{Kind: "NodeClaim", Name: name}}
	var claim *karpenterv1.NodeClaim
	var names []string
	for _, o := range w.objects {
		found, isClaim := o.Object.(*karpenterv1.NodeClaim)
		if !isClaim {
			continue
		}
		if names = append(names, found.Name); found.Name == name || found.Status.NodeName == name {
			claim = found
		}
	}
	if claim == nil {
		return e, fmt.Errorf("there is no NodeClaim %s%s", name, nearest.Ask(name, names))
	}
	e.About.Name = claim.Name
	var node *cluster.Node
	for _, n := range w.store.Snapshot().Nodes {
		if n.Claim == claim.Name {
			node = n
		}
	}
	e.Claim = w.claimFacts(claim, node)
	if node != nil {
		for _, n := range w.planned().NominationsOf(node.ID()) {
			e.Claim.Pods = append(e.Claim.Pods, n.Pod.String())
		}
	}
	code, text, other := w.holds(claim, node)
	if code == "" {
		e.Explanation = view.Stands(text)
		return e, nil
	}
	e.Explanation = view.Claim(code, text, claim.Name, other, translate.PoolOf(claim))
	if c, _ := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDrained); code == cause.Draining &&
		c.Reason == reasonBlocked {
		e.State = view.Held
	}
	return e, nil
}

// claimFacts returns the stages of a claim, from its conditions.
func (w *World) claimFacts(claim *karpenterv1.NodeClaim, node *cluster.Node) *ClaimFacts {
	facts := &ClaimFacts{Pool: translate.PoolOf(claim), Node: claim.Status.NodeName, Estimated: w.estimated}
	facts.Machine = Offering{Type: claim.Labels[string(catalog.LabelInstanceType)],
		Zone:         claim.Labels[string(catalog.LabelZone)],
		CapacityType: claim.Labels[karpenterv1.CapacityTypeLabelKey]}
	is := func(kind string) bool { return condition.IsTrue(claim.Status.Conditions, kind) }
	if node != nil && node.Price != resources.Unpriced && is(karpenterv1.ConditionTypeLaunched) {
		price := Dollars(node.Price)
		facts.PricePerHour = &price
	}
	reached := func(stage, kind, text string) bool {
		since, _ := condition.Since(claim.Status.Conditions, kind)
		if !is(kind) {
			facts.Stages = append(facts.Stages, Stage{Name: stage})
			return false
		}
		facts.Stages = append(facts.Stages, Stage{Name: stage, At: at(since), Text: text})
		return true
	}
	facts.Stages = append(facts.Stages, Stage{Name: stageCreated, At: at(claim.CreationTimestamp.Time),
		Text: originOf(claim)})
	deleted := claim.DeletionTimestamp
	up := reached(stageLaunched, karpenterv1.ConditionTypeLaunched, facts.machine()) &&
		reached(stageRegistered, karpenterv1.ConditionTypeRegistered, named("node ", facts.Node)) &&
		reached(stageInitialized, karpenterv1.ConditionTypeInitialized, "")
	if !up && deleted == nil {
		return facts
	}
	facts.Stages = slices.DeleteFunc(facts.Stages, func(s Stage) bool { return s.At == "" && s.Name != stageCreated })
	if chosen, _ := condition.Get(claim.Status.Conditions,
		karpenterv1.ConditionTypeDisruptionReason); chosen.Status == metav1.ConditionTrue {
		reached(stageChosen, karpenterv1.ConditionTypeDisruptionReason, reasonOf(chosen))
	}
	if deleted == nil {
		return facts
	}
	facts.Stages = append(facts.Stages, Stage{Name: stageDeleted, At: at(deleted.Time), Text: deadlineOf(claim)})
	if len(foreign(claim)) > 0 && !slices.Contains(claim.Finalizers, karpenterv1.TerminationFinalizer) {
		facts.Stages = append(facts.Stages, Stage{Name: stageGone})
		return facts
	}
	if is(karpenterv1.ConditionTypeRegistered) {
		_ = reached(stageDrained, karpenterv1.ConditionTypeDrained, "") &&
			reached(stageDetached, karpenterv1.ConditionTypeVolumesDetached, "from its volumes") &&
			reached(stageEnded, "", "")
		return facts
	}
	facts.Stages = append(facts.Stages, Stage{Name: stageEnded})
	return facts
}

// reasonOf returns the reason and message of a condition.
func reasonOf(c karpenterv1.Condition) string {
	if c.Message == "" {
		return c.Reason
	}
	return c.Reason + ": " + c.Message
}

// deadlineOf returns until when a deleted claim may drain, as text; "" without a limit.
func deadlineOf(claim *karpenterv1.NodeClaim) string {
	return named("its pods may stay until ", claim.Annotations[karpenterv1.NodeClaimTerminationTimestampAnnotationKey])
}

func named(lead, name string) string {
	if name == "" {
		return ""
	}
	return lead + name
}

// at formats a time; "unknown" if the object has none, as a file may.
func at(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return clock(t)
}

// originOf returns who made a claim, and what for, as text.
func originOf(claim *karpenterv1.NodeClaim) string {
	pool := translate.PoolOf(claim)
	switch asks := claim.Annotations[karpenterv1.LaunchedForAnnotationKey]; {
	case pool == "":
		return "by hand"
	case claim.Annotations[karpenterv1.ReplacesAnnotationKey] != "":
		return "by NodePool " + pool + ", to replace " +
			strings.ReplaceAll(claim.Annotations[karpenterv1.ReplacesAnnotationKey], ",", ", ")
	case asks == plan.AskReplicas:
		return "by NodePool " + pool + ", as one of its replicas"
	case asks == plan.AskFloor:
		return "by NodePool " + pool + ", as one of those that it always keeps"
	case asks != "":
		return "by NodePool " + pool + ", for pods that waited"
	}
	return "by NodePool " + pool
}

// machine returns what was launched, as text.
func (f *ClaimFacts) machine() string {
	text := f.Machine.Type
	if f.Machine.Zone != "" {
		text += " in " + f.Machine.Zone
	}
	if f.Machine.CapacityType != "" {
		text += ", " + f.Machine.CapacityType
	}
	price := "price unknown"
	if f.PricePerHour != nil {
		price = priced(*f.PricePerHour, 1, 0, f.Estimated)
	}
	return strings.TrimPrefix(text+", "+price, ", ")
}

// holds returns what holds a claim at its stage. If nothing does, code is "" and the text describes its state. other
// is the NodeClaim that it waits for, or "".
func (w *World) holds(claim *karpenterv1.NodeClaim, node *cluster.Node) (code cause.Code, text, other string) {
	is := func(kind string) bool { return condition.IsTrue(claim.Status.Conditions, kind) }
	get := func(kind string) karpenterv1.Condition {
		c, _ := condition.Get(claim.Status.Conditions, kind)
		return c
	}
	if claim.DeletionTimestamp != nil {
		code, text = ending(claim, node)
		return code, text, ""
	}
	launched, registered := get(karpenterv1.ConditionTypeLaunched), get(karpenterv1.ConditionTypeRegistered)
	gone := get(karpenterv1.ConditionTypeReady).Reason == string(cause.NodeGone)
	switch {
	case launched.Status == metav1.ConditionFalse:
		return cause.LaunchesFail, "the provider refuses it: " + reasonOf(launched), ""
	case launched.Status != metav1.ConditionTrue && launched.Reason == reasonHeld:
		return cause.HardLimitNodes, launched.Message, ""
	case launched.Status != metav1.ConditionTrue:
		return cause.LaunchPending, "its machine was requested, and the provider has not answered yet", ""
	case registered.Status != metav1.ConditionTrue:
		return cause.NotRegistered, "its machine is launched, and has not joined: " +
			cmp.Or(registered.Message, "nothing more is known"), ""
	case !is(karpenterv1.ConditionTypeInitialized) && !gone:
		return cause.NotInitialized, "it has joined, and is not initialized: " +
			cmp.Or(get(karpenterv1.ConditionTypeInitialized).Message, "a startup taint or a resource is still to "+
				"come or to go"), ""
	case gone, node == nil, node.Name == "":
		return cause.NodeGone, "its node " + claim.Status.NodeName + " is gone, and its machine runs without it", ""
	case is(karpenterv1.ConditionTypeDisruptionReason):
		s := w.store.Snapshot()
		if why := engine.Why(s, engine.Terms{Now: w.now.Unix()}, node); why.Cause == cause.ReplacementOnTheWay {
			return why.Cause, why.Text, why.Claim
		}
	}
	return "", "it is initialized; joinerctl explain node " + cmp.Or(claim.Status.NodeName, claim.Name) +
		" says why it stays", ""
}

// reasonBlocked is the reason of the condition Drained while something blocks the drain.
const reasonBlocked = "Blocked"

// reasonHeld is the reason of the condition Launched of a claim held by its pool's hard limit.
const reasonHeld = "HardLimit"

// ending returns what holds a claim that is being deleted.
func ending(claim *karpenterv1.NodeClaim, node *cluster.Node) (cause.Code, string) {
	get := func(kind string) karpenterv1.Condition {
		c, _ := condition.Get(claim.Status.Conditions, kind)
		return c
	}
	drained, detached := get(karpenterv1.ConditionTypeDrained), get(karpenterv1.ConditionTypeVolumesDetached)
	others := foreign(claim)
	for _, kind := range []string{karpenterv1.ConditionTypeLaunched, karpenterv1.ConditionTypeRegistered,
		karpenterv1.ConditionTypeInitialized} {
		if c := get(kind); c.Status == metav1.ConditionFalse {
			return cause.GivenUp, "it was given up: " + reasonOf(c)
		}
	}
	switch {
	case len(others) > 0 && len(others) == len(claim.Finalizers):
		return cause.ForeignFinalizer, "the finalizer " + strings.Join(others, ", ") + " of another program keeps it"
	case drained.Status == metav1.ConditionFalse && drained.Reason == "TerminationGracePeriodElapsed",
		drained.Status == metav1.ConditionTrue, node == nil || node.Name == "":
	case drained.Message != "":
		return cause.Draining, "it is being drained: " + drained.Message
	default:
		return cause.Draining, "it is being drained"
	}
	if detached.Status == metav1.ConditionFalse {
		return cause.VolumesAttached, "its pods are gone, and its machine waits: " + detached.Message
	}
	return cause.MachineEnds, "its machine is being ended"
}

// foreign returns the finalizers of other programs.
func foreign(claim *karpenterv1.NodeClaim) []string {
	return slices.DeleteFunc(slices.Clone(claim.Finalizers),
		func(f string) bool { return f == karpenterv1.TerminationFinalizer })
}

// now returns the name of the current stage.
func (f *ClaimFacts) now() string {
	present := ""
	for _, s := range f.Stages {
		if s.At == "" {
			return "not " + s.Name
		}
		present = s.Name
	}
	return present
}

func (f *ClaimFacts) write(b *strings.Builder) {
	width := 0
	for _, s := range f.Stages {
		width = max(width, len(s.Name))
	}
	for _, s := range f.Stages {
		line := fmt.Sprintf("  %-*s  %-20s  %s", width, s.Name, cmp.Or(s.At, "-"), s.Text)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	if n := len(f.Pods); n > 0 {
		fmt.Fprintf(b, "  %s planned onto it: %s\n", count(n, "pod is", "pods are"), firstOf(f.Pods, n, podsShown))
	}
}
