package whatif

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// The programs that may control a cluster.
const (
	ProgramJoiner    = "Joiner"
	ProgramKarpenter = "Karpenter"
)

// Labels of pods that identify their program.
const (
	nameLabel    = "app.kubernetes.io/name"
	versionLabel = "app.kubernetes.io/version"
	// programLabel marks our pods that have Karpenter's names, by compat.karpenter of the chart (K-23).
	programLabel = "joiner.sh/program"
)

// Surroundings are the objects that show which program controls a cluster, and whether disruption is paused.
type Surroundings struct {
	// Live says that a cluster was asked. Only then does a missing lease mean something.
	Live bool
	// LeaseName is the name of controllers' leases, in any namespace; Leases are the existing ones.
	LeaseName string
	Leases    []coordinationv1.Lease
	// LeasesUnread says that leases could not be read.
	LeasesUnread bool
	// Switch is the ConfigMap that pauses disruption, nil if there is none. SwitchUnread says that it could not be
	// read.
	Switch       *corev1.ConfigMap
	SwitchUnread bool
	// Takeover is the ConfigMap of the first start, which also pauses for a while (K-27); nil if there is none.
	Takeover *corev1.ConfigMap
}

// Controller is who decides in a cluster.
type Controller struct {
	// Program is Joiner or Karpenter, "" when that is not known; Version is what its pod is labelled with.
	Program string `json:"program,omitempty"`
	Version string `json:"version,omitempty"`
	// Leader is the pod that leads, "" when none does; Lease is what it holds, namespace/name.
	Leader string `json:"leader,omitempty"`
	Lease  string `json:"lease,omitempty"`
	// Since is when it began to lead, or since when nobody leads.
	Since *time.Time `json:"since,omitempty"`
	// Last is who led before, where nobody does.
	Last string `json:"last,omitempty"`
	// Standby counts the other pods of the program that are ready.
	Standby int `json:"standby"`
}

// Pause is that nothing is disrupted which budgets bound.
type Pause struct {
	Reason string `json:"reason,omitempty"`
	// Until is when it ends by itself; nil when it does not.
	Until *time.Time `json:"until,omitempty"`
}

// grace shows the grace of the first start as a pause, unless there is another pause.
func (st *stater) grace(found *corev1.ConfigMap) {
	if found == nil {
		return
	}
	g := translate.GraceOf(found.Data, st.w.now)
	about := About{Kind: "ConfigMap", Namespace: found.Namespace, Name: found.Name}
	for _, fault := range g.Faults {
		st.attend(Attention{Code: codePauseUnread, Text: fault, Object: about})
	}
	if !g.On || st.out.Pause != nil {
		return
	}
	st.out.Pause = &Pause{Reason: "after the first start"}
	if !g.Until.IsZero() {
		st.out.Pause.Until = &g.Until
	}
}

// controller determines who leads, and whether disruption is paused.
func (st *stater) controller() {
	in := st.in.Surroundings
	st.out.PauseKnown = in.Switch != nil || in.Live && !in.SwitchUnread
	if in.Switch != nil {
		pause := translate.PauseOf(in.Switch.Data, st.w.now)
		if pause.On {
			st.out.Pause = &Pause{Reason: pause.Reason}
			if !pause.Until.IsZero() {
				st.out.Pause.Until = &pause.Until
			}
		}
		for _, fault := range pause.Faults {
			st.attend(Attention{Code: codePauseUnread, Text: fault,
				Object: About{Kind: "ConfigMap", Namespace: in.Switch.Namespace, Name: in.Switch.Name}})
		}
	}
	st.grace(in.Takeover)
	if in.LeasesUnread || !in.Live && len(in.Leases) == 0 {
		return
	}
	leading, silent := in.Controllers(st.w.podNamed, st.w.joinersPools(), st.w.now)
	if len(leading) > 1 {
		st.attend(Attention{Code: string(cause.OtherController), Text: several(leading),
			Object: leaseOf(leading[1].Lease)})
	}
	switch {
	case len(leading) > 0:
		st.out.Controller = &leading[0]
		st.out.Controller.Standby = st.standby(leading[0])
	case len(silent) > 0:
		c := latest(silent)
		st.out.Controller = &c
		st.attend(Attention{Code: string(cause.ControllerSilent), Object: leaseOf(c.Lease),
			Text: "nobody leads: no node is launched or removed",
			Next: "kubectl get pods -A -l '" + nameLabel + " in (joiner,karpenter)'"})
	default:
		st.out.Controller = &Controller{}
		st.attend(Attention{Code: string(cause.ControllerSilent), Text: NoLease(in.LeaseName),
			Next: "kubectl get pods -A -l '" + nameLabel + " in (joiner,karpenter)'"})
	}
}

