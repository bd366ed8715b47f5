package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// U-10: in a real run Joiner's own metrics have series about nodes, prices, offerings, plans, decisions, stages and
// calls. Pods that wait at a limit have one with the cause, until they are gone.
func TestU10_MetricsOfARealRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, quick+"\nlimits: {nodes: 2}"))
	r.apply(deployment("web", 3, "{cpu: '1'}", oneEach("web")))
	r.shows(true, `joiner_pods_waiting{cause="SoftLimitNodes",nodepool="default"} 1`,
		`joiner_nodepool_limited{limit="soft_nodes",nodepool="default"} 1`,
		`joiner_nodes{nodepool="default",state="ready"} 2`, `joiner_nodepool_ready{nodepool="default"} 1`,
		`joiner_leader 1`, `joiner_unpriced_nodes 0`, `joiner_price_dollars_per_hour{capacity_type="`,
		`joiner_offerings{nodepool="default"} `, `joiner_offerings_unavailable{nodepool="default"} 0`,
		`joiner_decisions_total{cause="Pending",outcome="done",verb="launch"} 2`,
		`joiner_node_stage_seconds_count{nodepool="default",stage="launched"} 2`,
		`joiner_node_stage_seconds_count{nodepool="default",stage="registered"} 2`,
		`joiner_node_stage_seconds_count{nodepool="default",stage="initialized"} 2`,
		`joiner_plan_duration_seconds_count `, `joiner_plan_pods_count `, `joiner_last_plan_timestamp_seconds `,
		`joiner_standing_timestamp_seconds `, `joiner_api_requests_total{kind="NodeClaim",verb="create"} 2`,
		`joiner_api_requests_total{kind="Pod",verb="watch"} `)
	r.run("delete", "deployment", "web")
	r.nothingLeft(later)
	r.shows(true, `joiner_nodes{nodepool="default",state="ready"} 0`,
		`joiner_decisions_total{cause="Empty",outcome="done",verb="remove"} `)
	r.shows(false, `joiner_pods_waiting{`, `joiner_price_dollars_per_hour{`, `joiner_oldest_drain_seconds{`)
	r.run("delete", "nodepool", "default")
	r.shows(false, `nodepool="default",state=`, `joiner_node_stage_seconds_count{`, `joiner_nodepool_limited{`,
		`joiner_offerings{`, `joiner_nodepool_ready{`)
}

// shows waits, for each of these texts, until a scrape has a line with it or, if not want, none.
func (r *testRig) shows(want bool, beginnings ...string) {
	r.t.Helper()
	for _, beginning := range beginnings {
		what := fmt.Sprintf("lines with %s: %t", beginning, want)
		r.eventually(later, what, func(ctx context.Context) (bool, string, error) {
			text, err := r.scrape(ctx)
			if err != nil {
				return false, "", err
			}
			var near []string
			for line := range strings.SplitSeq(text, "\n") {
				if strings.Contains(line, beginning) && !strings.HasPrefix(line, "#") {
					return want, line, nil
				}
				if name, _, _ := strings.Cut(beginning, "{"); strings.HasPrefix(line, name) {
					near = append(near, line)
				}
			}
			return !want, strings.Join(near, "; "), nil
		})
	}
}

// scrape asks the controller for its metrics.
func (r *testRig) scrape(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.MetricsURL(), nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}
