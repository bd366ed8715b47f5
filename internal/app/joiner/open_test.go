package joiner

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// U-13, V-20: probes are answered while the caches are filled. The process lives, says that it is not ready, and ends
// when it is asked to.
func TestProbesAreAnsweredBeforeTheCaches(t *testing.T) {
	t.Parallel()
	listable := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/api":
			_, _ = io.WriteString(w, `{"kind":"APIVersions","versions":["v1"]}`)
		case r.URL.Path == "/apis":
			_, _ = io.WriteString(w, `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		case r.URL.Path == "/api/v1":
			_, _ = io.WriteString(w,
				`{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"nodes","kind":"Node",`+
					`"namespaced":false,"verbs":["list","watch"]},{"name":"configmaps","kind":"ConfigMap",`+
					`"namespaced":true,"verbs":["list"]}]}`)
		case r.URL.Query().Get("sendInitialEvents") != "":
			w.WriteHeader(http.StatusBadRequest) // an older API server: the client lists instead
		case r.URL.Query().Get("watch") != "":
			<-r.Context().Done()
		default:
			<-listable
			_, _ = io.WriteString(w,
				`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
		}
	}))
	defer slow.Close()
	config := DefaultConfig()
	config.DisableLeaderElection, config.REST = true, &rest.Config{Host: slow.URL}
	config.MetricsPort = 0
	config.HealthProbePort, _ = freePort(t)
	servers, err := openPorts(config)
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + servers.Health().String()
	ctx, end := context.WithCancel(t.Context())
	mgr, err := newManager(ctx, config, serve.NewPrecedence(200, 300), nil,
		funcr.New(func(string, string) {}, funcr.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := mgr.GetCache().GetInformer(ctx, &corev1.Node{}, cache.BlockUntilSynced(false))
	if err != nil {
		t.Fatal(err)
	}
	if err := servers.Add(mgr, nil, serve.HealthHandler(nodes.HasSynced)); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- serve.RunManager(ctx, mgr, 0) }()
	client := http.Client{Timeout: 10 * time.Second}
	for path, want := range map[string]int{"/healthz": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		response, err := client.Get(url + path)
		if err != nil {
			t.Error(err)
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, response.StatusCode, want)
		}
	}
	end()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	close(listable) // what was left behind ends too
}