// NoLease returns the text for a missing lease of a controller.
func NoLease(name string) string {
	return "there is no lease " + name + ": no controller runs, or it runs with --disable-leader-election"
}

// several returns the text that more than one controller leads.
func several(leading []Controller) string {
	var names []string
	for _, c := range leading {
		names = append(names, c.Leader+" ("+c.Lease+")")
	}
	return "more than one controller leads: " + strings.Join(names, ", ")
}

func (w *World) podNamed(namespace, name string) *corev1.Pod { return w.known[namespace+"/"+name] }

// latest returns the controller that led last. That one is reported, not one forgotten years ago.
func latest(silent []Controller) Controller {
	return slices.MaxFunc(silent, func(a, b Controller) int {
		switch {
		case a.Since == nil && b.Since == nil:
			return 0
		case a.Since == nil:
			return -1
		case b.Since == nil:
			return 1
		}
		return a.Since.Compare(*b.Since)
	})
}

func leaseOf(name string) About {
	namespace, name, _ := strings.Cut(name, "/")
	return About{Kind: "Lease", Namespace: namespace, Name: name}
}

// Controllers returns who holds the leases: those that lead, and those that did. pod finds a pod, nil if it cannot.
// joiners says that NodePools have fields that only Joiner writes.
func (in Surroundings) Controllers(pod func(namespace, name string) *corev1.Pod, joiners bool, now time.Time) (leading,
	silent []Controller) {
	for _, lease := range in.Leases {
		c := holder(lease, now)
		name, labels := c.Leader+c.Last, map[string]string(nil)
		if found := pod(lease.Namespace, name); found != nil {
			labels = found.Labels
			name, c.Version = labels[nameLabel], labels[versionLabel]
			if program := labels[programLabel]; program != "" {
				name = program
			}
		}
		switch {
		case strings.HasPrefix(name, "karpenter"):
			c.Program = ProgramKarpenter
		case strings.HasPrefix(name, "joiner"), joiners:
			c.Program = ProgramJoiner
		}
		if c.Leader != "" {
			leading = append(leading, c)
		} else {
			silent = append(silent, c)
		}
	}
	return leading, silent
}

// LeaderOf returns the pod that leads by a lease; "" if none does.
func LeaderOf(lease coordinationv1.Lease, now time.Time) string { return holder(lease, now).Leader }

// holder returns who holds a lease. Nobody holds one that was not renewed within its duration.
func holder(lease coordinationv1.Lease, now time.Time) Controller {
	c := Controller{Lease: lease.Namespace + "/" + lease.Name}
	spec := lease.Spec
	if spec.HolderIdentity != nil {
		// The identity is the host, which is a pod, and a suffix that is new at each start.
		c.Leader = *spec.HolderIdentity
		if at := strings.LastIndex(c.Leader, "_"); at > 0 {
			c.Leader = c.Leader[:at]
		}
	}
	if spec.AcquireTime != nil {
		c.Since = &spec.AcquireTime.Time
	}
	if renewed := spec.RenewTime; renewed != nil && spec.LeaseDurationSeconds != nil {
		ends := renewed.Add(time.Duration(*spec.LeaseDurationSeconds) * time.Second)
		if now.After(ends) || c.Leader == "" {
			c.Last, c.Leader, c.Since = c.Leader, "", &renewed.Time
		}
	}
	return c
}

