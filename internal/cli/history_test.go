package cli_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/internal/history"
)

// decidedLog has a launch and a removal in it.
func decidedLog(t *testing.T) *history.Log {
	t.Helper()
	price, none := 0.07, 0.0
	start, kept := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC), history.New(0, 1)
	kept.Add(history.Record{Verb: "launch", Cause: "Pending", Outcome: "done", NodePool: "default",
		NodeClaim: "default-a", Pods: 2, PodNames: []string{"shop/web-0", "shop/web-1"}, Types: []string{"m5.large"},
		TypeCount: 4, Before: &none, After: &price}, start)
	kept.Add(history.Record{Verb: "remove", Cause: "Empty", Outcome: "planned", NodePool: "default",
		NodeClaim: "default-b"},
		start.Add(time.Hour))
	return kept
}

// historyMap is the ConfigMap that a controller has written them to.
func historyMap(t *testing.T) string {
	t.Helper()
	open, _ := decidedLog(t).Open()
	packed, err := history.Pack(open, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: joiner-history-01, namespace: joiner}\n" +
		"binaryData: {records.gz: " +
		base64.StdEncoding.EncodeToString(packed[0].Data) + "}\n"
}

func recalled(t *testing.T, c *controller, manifests []string, args ...string) (int, string, string) {
	t.Helper()
	client := withLeases(t, manifests...)
	var out, failures bytes.Buffer
	all := append([]string{"history"}, args...)
	code := cli.Run(t.Context(), cli.Config{Out: &out, Err: &failures,
		Client:  func(cli.Connection) (dynamic.Interface, error) { return client, nil },
		Forward: func(cli.Connection) (cli.Forwarder, error) { return c, nil }}, all)
	fits(t, code, out.String(), all)
	return code, out.String(), failures.String()
}

// TestU25_HistoryAsksTheLeader, with what its flags say.
func TestU25_HistoryAsksTheLeader(t *testing.T) {
	t.Parallel()
	var asked history.Filter
	c := &controller{t: t, answers: func(w http.ResponseWriter, r *http.Request) {
		var err error
		if asked, err = history.FromQuery(r.URL.Query()); err != nil {
			t.Error(err)
		}
		_ = json.NewEncoder(w).Encode(history.Answer{Records: asked.Select(decidedLog(t).Records())})
	}}
	code, out, failures := recalled(t, c, []string{leaderLease}, "--nodepool", "default", "--cause", "Pending",
		"--pod", "shop/web-1", "--since", "2026-11-20T07:00:00Z")
	const row = "launch  Pending  default  default-a  shop/web-0 and 1 more  +0.070  done\n"
	if code != cli.CodeFine || failures != "" || !strings.HasSuffix(out, row) || strings.Count(out, "\n") != 2 {
		t.Errorf("exit %d, %s\n%s", code, failures, out)
	}
	if asked.NodePool != "default" || asked.Since.IsZero() || asked.Limit != 100 ||
		c.asked != "GET joiner/joiner-a /joiner/v1/history" || !c.stopped {
		t.Errorf("%q with %+v, stopped %t", c.asked, asked, c.stopped)
	}
	code, out, _ = recalled(t, c, []string{leaderLease}, "-o", "name")
	if code != cli.CodeFine || out != "nodeclaim/default-b\nnodeclaim/default-a\n" {
		t.Errorf("exit %d: %s", code, out)
	}
}

// TestU25_HistoryIsReadFromConfigMaps where no controller can be asked, and that is said; so is that there is none.
func TestU25_HistoryIsReadFromConfigMaps(t *testing.T) {
	t.Parallel()
	unreachable := &controller{t: t, err: errors.New("gone")}
	code, out, failures := recalled(t, unreachable, []string{leaderLease, historyMap(t)}, "-o", "json")
	var answer struct {
		Source  string
		Records []history.Record
		Notes   []string
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || code != cli.CodeFine ||
		answer.Source != "configMaps" ||
		len(answer.Records) != 2 || answer.Records[0].NodeClaim != "default-b" || len(answer.Notes) != 1 {
		t.Errorf("exit %d, %s %v\n%s", code, failures, err, out)
	}
	code, out, _ = recalled(t, unreachable, []string{leaderLease}, "-o", "wide")
	if code != cli.CodeFine || !strings.Contains(out, "namespace joiner has no ConfigMaps of a history") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}

// TestU36_HistoryNamesWhatIsWrong with a flag.
func TestU36_HistoryNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		`--since is "yesterday": it must be a time`: {"--since", "yesterday"},
		`--until is "-2h": it must be a time`:       {"--until=-2h"},
		`--limit is -1: it must be a number from 0`: {"--limit=-1"},
	} {
		if code, _, failures := recalled(t, &controller{t: t}, nil, args...); code != cli.CodeFailed ||
			!strings.Contains(failures, want) {
			t.Errorf("%v: exit %d, %s", args, code, failures)
		}
	}
}
