package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/joiner-autoscaler/joiner/internal/cli"
	"github.com/joiner-autoscaler/joiner/internal/dump"
	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
)

const leases = `{"apiVersion":"coordination.k8s.io/v1","kind":"LeaseList","metadata":{},"items":[{"apiVersion":` +
	`"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"karpenter-leader-election","namespace":"joiner"},` +
	`"spec":{"holderIdentity":"joiner-a_1","leaseDurationSeconds":15,"renewTime":"2999-01-01T00:00:00.000000Z"}}]}`

// portforwarding is an API server with a lease, which forwards ports of the leader's pod to an address, or may not.
func portforwarding(t *testing.T, to string, allowed bool) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /apis/coordination.k8s.io/v1/leases", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, leases)
	})
	mux.HandleFunc("POST /api/v1/namespaces/joiner/pods/joiner-a/portforward", func(w http.ResponseWriter,
		r *http.Request) {
		if !allowed {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w,
				`{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","code":403,`+
					`"message":"pods \"joiner-a\" is forbidden: User \"u\" cannot create resource \"pods/portforward\""}`)
			return
		}
		if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
			t.Error(err)
			return
		}
		streams := make(chan httpstream.Stream, 4)
		connection := spdy.NewResponseUpgrader().UpgradeResponse(w, r,
			func(s httpstream.Stream, _ <-chan struct{}) error {
				streams <- s
				return nil
			})
		defer connection.Close()
		for {
			select {
			case s := <-streams:
				if s.Headers().Get("port") != "8082" {
					t.Errorf("port %s is asked for", s.Headers().Get("port"))
				}
				if s.Headers().Get("streamType") == "data" {
					go pipe(t, s, to)
				}
			case <-connection.CloseChan():
				return
			}
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: one\n"+
		"clusters: [{name: one, cluster: {server: %q}}]\n"+
		"users: [{name: u, user: {token: t}}]\ncontexts: [{name: one, context: {cluster: one, user: u}}]\n",
		server.URL)
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// pipe carries a stream to an address and back.
func pipe(t *testing.T, s httpstream.Stream, to string) {
	back, err := net.Dial("tcp", to)
	if err != nil {
		t.Error(err)
		return
	}
	defer back.Close()
	go func() { _, _ = io.Copy(back, s) }()
	_, _ = io.Copy(s, back)
	_ = s.Close()
}

// TestU41_ThePortIsForwarded: through an API server, to the loopback of the pod that leads, with the caller's rights.
func TestU41_ThePortIsForwarded(t *testing.T) {
	t.Parallel()
	s, err := enginetest.Parse("type m cpu=2 mem=8Gi od=0.1\npool p\npod web-0..2 cpu=1500m")
	if err != nil {
		t.Fatal(err)
	}
	made, err := dump.Make(s, engine.Terms{}, dump.AskProvision)
	if err != nil {
		t.Fatal(err)
	}
	made.Header = dump.Header{Program: "joiner", Source: dump.FromController, Redaction: dump.RedactNone}
	pod := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/joiner/v1/dump" {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		if err := dump.Write(w, made); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(pod.Close)
	path := portforwarding(t, strings.TrimPrefix(pod.URL, "http://"), true)
	var out, failures bytes.Buffer
	code := run(t.Context(), "", []string{"dump", "--kubeconfig", path, "--redact", "none"}, strings.NewReader(""),
		&out, &failures)
	if code != cli.CodeFine || failures.Len() > 0 {
		t.Fatalf("exit %d, %s", code, failures.String())
	}
	read, _, err := dump.Read(&out, dump.Options{Strict: true})
	if err != nil || len(read.Plans) != 1 || len(read.Plans[0].Plan.Launches) != 3 {
		t.Errorf("%v, %+v", err, read.Plans)
	}
}

// TestU19_WithoutTheRightToForward: the right is named, and what works without it.
func TestU19_WithoutTheRightToForward(t *testing.T) {
	t.Parallel()
	path := portforwarding(t, "", false)
	var out, failures bytes.Buffer
	code := run(t.Context(), "", []string{"dump", "--kubeconfig", path}, strings.NewReader(""), &out, &failures)
	if code != cli.CodeFailed || out.Len() > 0 || !strings.Contains(failures.String(), "pod joiner/joiner-a: it "+
		"cannot be asked, for want of the right to create pods/portforward in namespace joiner") ||
		!strings.Contains(failures.String(), "--rebuild") {
		t.Errorf("exit %d, %s", code, failures.String())
	}
}