// joinersPools reports whether NodePools have fields that only Joiner writes.
func (w *World) joinersPools() bool {
	return slices.ContainsFunc(w.objects, func(o object) bool {
		pool, is := o.Object.(*karpenterv1.NodePool)
		return is && pool.Status.Disruption != nil
	})
}

// standby returns the number of other ready pods of the leader's program.
func (st *stater) standby(c Controller) int {
	namespace, _, _ := strings.Cut(c.Lease, "/")
	leader := st.w.known[namespace+"/"+c.Leader]
	if leader == nil || leader.Labels[nameLabel] == "" {
		return 0
	}
	n := 0
	for _, pod := range st.w.known {
		if pod.Namespace == namespace && pod.Name != leader.Name &&
			pod.Labels[nameLabel] == leader.Labels[nameLabel] &&
			slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
			n++
		}
	}
	return n
}

// conditions checks the conditions of NodePools.
func (st *stater) conditions() {
	next := func(pool string) string { return "joinerctl explain nodepool " + pool }
	for _, name := range slices.Sorted(maps.Keys(st.pools)) {
		pool := st.w.pool(name)
		if pool == nil {
			st.attend(Attention{Code: string(cause.PoolGone), Object: About{Kind: "NodePool", Name: name}, Pool: name,
				Text: "it is gone, and has NodeClaims: " + fmt.Sprint(st.pools[name].Nodes),
				Next: "joinerctl explain node " + st.nodeOf(name)})
			continue
		}
		about := About{Kind: "NodePool", Name: name}
		if ready := readyOf(pool); ready.Status != metav1.ConditionTrue {
			st.attend(Attention{Code: string(cause.PoolNotReady), Object: about, Pool: name, Next: next(name),
				Text: strings.Trim(ready.Reason+": "+ready.Message, ": ")})
		}
		for _, c := range pool.Status.Conditions {
			code := map[string]cause.Code{karpenterv1.ConditionTypeNodeRegistrationHealthy: cause.NodesNeverJoin,
				karpenterv1.ConditionTypeReplicasWithinLimits: cause.ReplicasBelow}[c.Type]
			if code != "" && c.Status == metav1.ConditionFalse {
				st.attend(Attention{Code: string(code), Object: about, Pool: name, Next: next(name),
					Text: strings.Trim(c.Reason+": "+c.Message, ": ")})
			}
		}
	}
}

// nodeOf returns the first node of a pool.
func (st *stater) nodeOf(pool string) string {
	for _, node := range st.s.Nodes {
		if node.Pool == pool {
			return node.ID()
		}
	}
	return ""
}

// readyOf returns the condition Ready of a pool, Unknown if no controller has checked it.
func readyOf(pool *karpenterv1.NodePool) karpenterv1.Condition {
	for _, c := range pool.Status.Conditions {
		if c.Type == karpenterv1.ConditionTypeReady {
			return c
		}
	}
	return karpenterv1.Condition{Status: metav1.ConditionUnknown, Message: "no controller has looked at it"}
}

// draining finds nodes whose removal takes longer than allowed.
func (st *stater) draining() {
	waits := map[string]string{}
	for _, node := range st.s.Nodes {
		for _, pod := range node.Pods {
			if !pod.Fixed && waits[node.Claim] == "" {
				waits[node.Claim] = ", waits for pod " + pod.Ref()
			}
		}
	}
	for _, o := range st.w.objects {
		claim, is := o.Object.(*karpenterv1.NodeClaim)
		if !is || claim.DeletionTimestamp == nil || st.w.now.Sub(claim.DeletionTimestamp.Time) < st.in.Draining {
			continue
		}
		name := claim.Status.NodeName
		if name == "" {
			name = claim.Name
		}
		st.attend(Attention{Code: string(cause.Draining), Object: About{Kind: "Node", Name: name},
			Pool: claim.Labels[karpenterv1.NodePoolLabelKey],
			Text: "node " + name + " is being removed since " + claim.DeletionTimestamp.UTC().Format(time.RFC3339) +
				waits[claim.Name],
			Next: "joinerctl explain node " + name})
	}
}
