package door

import (
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/joiner-autoscaler/joiner/internal/admission/nodescheduling"
)

const (
	// eventsPerSecond and eventsAtOnce bound the events of mode Inform (N67): an API server that is told of every pod of
	// a large rollout would have other worries.
	eventsPerSecond = 1
	eventsAtOnce    = 25
)

// Observer counts verdicts, logs those that refuse or override, and writes events at a limited rate.
func Observer(recorder events.EventRecorder, metrics Metrics, log logr.Logger) func(nodescheduling.Request, nodescheduling.Verdict) {
	limit := flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventsAtOnce)
	return func(request nodescheduling.Request, verdict nodescheduling.Verdict) {
		metrics.Count(verdict.Samples)
		metrics.Entries.Count(verdict.Uses)
		for _, f := range verdict.Findings {
			log.V(verbosity(f.Decision)).Info("judged", "decision", f.Decision, "group", f.Group, "reason", f.Reason, "node", f.Node,
				"user", request.User.Name, "namespace", request.Namespace, "name", request.Name, "override", f.Override)
		}
		for _, event := range verdict.Events {
			if !limit.TryAccept() {
				metrics.EventsCut.Inc()
				continue
			}
			recorder.Eventf(&event.Regarding, nil, corev1.EventTypeWarning, string(event.Reason), string(event.Reason), "%s", event.Note)
		}
	}
}

// verbosity: that somebody may is no news.
func verbosity(decision nodescheduling.Decision) int {
	if decision == nodescheduling.Authorized {
		return 1
	}
	return 0
}
