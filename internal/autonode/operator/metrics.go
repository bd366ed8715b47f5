package operator

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/approver"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
)

// Metrics are the operator's metrics. Every label is from a closed set.
type Metrics struct {
	ReadState *prometheus.GaugeVec   // state: 1 for the present one, 0 for the others
	Reads     *prometheus.CounterVec // result: read, denied, failed
	Writes    *prometheus.CounterVec // kind, verb
	Repairs   *prometheus.CounterVec // kind
	Altered   *prometheus.CounterVec // kind: a product's, or status for a wrapper's status
	Wrappers  *prometheus.GaugeVec   // kind, applied: True, False, Unknown, party: who must act
	NotReady  *prometheus.GaugeVec   // party: 1 if it must act because the policy is not Ready
	Protected *prometheus.GaugeVec   // reason: 1 for the reason of the condition Protected
	Unmanaged *prometheus.GaugeVec   // kind
	Foreign   *prometheus.GaugeVec   // kind
	Approvals *prometheus.CounterVec // signer
	Pending   *prometheus.GaugeVec   // reason
	Conforms  *prometheus.GaugeVec   // kind, state, cause, party: what the last look found
	// no labels: when the last look was, in seconds since 1970; absent before the first look
	Checked *prometheus.GaugeVec
}

// NewMetrics registers the metrics.
func NewMetrics(registerer prometheus.Registerer) Metrics {
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "autonode", Name: name, Help: help}, labels)
		registerer.MustRegister(vec)
		return vec
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		vec := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "autonode", Name: name, Help: help}, labels)
		registerer.MustRegister(vec)
		return vec
	}
	m := Metrics{
		ReadState: gauge("policy_read_state",
			"1 for the state in which the AutoNodePolicy is known, 0 for the others. Permissive means that no "+
				"policy is enforced because none can be read.",
			"state"),
		Reads: counter("policy_reads_total", "Attempts to read the AutoNodePolicy from the management cluster.",
			"result"),
		Writes: counter("writes_total", "Writes of objects in the guest cluster.", "kind", "verb"),
		Repairs: counter("repairs_total",
			"Objects that somebody else had changed or deleted and that were restored.", "kind"),
		Altered: counter("altered_writes_total",
			"Writes that were accepted and that the guest's API server stores with other settings than were written.",
			"kind"),
		Wrappers: gauge("wrappers",
			"Wrappers by whether the policy is applied to them, and whose business it is that it is not.",
			"kind", "applied", "party"),
		NotReady: gauge("policy_not_ready",
			"1 for each party whose business it is that the AutoNodePolicy is not Ready, 0 for the others.", "party"),
		Protected: gauge("protected",
			"1 for whether the guest's admission policies are in force, in the words of the condition Protected, "+
				"0 for the other reasons. "+
				"InForce means that they all are.", "reason"),
		Unmanaged: gauge("unmanaged_objects",
			"Karpenter objects that belong to no wrapper and were not made by the operator. They are left alone, "+
				"and the policy does not hold for them.",
			"kind"),
		Foreign: gauge("foreign_objects",
			"Those of the unmanaged objects that were made when the guest was protected already, past its admission policies.",
			"kind"),
		Approvals: counter("certificate_approvals_total",
			"Certificate requests of kubelets that the operator approved.", "signer"),
		Pending: gauge("certificate_requests_left",
			"Pending certificate requests of kubelets that the operator leaves alone, by why.", "reason"),
		Conforms: gauge("conformance_objects",
			"NodePools, EC2NodeClasses, NodeClaims and nodes by how they stand to the policy, why, and whose business it is.",
			"kind", "state", "cause", "party"),
		Checked: gauge("conformance_checked_timestamp_seconds",
			"When everything in the guest was compared with the policy last."),
	}
	m.ShowState(StateStarting)
	for _, kind := range []string{conformance.NodePool, conformance.EC2NodeClass, alteredStatus} {
		m.Altered.WithLabelValues(kind) // start at 0, so that the first one is seen as an increase
	}
	return m
}

// protectedReasons are all reasons of the condition Protected.
func protectedReasons() []string {
	return []string{hypershiftv1beta1.ReasonInForce, hypershiftv1beta1.ReasonProtectionMissing,
		hypershiftv1beta1.ReasonOpenByFlag,
		hypershiftv1beta1.ReasonRuleTooLarge}
}

// ShowProtected shows the reason of the condition Protected.
func (m Metrics) ShowProtected(reason string) {
	for _, known := range protectedReasons() {
		m.Protected.WithLabelValues(known).Set(oneIf(known == reason))
	}
}

// ShowNotReady shows which parties must act because the policy is not Ready. There are none if it is Ready or does not
// exist.
func (m Metrics) ShowNotReady(whose map[conformance.Party]bool) {
	for _, party := range conformance.Parties() {
		m.NotReady.WithLabelValues(string(party)).Set(oneIf(whose[party]))
	}
}

// wrapperState says whether the policy is applied to a wrapper, and who must act if not.
type wrapperState struct {
	applied metav1.ConditionStatus
	party   conformance.Party
}

// showWrappers shows how many wrappers of a kind are in each state.
func (m Metrics) showWrappers(kind string, counts map[wrapperState]int) {
	for _, status := range []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse,
		metav1.ConditionUnknown} {
		for _, party := range append(conformance.Parties(), conformance.Nobody) {
			if status == metav1.ConditionTrue && party != conformance.Nobody {
				continue
			}
			m.Wrappers.WithLabelValues(kind, string(status),
				string(party)).Set(float64(counts[wrapperState{status, party}]))
		}
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// ShowState shows what is known about the policy.
func (m Metrics) ShowState(state ReadState) {
	for _, known := range ReadStates() {
		m.ReadState.WithLabelValues(string(known)).Set(oneIf(known == state))
	}
}

// ShowConformance shows what a look found.
func (m Metrics) ShowConformance(report conformance.Report, now time.Time) {
	m.Conforms.Reset()
	for _, c := range report.Counts {
		m.Conforms.WithLabelValues(c.Kind, string(c.State), string(c.Cause), string(c.Party)).Set(float64(c.Objects))
	}
	m.Checked.WithLabelValues().Set(float64(now.Unix()))
}

// ShowPending shows how many certificate requests were left alone, by reason.
func (m Metrics) ShowPending(requests map[approver.Reason]int) {
	for _, reason := range approver.Reasons() {
		if reason != approver.Approved {
			m.Pending.WithLabelValues(string(reason)).Set(float64(requests[reason]))
		}
	}
}

// CountRead counts an attempt to read the policy.
func (m Metrics) CountRead(answer Answer) {
	result := "read"
	switch {
	case denied(answer.Err):
		result = "denied"
	case answer.Err != nil:
		result = "failed"
	}
	m.Reads.WithLabelValues(result).Inc()
}
