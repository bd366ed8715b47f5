package protection

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

const (
	home = "joiner-webhook" // the webhook's namespace, service account and user
	// lifetime is the shortest that joiner-webhook takes. It renews after 40 s, and serves the next certificate 5 s
	// later.
	lifetime = time.Minute
)

// two replicas have certificates of their own and the rights of the chart. The configuration trusts
// nobody when they start. We send requests to the API server all the time, while they renew and until the first
// authority has expired. Each request is answered, and none is refused for its path, which is renewed too. Each of our
// own connections with the published bundle is accepted.
func TestOwnCertificatesAreRenewedUnderRequests(t *testing.T) {
	f := begin(t)
	f.grantCertificates(t)
	ports := []int{shared.Port(t), shared.Port(t)}
	f.trustNobody(t, ports)
	var replicas []*rig.Controller
	for _, port := range ports {
		replicas = append(replicas, f.serveOwn(t, port))
	}
	before := f.path(t)
	if len(before) < len("/node-scheduling/")+43 { // 32 bytes
		t.Errorf("the API server calls at %q", before)
	}
	first := f.handshake(t, ports[0])
	f.Eventually(t, "deny ControlPlane/NodeName", "alice create pod app/- node=cp1 dry-run")
	asked, seen := 0, map[string]bool{}
	for end := first.NotAfter.Add(5 * time.Second); time.Now().Before(end); time.Sleep(placingtest.Poll) {
		f.Expect(t, "deny ControlPlane/NodeName", "alice create pod app/- node=cp1 dry-run")
		for _, port := range ports {
			seen[f.handshake(t, port).SerialNumber.String()] = true
		}
		if asked++; t.Failed() {
			return
		}
	}
	if len(seen) < 2 || !seen[first.SerialNumber.String()] || asked < 100 {
		t.Errorf("%d requests saw %d certificates, want at least 100 and the first two", asked, len(seen))
	}
	if path := f.path(t); path == before || len(path) != len(before) {
		t.Errorf("the path is %q after the renewal, and was %q", path, before)
	}
	for _, replica := range replicas {
		if seen := metricsOf(t, replica); !strings.Contains(seen, "joiner_webhook_rejected_total 0\n") {
			t.Error("a replica refused the API server")
		}
	}
	bundle := f.configuration(t).Webhooks[0].ClientConfig.CABundle
	if first.Issuer.CommonName == "" || len(bundle) == 0 || trusts(bundle, first) {
		t.Errorf("the authority %q is still published after its end", first.Issuer.CommonName)
	}
	t.Logf("%d requests to the API server over a renewal of two replicas", asked)
}

func trusts(bundle []byte, certificate *x509.Certificate) bool {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	_, err := certificate.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: certificate.NotBefore})
	return err == nil
}

// grantCertificates gives the webhook's user the rights that the chart gives its service account for its certificates.
func (f guarded) grantCertificates(t *testing.T) {
	t.Helper()
	inside, everywhere, err := charts.WebhookCertificateRules()
	if err != nil {
		t.Fatal(err)
	}
	space := &corev1.Namespace{}
	space.Name = home
	role, cluster := &rbacv1.Role{}, &rbacv1.ClusterRole{}
	role.Namespace, role.Name, cluster.Name = home, home, home+"-trust"
	if err := yaml.UnmarshalStrict(inside, &role.Rules); err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(everywhere, &cluster.Rules); err != nil {
		t.Fatal(err)
	}
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: home}}
	binding := &rbacv1.RoleBinding{Subjects: subjects, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
		Kind: "Role", Name: role.Name}}
	binding.Namespace, binding.Name = home, home
	clusterBinding := &rbacv1.ClusterRoleBinding{Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: cluster.Name}}
	clusterBinding.Name = cluster.Name
	for _, object := range []client.Object{space, role, binding, cluster, clusterBinding} {
		if err := f.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func (f guarded) configuration(t *testing.T) *admissionv1.ValidatingWebhookConfiguration {
	t.Helper()
	found, err := f.WebhookConfiguration(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// trustNobody points each webhook of the configuration at another of the ports, without a bundle. The end of the test
// undoes it.
func (f guarded) trustNobody(t *testing.T, ports []int) {
	t.Helper()
	f.point(t, func(i int) admissionv1.WebhookClientConfig {
		url := fmt.Sprintf("https://127.0.0.1:%d/node-scheduling", ports[i%len(ports)])
		return admissionv1.WebhookClientConfig{URL: &url}
	})
}

// serveOwn starts a replica with certificates of its own, and waits until it is ready.
func (f guarded) serveOwn(t *testing.T, port int) *rig.Controller {
	t.Helper()
	replica, err := f.Run(t.Context(), rig.Program{Name: fmt.Sprintf("%s-%d", home, port), User: home,
		Path: f.Binary(), Command: func(at rig.Place) ([]string, []string) {
			return []string{
				"--kubeconfig", at.Kubeconfig, "--policy-file", f.PolicyFile(), "--bind-address",
				fmt.Sprintf("127.0.0.1:%d", port),
				"--namespace", home, "--cert-secret-name", "joiner-webhook-certificates", "--service-name", home,
				"--cert-hosts", "127.0.0.1",
				"--webhook-configuration-name", placingtest.Configuration, "--cert-lifetime", lifetime.String(),
				"--metrics-bind-address", fmt.Sprintf("127.0.0.1:%d", at.MetricsPort), "--health-probe-bind-address",
				fmt.Sprintf("127.0.0.1:%d", at.HealthPort),
			}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := replica.Stop(); err != nil {
			t.Error(err)
		}
	})
	return replica
}

// path returns the path at which the API server calls the first webhook of the configuration.
func (f guarded) path(t *testing.T) string {
	t.Helper()
	at, err := url.Parse(*f.configuration(t).Webhooks[0].ClientConfig.URL)
	if err != nil {
		t.Fatal(err)
	}
	return at.Path
}

// handshake connects to a replica like an API server that has just read the configuration, and returns the
// certificate.
func (f guarded) handshake(t *testing.T, port int) *x509.Certificate {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(f.configuration(t).Webhooks[1].ClientConfig.CABundle)
	connection, err := tls.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port),
		&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: "joiner-webhook.joiner-webhook.svc"})
	if err != nil {
		t.Fatalf("the replica at port %d is not trusted: %v", port, err)
	}
	defer connection.Close()
	return connection.ConnectionState().PeerCertificates[0]
}
