package churn

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/machinetime"
)

// Bounds, in machine time.
const (
	mostWait   = 60 * time.Second // how long a feasible pod may wait
	asksAfter  = 4 * time.Second  // how long a pod pends before it is checked for feasibility
	mostStill  = 60 * time.Second // how long a drain may stall while a pod could be evicted, or when none is left
	restAfter  = 10 * time.Second // without a claim that comes, goes or is chosen, until the cluster rests
	mostUnrest = 3 * time.Minute  // from the last step until the cluster rests
	idleAfter  = 20 * time.Second // how long a node has no pods before its launch counts as useless
	mostInVain = 3                // useless nodes for one pod
	mostEnd    = 90 * time.Second // from the removal of the workloads until nothing is left
)

// judge checks what is seen against the rules.
type judge struct {
	view  *view
	clock *machinetime.Clock
	could *feasibility
	down  func() bool // whether joiner is down: then nothing is expected of it

	moved  map[string]bool // neighbours that have moved in
	waits  map[types.UID]*wait
	drains map[string]*drain
	last   time.Duration
	worst  wait // the longest wait of a feasible pod
	asked  int  // feasible pods that waited
	faults []string
	seen   map[string]bool // subjects of faults, each of which is reported once
	over   bool            // after a fault that ends the run
}

// wait is what is known of a pending pod.
type wait struct {
	pod      string
	since    time.Duration // machine time
	feasible time.Duration // how long it was feasible, in total
	could    string        // where it could run
	why      string        // why it cannot
	taken    string        // an existing node that would take it: kube-scheduler's turn
}

// drain is what is known of a draining node.
type drain struct {
	since, moved time.Duration // when it began, and when it last made progress or was blocked
	blocked      string        // why no pod can be evicted
	excused      bool          // what blocks it never ends by itself
}

func newJudge(v *view, clock *machinetime.Clock, could *feasibility, down func() bool) *judge {
	return &judge{view: v, clock: clock, could: could, down: down, moved: map[string]bool{},
		waits: map[types.UID]*wait{}, drains: map[string]*drain{}, last: clock.Now(), seen: map[string]bool{}}
}

// fault records a violation that ends the run, so that the state can still be seen. about is its subject; each subject
// is reported once.
func (j *judge) fault(about, format string, args ...any) {
	j.over = true
	j.remark(about, format, args...)
}

// remark records a violation that does not end the run.
func (j *judge) remark(about, format string, args ...any) {
	if !j.seen[about] {
		j.seen[about] = true
		j.faults = append(j.faults, fmt.Sprintf(format, args...))
	}
}

// look judges the current state.
func (j *judge) look(ctx context.Context) error {
	now := j.clock.Now()
	passed := now - j.last
	j.last = now
	if j.down() {
		passed = 0
	}
	if err := j.pods(ctx, now, passed); err != nil {
		return err
	}
	j.nodes(now, passed)
	j.loops()
	j.view.mu.Lock()
	broken := j.view.limits.broken(time.Now())
	j.view.mu.Unlock()
	for _, text := range broken {
		j.remark(text, "%s", text)
	}
	return nil
}

// waiting reports whether a pod waits for a node. Pods of DaemonSets wait for room on their own node.
func waiting(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodPending &&
		!daemon(pod)
}

func (j *judge) pods(ctx context.Context, now, passed time.Duration) error {
	var m *moment
	answers := map[types.UID]*wait{} // by owner, whose pods are alike
	here := map[types.UID]bool{}
	for _, pod := range j.view.pods() {
		if !waiting(pod) {
			continue
		}
		here[pod.UID] = true
		w := j.waits[pod.UID]
		if w == nil {
			w = &wait{pod: pod.Namespace + "/" + pod.Name, since: now}
			j.waits[pod.UID] = w
		}
		if now-w.since < asksAfter {
			continue
		}
		if m == nil {
			moment := j.could.now()
			m = &moment
		}
		owner := pod.UID
		if reference := metav1.GetControllerOf(pod); reference != nil {
			owner = reference.UID
		}
		answer := answers[owner]
		if answer == nil {
			var err error
			if answer, err = m.answer(ctx, pod, w.feasible > mostWait/3); err != nil {
				return err
			}
			answers[owner] = answer
		}
		j.wait(w, answer, passed)
	}
	for uid := range j.waits {
		if !here[uid] {
			delete(j.waits, uid)
		}
	}
	return nil
}

