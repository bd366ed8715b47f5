package cli_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

// TestU13_NowIsTheTimeThatIsPlannedFor: a pool that is left alone until a time says so before it, and not after.
func TestU13_NowIsTheTimeThatIsPlannedFor(t *testing.T) {
	t.Parallel()
	for now, want := range map[string]string{
		"2999-06-01T00:00:00Z": "disruption on",
		"2998-06-01T00:00:00Z": "disruption paused until 2999-01-01T00:00:00Z",
	} {
		if _, out, failures := ran(t, "", "status", "-f", "../../examples/status", "--now", now); failures != "" ||
			!strings.Contains(out, want) {
			t.Errorf("at %s: %s\n%s\nwant %s", now, failures, out, want)
		}
	}
	for _, args := range [][]string{{"status", "-f", "../../examples/status"},
		{"simulate", "-f", "../../examples/simulate"}, {"explain", "node", "n1", "-f", "../../examples/explain"},
		{"policy", "check", "-f", "../../examples/policycheck"}} {
		code, _, failures := ran(t, "", append(args, "--now", "noon")...)
		if code != cli.CodeFailed || !strings.Contains(failures, `--now is "noon": it must be a time, such as`) {
			t.Errorf("%v: exit %d, %q", args, code, failures)
		}
	}
}

// TestU13_TimeoutGivesUp: if a cluster does not answer, the command ends in time, with 2 and one line that names the
// flag.
func TestU13_TimeoutGivesUp(t *testing.T) {
	t.Parallel()
	var out, failures strings.Builder
	config := cli.Config{In: strings.NewReader(""), Out: &out, Err: &failures,
		Client: func(cli.Connection) (dynamic.Interface, error) { return silent(t), nil }}
	code := cli.Run(t.Context(), config, []string{"status", "--timeout", "10ms"})
	if got := failures.String(); code != cli.CodeFailed || out.Len() > 0 ||
		got != "joinerctl: gave up after 10ms (--timeout): nothing is known that was not printed\n" {
		t.Errorf("exit %d: %q\n%s", code, got, out.String())
	}
	spent := flowcontrol.NewTokenBucketRateLimiter(1e-6, 1)
	spent.TryAccept()
	busy := config // its limiter knows at once that the turn of the first request comes too late
	busy.Client = func(cli.Connection) (dynamic.Interface, error) {
		return dynamic.NewForConfig(&rest.Config{Host: "http://localhost", RateLimiter: spent})
	}
	out.Reset()
	failures.Reset()
	busy.Out, busy.Err = &out, &failures
	code = cli.Run(t.Context(), busy, []string{"status", "--timeout", "1h"})
	if got := failures.String(); code != cli.CodeFailed ||
		!strings.HasPrefix(got, "joinerctl: gave up after 1h0m0s (--timeout)") {
		t.Errorf("a limiter without a turn: exit %d: %q", code, got)
	}
	code, _, told := ran(t, "", "status", "-f", "../../examples/status", "--timeout", "-1s")
	if code != cli.CodeFailed || !strings.Contains(told, "--timeout is -1s: it must not be negative") {
		t.Errorf("a negative time: exit %d, %q", code, told)
	}
	if code, _, told := ran(t, "", "status", "-f", "../../examples/status", "--timeout", time.Hour.String()); code !=
		cli.CodeFindings || told != "" {
		t.Errorf("time enough: exit %d, %q", code, told)
	}
}

// silent is a client of a server that takes requests and never answers.
func silent(t *testing.T) dynamic.Interface {
	t.Helper()
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		select {
		case <-request.Context().Done():
		case <-ended:
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(ended) })
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
