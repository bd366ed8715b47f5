package provisioning

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/engine/cause"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/view"
)

// report tells users and operators once what was decided. A nomination that repeats an earlier one is not reported.
func (c *Controller) report(snapshot *cluster.Snapshot, p plan.Plan, outcome apply.Outcome) {
	promised := map[string]string{}
	for _, pod := range snapshot.Pending {
		promised[pod.UID] = pod.Promised
		if pod.PassedOver != "" {
			c.config.Events.Event(podOf(plan.PodRef{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID}),
				event.Warning, event.FailedScheduling, "kube-scheduler binds other pods, but not this one to "+
					pod.PassedOver+", where it should run; it is not expected there for a while")
		}
	}
	for _, launched := range outcome.Launched {
		text := view.OnTheWay(launched.Claim).Cause.Headline()
		for _, pod := range launched.Pods {
			c.config.Events.Event(podOf(pod), event.Normal, event.Nominated, text)
		}
	}
	there := namesOf(snapshot.Nodes)
	for _, nomination := range p.Nominations {
		if promised[nomination.Pod.UID] != "" {
			continue
		}
		c.config.Events.Event(podOf(nomination.Pod), event.Normal, event.Nominated, expected(there, nomination.Node))
	}
	for _, refused := range outcome.Refused {
		c.config.Log.Info("did not launch", "pool", refused.Pool, "reason", refused.Why, "pods", len(refused.Pods))
	}
	if len(p.Launches) > 0 {
		c.config.Log.Info("planned", "event", "PlanComputed", "launches", len(p.Launches), "nominated",
			len(p.Nominations), "unplaced", len(p.Unplaced), "pricePerHour", p.Price().String(), "snapshot", p.BasedOn)
	}
}

// expected says that a pod should run on an existing node, or on that of a claim.
func expected(there map[string]bool, name string) string {
	if there[name] {
		return view.Fits(name).Cause.Headline()
	}
	return view.OnTheWay(name).Cause.Headline()
}

// namesOf returns the names of existing nodes.
func namesOf(nodes []*cluster.Node) map[string]bool {
	names := make(map[string]bool, len(nodes))
	for _, node := range nodes {
		names[node.Name] = true
	}
	return names
}

// reportUnplaced tells each unplaced pod why no pool takes it (U-17). It logs each cause once for all its pods (U-14).
func (c *Controller) reportUnplaced(snapshot *cluster.Snapshot, p plan.Plan) {
	groups := view.Groups(p.Unplaced)
	for _, group := range groups {
		text := group.Event()
		for _, pod := range group.Pods {
			c.config.Events.Event(podOf(pod), event.Warning, event.FailedScheduling, text)
		}
	}
	c.reportLimited(snapshot, p)
	for _, group := range c.waits.news(groups) {
		c.config.Log.Info("pods wait", "event", "PodsUnschedulable", "cause", group.Cause.Code, "object",
			group.Cause.Object.String(),
			"text", group.Cause.Text, "pods", len(group.Pods), "first", group.Pods[0].String())
	}
}

// reportLimited reports an event on each pool whose limit keeps a pod waiting, from the pool's view (U-15). The first
// such pod counts, since the missing amount of a resource differs for each.
func (c *Controller) reportLimited(snapshot *cluster.Snapshot, p plan.Plan) {
	limits := cause.LimitCodes()
	told := map[string]bool{}
	for _, u := range p.Unplaced {
		for _, refusal := range u.Pools {
			step := refusal.Last()
			pool := snapshot.Pool(refusal.Pool)
			if !slices.Contains(limits, step.Cause) || pool == nil || told[pool.Name] {
				continue
			}
			told[pool.Name] = true
			object := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: pool.Name, UID: types.UID(pool.UID)}}
			c.config.Events.Event(object, event.Warning, event.LimitReached, view.Limited(pool.Name, step).Event())
		}
	}
}

// waits remembers what was logged, so that a cause is logged when it begins and not with each plan. After a restart it
// is logged again.
type waits struct{ said map[string]bool }

// news returns the groups with a new cause. Only the one worker calls it.
func (w *waits) news(groups []view.Group) []view.Group {
	var fresh []view.Group
	now := make(map[string]bool, len(groups))
	for _, group := range groups {
		key := string(group.Cause.Code) + " " + group.Cause.Text
		if !w.said[key] && !now[key] {
			fresh = append(fresh, group)
		}
		now[key] = true
	}
	w.said = now
	return fresh
}
