package cli_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/internal/dump"
)

const leaderLease = "apiVersion: coordination.k8s.io/v1\nkind: Lease\n" +
	"metadata: {name: karpenter-leader-election, namespace: joiner}\n" +
	"spec: {holderIdentity: joiner-a_1, leaseDurationSeconds: 15, renewTime: \"2999-01-01T00:00:00.000000Z\"}\n"

// controller is a pod that answers, or a reason why it cannot be reached.
type controller struct {
	t       *testing.T
	answers http.HandlerFunc
	err     error
	asked   string
	stopped bool
}

func (c *controller) Forward(_ context.Context, namespace, pod string, port int) (string, func(), error) {
	if c.err != nil {
		return "", nil, c.err
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.asked = r.Method + " " + namespace + "/" + pod + " " + r.URL.Path
		if port != 8082 {
			http.Error(w, "another port", http.StatusTeapot)
			return
		}
		c.answers(w, r)
	}))
	return strings.TrimPrefix(server.URL, "http://"), func() { c.stopped = true; server.Close() }, nil
}

// askedFor runs dump against a cluster with these objects and this controller.
func askedFor(t *testing.T, c *controller, manifests []string, args ...string) (int, string, string) {
	t.Helper()
	client := withLeases(t, manifests...)
	var out, failures bytes.Buffer
	code := cli.Run(t.Context(), cli.Config{Out: &out, Err: &failures,
		Client:  func(cli.Connection) (dynamic.Interface, error) { return client, nil },
		Forward: func(cli.Connection) (cli.Forwarder, error) { return c, nil }}, append([]string{"dump"}, args...))
	return code, out.String(), failures.String()
}

// sends answers with a file.
func sends(t *testing.T, path string) http.HandlerFunc {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }
}

// TestU41_DumpAsksTheLeader: dump asks the pod that holds the lease what it planned with. The file then has no names,
// and says where it is from.
func TestU41_DumpAsksTheLeader(t *testing.T) {
	t.Parallel()
	d := understood(t, otherPlan(t))
	p, err := dump.Ask(d.Plans[0].Question, d.Snapshot, d.Terms)
	if err != nil {
		t.Fatal(err)
	}
	d.Plans[0].Plan = p
	c := &controller{t: t, answers: sends(t, storedDump(t, d))}
	path := filepath.Join(t.TempDir(), "dump.gz")
	code, _, failures := askedFor(t, c, []string{leaderLease}, "-o", path)
	if code != cli.CodeFine || failures != "" || c.asked != "GET joiner/joiner-a /joiner/v1/dump" || !c.stopped {
		t.Errorf("exit %d, %q, asked %q, stopped %t", code, failures, c.asked, c.stopped)
	}
	h := understood(t, path).Header
	if h.Source != dump.FromController || h.Redaction != dump.RedactNames || h.Program != "test" {
		t.Errorf("%+v", h)
	}
}

// TestU06_AControllersPlanThatDiffersIsKept under a name that says so.
func TestU06_AControllersPlanThatDiffersIsKept(t *testing.T) {
	t.Parallel()
	c := &controller{t: t, answers: sends(t, otherPlan(t))}
	path := filepath.Join(t.TempDir(), "dump.gz")
	code, out, failures := askedFor(t, c, []string{leaderLease}, "-o", path)
	if code != cli.CodeFailed || out != "" ||
		!strings.Contains(failures, "does not replay to the plan that was made") {
		t.Errorf("exit %d, %q, %q", code, out, failures)
	}
	if code, _, _ := ran(t, "", "replay", path+".differs"); code != cli.CodeFindings {
		t.Errorf("exit %d", code)
	}
}

// TestU41_WhoCannotAskIsToldWhatWorks: each time --rebuild is named.
func TestU41_WhoCannotAskIsToldWhatWorks(t *testing.T) {
	t.Parallel()
	standby := func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "this pod does not lead: the leader is joiner-b", http.StatusServiceUnavailable)
	}
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	silent := strings.Replace(leaderLease, "2999", "2001", 1)
	for name, c := range map[string]struct {
		manifests []string
		pod       *controller
		args      []string
		want      string
	}{
		"no lease": {nil, &controller{}, nil,
			"there is no lease karpenter-leader-election: "},
		"nobody leads": {[]string{silent}, &controller{}, nil, "no controller leads: "},
		"another lease": {[]string{leaderLease}, &controller{}, []string{"--leader-election-name", "x"},
			"there is no lease x: "},
		"no right": {[]string{leaderLease}, &controller{err: errors.New(`pods "joiner-a" is forbidden: no`)}, nil,
			"pod joiner/joiner-a: it cannot be asked, for want of the right to create pods/portforward in namespace joiner " +
				"(rule: {apiGroups: [\"\"], resources: [pods/portforward], verbs: [create]}): "},
		"not reached": {[]string{leaderLease}, &controller{err: errors.New("no such host")}, nil,
			"pod joiner/joiner-a: it cannot be reached (no such host): "},
		"a standby": {[]string{leaderLease}, &controller{answers: standby}, nil,
			"pod joiner/joiner-a: this pod does not lead: the leader is joiner-b: "},
		"an old version": {[]string{leaderLease}, &controller{answers: hangUp}, nil,
			"pod joiner/joiner-a: it does not answer on port 8082: it may be a version without "},
		"another port": {[]string{leaderLease}, &controller{}, []string{"--read-port", "9"},
			"pod joiner/joiner-a: another port: "},
		"no dump at all": {[]string{leaderLease}, &controller{answers: func(http.ResponseWriter, *http.Request) {}},
			nil, "pod joiner/joiner-a: it is no dump: "},
	} {
		code, out, failures := askedFor(t, c.pod, c.manifests,
			append(c.args, "-o", filepath.Join(t.TempDir(), "x"))...)
		if code != cli.CodeFailed || out != "" || !strings.HasPrefix(failures, "joinerctl: "+c.want) ||
			!strings.HasSuffix(failures, ": --rebuild makes a dump from the objects of the API server\n") {
			t.Errorf("%s: exit %d, %q, %q", name, code, out, failures)
		}
	}
}
