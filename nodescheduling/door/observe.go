package door

import (
	"github.com/go-logr/logr"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// Observer returns a function that counts verdicts, logs their findings, and offers their events. The function does
// not wait.
func Observer(events *Events, metrics Metrics, log logr.Logger) func(evaluator.Request, evaluator.Verdict) {
	return func(request evaluator.Request, verdict evaluator.Verdict) {
		metrics.Count(verdict.Samples)
		metrics.Entries.Count(verdict.Uses)
		for _, f := range verdict.Findings {
			log := log
			if f.Decision == evaluator.Authorized {
				log = log.V(1) // it is no news
			}
			log.Info("judged", "decision", f.Decision, "group", f.Group, "reason", f.Reason,
				"node", f.Node, "user", request.User.Name, "namespace", request.Namespace, "name", request.Name,
				"override", f.Override)
		}
		events.Offer(verdict.Events)
	}
}