// answer says whether a pod is feasible; if thoroughly, also whether an existing node would take it.
func (m moment) answer(ctx context.Context, pod *corev1.Pod, thoroughly bool) (*wait, error) {
	var w wait
	var err error
	if w.could, w.why, err = m.launchable(ctx, pod); err != nil || w.could == "" || !thoroughly {
		return &w, err
	}
	w.taken, err = m.taken(ctx, pod)
	return &w, err
}

func (j *judge) wait(w, answer *wait, passed time.Duration) {
	w.could, w.why, w.taken = answer.could, answer.why, answer.taken
	if w.could == "" || w.taken != "" {
		return
	}
	if w.feasible == 0 {
		j.asked++
	}
	w.feasible += passed
	if w.feasible > j.worst.feasible {
		j.worst = *w
	}
	if w.feasible > mostWait {
		j.fault("pod "+w.pod, "pod %s waits for %.0f s of machine time in which it was feasible; it could run on %s",
			w.pod, w.feasible.Seconds(), w.could)
	}
}

// nodes judges drains.
func (j *judge) nodes(now, passed time.Duration) {
	here := map[string]bool{}
	pods := map[string][]*corev1.Pod{}
	for _, pod := range j.view.pods() {
		if pod.Spec.NodeName != "" && !daemon(pod) && pod.Status.Phase != corev1.PodSucceeded &&
			pod.Status.Phase != corev1.PodFailed {
			pods[pod.Spec.NodeName] = append(pods[pod.Spec.NodeName], pod)
		}
	}
	stories, _ := j.view.stories()
	for _, claim := range j.view.claims() {
		if claim.DeletionTimestamp == nil {
			continue
		}
		here[claim.Name] = true
		d := j.drains[claim.Name]
		if d == nil {
			d = &drain{since: now, moved: now}
			j.drains[claim.Name] = d
		}
		if i := slices.IndexFunc(stories, func(l life) bool { return l.name == claim.Name && l.gone == 0 }); i >= 0 {
			d.moved = max(d.moved, stories[i].left)
		}
		if passed == 0 {
			d.moved = now
		}
		j.drain(claim, d, pods[claim.Status.NodeName], now)
	}
	for name := range j.drains {
		if !here[name] {
			delete(j.drains, name)
		}
	}
}

func (j *judge) drain(claim *karpenterv1.NodeClaim, d *drain, pods []*corev1.Pod, now time.Duration) {
	d.blocked, d.excused = "", false
	could := ""
	for _, pod := range pods {
		why, ever := j.mayGo(pod)
		switch {
		case why == "":
			could = pod.Namespace + "/" + pod.Name
		default:
			d.blocked, d.excused = fmt.Sprintf("%s/%s: %s", pod.Namespace, pod.Name, why), d.excused || !ever
		}
	}
	if len(pods) > 0 && could == "" {
		d.moved = now
		return
	}
	if still := now - d.moved; still > mostStill {
		what := "no pod is left on its node"
		if could != "" {
			what = "pod " + could + " could be evicted"
		}
		j.fault("drain "+claim.Name,
			"NodeClaim %s was deleted %.0f s of machine time ago and stands still for %.0f s: %s",
			claim.Name, (now - d.since).Seconds(), still.Seconds(), what)
	}
}

// mayGo returns why a pod cannot be evicted now, and whether that can change without users.
func (j *judge) mayGo(pod *corev1.Pod) (why string, ever bool) {
	if pod.DeletionTimestamp != nil {
		return "it is ending", true
	}
	if pod.Annotations[karpenterv1.DoNotDisruptAnnotationKey] == "true" {
		return karpenterv1.DoNotDisruptAnnotationKey, false
	}
	for _, guard := range j.view.guards() {
		selector, err := metav1.LabelSelectorAsSelector(guard.Spec.Selector)
		if err != nil || guard.Namespace != pod.Namespace || !selector.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if guard.Status.DisruptionsAllowed < 1 || guard.Status.ObservedGeneration < guard.Generation {
			return fmt.Sprintf("PodDisruptionBudget %s allows %d (%d of %d are healthy, it wants %d)",
				guard.Name, guard.Status.DisruptionsAllowed,
				guard.Status.CurrentHealthy, guard.Status.ExpectedPods, guard.Status.DesiredHealthy), !never(guard)
		}
	}
	return "", true
}

