package e2e

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// roundsEnv names the variable with the rounds of scale-up and scale-down in the test of the invariant.
const roundsEnv = "JOINER_LIMIT_ROUNDS"

func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv(roundsEnv)
	if text == "" {
		return 10
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: want a number of rounds from 1", roundsEnv, text)
	}
	return n
}

// claimWatch counts NodeClaims by every event that the API server sends, so that no moment is missed.
type claimWatch struct {
	mu           sync.Mutex
	names        map[string]bool
	most, events int
	changed      chan struct{} // closed at the next change
}

// watchClaims counts the claims that a selector picks, "" for all, from now until the test ends.
func (r *testRig) watchClaims(selector string) *claimWatch {
	r.t.Helper()
	w := &claimWatch{names: map[string]bool{}, changed: make(chan struct{})}
	r.follow(claimResource, selector, func(kind watch.EventType, claim *unstructured.Unstructured) {
		w.take(kind, claim.GetName())
	})
	return w
}

func (w *claimWatch) take(kind watch.EventType, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch kind {
	case watch.Added:
		w.names[name] = true
	case watch.Deleted:
		delete(w.names, name)
	default:
		return
	}
	w.events++
	w.most = max(w.most, len(w.names))
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *claimWatch) max() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}

// until waits until the number of claims satisfies is, and reports whether it did in time.
func (w *claimWatch) until(ctx context.Context, within time.Duration, is func(n int) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		w.mu.Lock()
		n, changed := len(w.names), w.changed
		w.mu.Unlock()
		if is(n) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

// slow is a transport to the API server. Every request waits a while, some for long, and watches come late. So its
// user has an old picture and acts on it late.
type slow struct{ next http.RoundTripper }

func (s slow) RoundTrip(request *http.Request) (*http.Response, error) {
	delay := rand.N(300 * time.Millisecond)
	if rand.N(10) == 0 {
		delay = rand.N(3 * time.Second)
	}
	select {
	case <-request.Context().Done():
		return nil, request.Context().Err()
	case <-time.After(delay):
	}
	response, err := s.next.RoundTrip(request)
	if err == nil && request.URL.Query().Get("watch") != "" {
		response.Body = &late{response.Body}
	}
	return response, err
}

type late struct{ io.ReadCloser }

func (l *late) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	time.Sleep(rand.N(500 * time.Millisecond))
	return n, err
}

// joinerBehind starts a joiner, with leader election off, that reaches the API server through the transport that way
// returns. An error of that transport breaks the connection.
func (r *testRig) joinerBehind(binary string, way func(http.RoundTripper) http.RoundTripper, args ...string) {
	r.t.Helper()
	if _, err := r.Cluster.KubeconfigFor(cluster.Identity{Name: rig.User}); err != nil {
		r.t.Fatal(err)
	}
	config, err := r.Cluster.RESTConfig(rig.User)
	if err != nil {
		r.t.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		r.t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		r.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, proxy.FlushInterval = way(transport), -1
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := httptest.NewServer(proxy)
	r.t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	kubeconfig := filepath.Join(r.t.TempDir(), "behind.kubeconfig")
	content := fmt.Sprintf(`{apiVersion: v1, kind: Config, clusters: [{name: behind, cluster: {server: "%s"}}],
users: [{name: joiner, user: {}}], contexts: [{name: behind, context: {cluster: behind, user: joiner}}],
current-context: behind}`, server.URL)
	if err := os.WriteFile(kubeconfig, []byte(content), 0o600); err != nil {
		r.t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(r.t.TempDir(), "behind.log"))
	if err != nil {
		r.t.Fatal(err)
	}
	alone := []string{"--kubeconfig", kubeconfig, "--disable-leader-election", "--metrics-port=0",
		"--health-probe-port=0"}
	command := exec.Command(binary, append(alone, args...)...)
	command.Stdout, command.Stderr = log, log
	if err := r.Cluster.StartChild(command); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	r.t.Cleanup(func() {
		said := func() string {
			content, _ := os.ReadFile(log.Name())
			return string(content[max(0, len(content)-8000):])
		}
		select {
		case err := <-ended:
			r.t.Errorf("the joiner behind a proxy has ended by itself: %v\n%s", err, said())
		default:
			_ = command.Process.Kill()
			<-ended
			if r.t.Failed() {
				r.t.Logf("the end of the log of the joiner behind a proxy:\n%s", said())
			}
		}
	})
}

// L-14: two controllers both believe they lead, one of them with an old picture, while a hard-limited pool is scaled
// up and down. At every event of a watch, the count is within the limit, and it reaches the limit in every round.
func TestTwoControllersKeepTheHardLimit(t *testing.T) {
	const limit, pods = 5, 9
	quickly := []string{"--batch-idle-duration=100ms", "--batch-max-duration=1s"}
	var binary string
	r := newRig(t, func(o *rig.Options) { binary, o.Args = o.Joiner, quickly })
	r.apply(kwokPool("default", amd64Linux, quick+fmt.Sprintf("\nhardLimits: {nodes: %d}", limit)))
	r.apply(deployment("web", 0, "{cpu: '1'}",
		"topologySpreadConstraints:\n- {topologyKey: kubernetes.io/hostname, maxSkew: 1, minDomains: 9, "+
			"whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: web}}}"))
	r.joinerBehind(binary, func(next http.RoundTripper) http.RoundTripper { return slow{next} }, quickly...)
	watch := r.watchClaims("karpenter.sh/nodepool=default")
	start := time.Now()
	r.upAndDown(watch, limit, pods, "web")
	t.Logf("%d rounds in %s, %d claims came or went, at most %d at a time at a limit of %d",
		rounds(t), time.Since(start).Round(time.Second), watch.events, watch.max(), limit)
}

// upAndDown scales deployments up to pods and down again, round by round, each time at another stage of the changes
// before. The watch never has more claims than the limit, and as many in every round. In the end nothing is left.
func (r *testRig) upAndDown(watch *claimWatch, limit, pods int, deployments ...string) {
	t := r.t
	t.Helper()
	scale := func(replicas int) {
		r.run(append(append([]string{"scale", "deployment"}, deployments...),
			fmt.Sprintf("--replicas=%d", replicas))...)
	}
	reached := 0
	for round := range rounds(t) {
		scale(pods)
		// On a busy machine nodes go before a pod runs on them, since the deployment changes again at once. Then
		// launches are held back for a while (P-35).
		if watch.until(t.Context(), later, func(n int) bool { return n >= limit }) {
			reached++
		}
		left := rand.N(limit)
		time.Sleep(rand.N(time.Second)) // so that the next change comes at any stage of this one
		scale(0)
		watch.until(t.Context(), later, func(n int) bool { return n <= left })
		if most := watch.max(); most > limit {
			t.Fatalf("round %d: %d NodeClaims at a limit of %d", round, most, limit)
		}
	}
	r.nothingLeft(later)
	if reached < rounds(t) {
		t.Errorf("the limit was reached in %d of %d rounds", reached, rounds(t))
	}
}
