package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

// asked is as whom a server was asked.
type asked struct{ token, as, group string }

// seen is who asked a server last.
type seen struct {
	mutex sync.Mutex
	last  asked
}

// take returns that, and forgets it.
func (s *seen) take() asked {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	last := s.last
	s.last = asked{}
	return last
}

// server is an API server in which nothing is.
func server(t *testing.T) (*httptest.Server, *seen) {
	t.Helper()
	s := &seen{}
	listening := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		s.last = asked{token: r.Header.Get("Authorization"), as: r.Header.Get("Impersonate-User"),
			group: r.Header.Get("Impersonate-Group")}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[]}`)
	}))
	t.Cleanup(listening.Close)
	return listening, s
}

// TestU13_TheConnectionReachesTheServer: the flags that kubectl has choose the cluster, the identity and the
// namespace.
func TestU13_TheConnectionReachesTheServer(t *testing.T) {
	t.Parallel()
	one, first := server(t)
	two, second := server(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: one
clusters: [{name: one, cluster: {server: %q, insecure-skip-tls-verify: true}},
  {name: two, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: u, user: {token: fromfile}}, {name: v, user: {token: another}}]
contexts:
- {name: one, context: {cluster: one, user: u}}
- {name: two, context: {cluster: two, user: u, namespace: team-a}}
`, one.URL, two.URL)
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args      []string
		server    *seen
		want      asked
		namespace string
	}{
		"the current context": {nil, first, asked{token: "Bearer fromfile"}, "default"},
		"another context":     {[]string{"--context", "two"}, second, asked{token: "Bearer fromfile"}, "team-a"},
		"another cluster":     {[]string{"--cluster", "two"}, second, asked{token: "Bearer fromfile"}, "default"},
		"another user":        {[]string{"--user", "v"}, first, asked{token: "Bearer another"}, "default"},
		"a token":             {[]string{"--token", "t"}, first, asked{token: "Bearer t"}, "default"},
		"a server":            {[]string{"--server", two.URL}, second, asked{token: "Bearer fromfile"}, "default"},
		"somebody else": {[]string{"--as", "a", "--as-group", "g"}, first,
			asked{token: "Bearer fromfile", as: "a", group: "g"}, "default"},
	} {
		var out, failures strings.Builder
		args := append([]string{"explain", "pod", "web", "--kubeconfig", path}, c.args...)
		code := run(t.Context(), "", args, strings.NewReader(""), &out, &failures)
		got, other := c.server.take(), first.take()
		if c.server == first {
			other = second.take()
		}
		if code != cli.CodeFailed || failures.String() != "joinerctl: there is no pod web in namespace "+c.namespace+
			"\n" || got != c.want || other != (asked{}) {
			t.Errorf("%s: exit %d, %q, asked %+v, the other %+v", name, code, failures.String(), got, other)
		}
	}
}

// TestU36_NoUsableKubeconfig: what is wrong with a kubeconfig, or a flag about it, is one line.
func TestU36_NoUsableKubeconfig(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		`context "prod" does not exist`: {"--kubeconfig", path, "--context", "prod"},
		"nowhere":                       {"--kubeconfig", "nowhere"},
		"Timeout must be": {"--kubeconfig", path, "--server", "http://localhost:1", "--request-timeout",
			"soon"},
	} {
		var failures strings.Builder
		code := run(t.Context(), "", append([]string{"status"}, args...), strings.NewReader(""), io.Discard, &failures)
		if said := failures.String(); code != cli.CodeFailed ||
			!strings.HasPrefix(said, "joinerctl: no usable kubeconfig: ") ||
			!strings.Contains(said, want) || strings.Count(said, "\n") != 1 {
			t.Errorf("%v: exit %d, %s", args, code, said)
		}
	}
}
