package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

// spoken is an output that is read while it is written.
type spoken struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (s *spoken) Write(data []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.Write(data)
}

func (s *spoken) String() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.String()
}

// consoled runs console until end is called, which returns the exit code.
func consoled(t *testing.T, c *controller, manifests []string, open func(string) error, args ...string) (out,
	failures *spoken,
	end func() int,
) {
	t.Helper()
	client := withLeases(t, manifests...)
	ctx, cancel := context.WithCancel(t.Context())
	out, failures = &spoken{}, &spoken{}
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, cli.Config{Out: out, Err: failures, Open: open,
			Client:  func(cli.Connection) (dynamic.Interface, error) { return client, nil },
			Forward: func(cli.Connection) (cli.Forwarder, error) { return c, nil }}, append([]string{"console"},
			args...))
	}()
	return out, failures, func() int { cancel(); return <-ended }
}

// printed waits for the address.
func printed(t *testing.T, out, failures *spoken) string {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		if text := out.String(); strings.HasSuffix(text, "\n") && strings.Contains(failures.String(), "\n") {
			return strings.TrimSpace(text)
		}
	}
	t.Fatalf("no address: %s", failures)
	return ""
}

func fetched(t *testing.T, method, url, host string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	answer, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

// TestU26_TheConsoleIsBehindALocalDoor that asks for the key of the address, and for nothing but reads.
func TestU26_TheConsoleIsBehindALocalDoor(t *testing.T) {
	t.Parallel()
	c := &controller{t: t, answers: func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s of %s", r.URL,
			r.Host)
	}}
	opened := make(chan string, 1)
	out, failures, end := consoled(t, c, []string{leaderLease},
		func(address string) error { opened <- address; return nil },
		"--open")
	address := printed(t, out, failures)
	if got := <-opened; got != address || !strings.HasPrefix(address, "http://127.0.0.1:") ||
		!strings.Contains(failures.String(), "the console of joiner/joiner-a;") {
		t.Errorf("%q was opened, %q printed, %q", got, address, failures)
	}
	if answer, text := fetched(t, http.MethodGet, address+"nodes/a%2Fb?q=1",
		""); text != "/nodes/a%2Fb?q=1 of localhost" ||
		answer.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("%d %q", answer.StatusCode, text)
	}
	root := address[:strings.Index(address[7:], "/")+8]
	for _, bad := range []string{root, root + "nodes", root + "WRONG/nodes", address[:len(address)-2] + "/"} {
		if answer, text := fetched(t, http.MethodGet, bad, ""); answer.StatusCode != http.StatusForbidden ||
			!strings.Contains(text, "lacks its key") {
			t.Errorf("%s: %d %q", bad, answer.StatusCode, text)
		}
	}
	if answer, _ := fetched(t, http.MethodGet, address, "evil.example:80"); answer.StatusCode != http.StatusForbidden {
		t.Errorf("another host: %d", answer.StatusCode)
	}
	if answer, _ := fetched(t, http.MethodPost, address, ""); answer.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", answer.StatusCode)
	}
	if answer, _ := fetched(t, http.MethodGet, strings.TrimSuffix(address, "/"),
		""); answer.StatusCode != http.StatusFound ||
		!strings.HasSuffix(address, answer.Header.Get("Location")) {
		t.Errorf("without the last slash: %d", answer.StatusCode)
	}
	if code := end(); code != cli.CodeInterrupted || !c.stopped {
		t.Errorf("exit %d, stopped %t", code, c.stopped)
	}
}

// TestU26_TheConsoleFollowsTheLeader: where the pod that was reached leads no more, the way to it is made anew.
func TestU26_TheConsoleFollowsTheLeader(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	c := &controller{t: t, answers: func(w http.ResponseWriter, _ *http.Request) {
		switch asked.Add(1) {
		case 2:
			http.Error(w, "this pod does not lead: the leader is joiner-b", http.StatusServiceUnavailable)
		default:
			fmt.Fprint(w, "here")
		}
	}}
	out, failures, end := consoled(t, c, []string{leaderLease}, nil, "--open")
	address := printed(t, out, failures)
	if answer, _ := fetched(t, http.MethodGet, address, ""); answer.StatusCode != http.StatusServiceUnavailable ||
		!c.stopped {
		t.Errorf("%d, stopped %t", answer.StatusCode, c.stopped)
	}
	if answer, text := fetched(t, http.MethodGet, address, ""); answer.StatusCode != http.StatusOK || text != "here" {
		t.Errorf("%d %q", answer.StatusCode, text)
	}
	if !strings.Contains(failures.String(), "no browser can be opened from here") {
		t.Error(failures)
	}
	end()
}

// TestU26_WhoCannotOpenItIsToldWhatWorks.
func TestU26_WhoCannotOpenItIsToldWhatWorks(t *testing.T) {
	t.Parallel()
	old := func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }
	standby := func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "this pod does not lead: the leader is joiner-b", http.StatusServiceUnavailable)
	}
	for name, c := range map[string]struct {
		manifests []string
		pod       *controller
		args      []string
		want      string
	}{
		"no lease": {nil, &controller{}, nil, "there is no lease karpenter-leader-election: no controller runs, "},
		"nobody leads": {[]string{strings.Replace(leaderLease, "2999", "2001", 1)}, &controller{}, nil,
			"no controller leads: "},
		"no right": {[]string{leaderLease}, &controller{err: errors.New(`pods "joiner-a" is forbidden: no`)}, nil,
			"pod joiner/joiner-a: it cannot be asked, for want of the right to create pods/portforward in namespace joiner " +
				"(rule: {apiGroups: [\"\"], resources: [pods/portforward], verbs: [create]}): "},
		"a standby": {[]string{leaderLease}, &controller{answers: standby}, nil,
			"pod joiner/joiner-a: this pod does not lead: the leader is joiner-b: "},
		"an old version": {[]string{leaderLease}, &controller{answers: old}, nil,
			"pod joiner/joiner-a: it is a version without a console: "},
	} {
		out, failures, end := consoled(t, c.pod, c.manifests, nil, c.args...)
		for deadline := time.Now().Add(10 * time.Second); failures.String() == "" && time.Now().Before(deadline); {
			<-time.After(5 * time.Millisecond)
		}
		if code := end(); code != cli.CodeFailed || out.String() != "" ||
			!strings.HasPrefix(failures.String(), "joinerctl: "+c.want) ||
			!strings.HasSuffix(failures.String(),
				": joinerctl status and joinerctl explain read the objects of the API server\n") {
			t.Errorf("%s: exit %d, %q, %q", name, code, out, failures)
		}
	}
	if code, _, failures := ran(t, "", "console", "--local-port", "70000"); code != cli.CodeFailed ||
		!strings.Contains(failures, "--local-port is 70000: it must be a port, or 0") {
		t.Errorf("exit %d, %q", code, failures)
	}
}
