package door

import (
	"github.com/go-logr/logr"

	"github.com/joiner-autoscaler/joiner/internal/admission/nodescheduling"
)

// Observer counts verdicts, logs those that refuse or override, and offers their events. It does not wait.
func Observer(events *Events, metrics Metrics, log logr.Logger) func(nodescheduling.Request, nodescheduling.Verdict) {
	return func(request nodescheduling.Request, verdict nodescheduling.Verdict) {
		metrics.Count(verdict.Samples)
		metrics.Entries.Count(verdict.Uses)
		for _, f := range verdict.Findings {
			log.V(verbosity(f.Decision)).Info("judged", "decision", f.Decision, "group", f.Group, "reason", f.Reason, "node", f.Node,
				"user", request.User.Name, "namespace", request.Namespace, "name", request.Name, "override", f.Override)
		}
		events.Offer(verdict.Events)
	}
}

// verbosity: that somebody may is no news.
func verbosity(decision nodescheduling.Decision) int {
	if decision == nodescheduling.Authorized {
		return 1
	}
	return 0
}
