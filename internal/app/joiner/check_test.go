package joiner

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// apiServer answers /version and the resource lists that a test gives it.
func apiServer(t *testing.T, status int, served map[string][]string) *rest.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if status != http.StatusOK {
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: int32(status),
				Reason: metav1.StatusReason(http.StatusText(status))})
			return
		}
		groupVersion := strings.TrimPrefix(r.URL.Path, "/apis/")
		if r.URL.Path == "/version" {
			_, _ = w.Write([]byte("{}"))
			return
		}
		names, found := served[groupVersion]
		if !found {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		list := metav1.APIResourceList{GroupVersion: groupVersion}
		for _, name := range names {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
		}
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestAClusterWithOurKindsIsFine(t *testing.T) {
	t.Parallel()
	config := apiServer(t, http.StatusOK, map[string][]string{
		"karpenter.sh/v1": {"nodepools", "nodeclaims"}, "karpenter.sh/v1alpha1": {"nodeoverlays"},
		"karpenter.kwok.sh/v1alpha1": {"kwoknodeclasses"},
	})
	if found, err := checkCluster(t.Context(), config, Plugins(), false); err != nil || len(found) != 1 {
		t.Fatalf("%v plug-ins, error %v: want one", found, err)
	}
}

// U-13: missing CRDs are named, with what to do.
func TestMissingKindsAreNamed(t *testing.T) {
	t.Parallel()
	_, err := checkCluster(t.Context(),
		apiServer(t, http.StatusOK, map[string][]string{"karpenter.sh/v1": {"nodepools"}}), Plugins(), false)
	want(t, err,
		"nodeclaims.karpenter.sh, nodeoverlays.karpenter.sh, ec2nodeclasses.karpenter.k8s.aws or kwoknodeclasses.karpenter.kwok.sh",
		"kubectl apply -f api/crd")
	if strings.Contains(err.Error(), "nodepools") {
		t.Errorf("error %q names a kind that is there", err)
	}
}

func TestAServerThatDoesNotAnswerIsNamed(t *testing.T) {
	t.Parallel()
	const address = "http://127.0.0.1:1" // nobody has served there for decades
	_, err := checkCluster(t.Context(), &rest.Config{Host: address}, nil, false)
	want(t, err, address, "cannot be reached", "--kubeconfig")
}

func TestRefusedCredentialsAreSaid(t *testing.T) {
	t.Parallel()
	_, err := checkCluster(t.Context(), apiServer(t, http.StatusUnauthorized, nil), nil, false)
	want(t, err, "does not accept the credentials", "--kubeconfig")
}

func TestATakenPortNamesItsFlag(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // the test is over
	config := DefaultConfig()
	config.MetricsPort, config.HealthProbePort = 0, taken.Addr().(*net.TCPAddr).Port
	_, err = openPorts(config)
	want(t, err, "--health-probe-port", "address already in use")
}

// U-13: each wrong setting is a line with its flag, the value and what is allowed.
func TestWrongSettingsAreNamed(t *testing.T) {
	t.Parallel()
	if err := DefaultConfig().Validate(); err != nil {
		t.Fatalf("the defaults are refused: %v", err)
	}
	c := DefaultConfig()
	c.MetricsPort, c.KubeClientQPS, c.KubeClientBurst = 70000, 0, -1
	c.LaunchTimeout, c.InitializationTimeout = 0, -time.Second
	c.LeaderElectionName, c.SystemNamespace = "", ""
	err := c.Validate()
	want(t, err, "--metrics-port is 70000", "--kube-client-qps is 0", "--kube-client-burst is -1",
		"--launch-timeout is 0s", "--initialization-timeout is -1s", "--leader-election-name", "--system-namespace")
	c = DefaultConfig()
	c.HealthProbePort = c.MetricsPort
	want(t, c.Validate(), "both 8080")
	c = DefaultConfig()
	c.ReadPort = c.MetricsPort
	want(t, c.Validate(), "--read-port is 8080, as --metrics-port or --health-probe-port is")
	c.ReadPort = -1
	want(t, c.Validate(), "--read-port is -1")
}

func want(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that says %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q, want it to say %q", err, part)
		}
	}
}