// never reports whether a budget allows no eviction even when all pods are healthy.
func never(guard *policyv1.PodDisruptionBudget) bool {
	return guard.Status.ExpectedPods <= guard.Status.DesiredHealthy
}

// rests reports whether nothing happens any more, and otherwise what happens. A drain that only users can end does not
// count.
func (j *judge) rests(now time.Duration) (bool, string) {
	stories, changed := j.view.stories()
	var going []string
	for _, w := range j.waits {
		if w.could != "" && w.taken == "" {
			going = append(going, fmt.Sprintf("pod %s waits and could run on %s", w.pod, w.could))
		}
	}
	forced := map[string]bool{}
	for _, l := range stories {
		forced[l.name] = l.byHand || l.reason == "NodeLimitExceeded" || l.reason == "ReplicasExceeded"
	}
	for name, d := range j.drains {
		if !d.excused && !forced[name] {
			going = append(going, fmt.Sprintf("node %s drains; %s", name, d.blocked))
		}
	}
	chosen := map[string]bool{}
	for _, claim := range j.view.claims() {
		chosen[claim.Status.NodeName] = claim.DeletionTimestamp != nil
		switch {
		case claim.DeletionTimestamp != nil:
		case !conditionTrue(claim.Status.Conditions, karpenterv1.ConditionTypeInitialized):
			going = append(going, fmt.Sprintf("NodeClaim %s is not initialized", claim.Name))
		case conditionTrue(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason):
			chosen[claim.Status.NodeName] = true
			going = append(going, fmt.Sprintf("NodeClaim %s is chosen for removal", claim.Name))
		}
	}
	for _, node := range j.view.nodes() {
		if tainted(node) && !chosen[node.Name] && node.DeletionTimestamp == nil {
			going = append(going, fmt.Sprintf("node %s has the taint %s, and its NodeClaim stays",
				node.Name, karpenterv1.DisruptedTaintKey))
		}
	}
	slices.Sort(going)
	if quiet := now - changed; quiet < restAfter {
		going = append(going, fmt.Sprintf("a claim came, went or was chosen %.0f s ago", quiet.Seconds()))
	}
	return len(going) == 0, strings.Join(going, "; ")
}

func tainted(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints,
		func(t corev1.Taint) bool { return t.Key == karpenterv1.DisruptedTaintKey })
}

// launches returns the number of claims, and the barren ones: those that never held a pod, were not deleted by users,
// and are gone or have existed for a while.
func (j *judge) launches() (all int, barren map[string]string) {
	stories, _ := j.view.stories()
	now := j.clock.Now()
	barren = map[string]string{}
	for _, l := range stories {
		all++
		end := l.gone
		if end == 0 {
			end = now
		}
		if l.held > 0 || l.byHand || l.static || l.gone == 0 && (l.initialized == 0 || now-l.initialized < idleAfter) {
			continue
		}
		barren[l.name] = fmt.Sprintf("%s of %s (%.0f s, %s)", l.name, l.pool, (end - l.born).Seconds(), l.reason)
	}
	return all, barren
}

// loops finds pods for which useless nodes were launched again and again.
func (j *judge) loops() {
	_, barren := j.launches()
	for pod, claims := range j.view.launchedFor() {
		var inVain []string
		for _, claim := range claims {
			if text, is := barren[claim]; is {
				inVain = append(inVain, text)
			}
		}
		if len(inVain) > mostInVain {
			j.remark("loop "+pod, "%d nodes were launched for pod %s, and none of them ever held a pod: %s",
				len(inVain), pod, strings.Join(inVain, ", "))
		}
	}
}
