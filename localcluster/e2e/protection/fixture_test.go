package protection

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/api/crd"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

const (
	// webhookEnv is the environment variable in which tests expect the path of the built joiner-webhook binary.
	webhookEnv = "JOINER_WEBHOOK_BINARY"
	page       = "../../../docs/control-plane-protection.md"
)

// fixture is a guarded cluster.
type fixture struct {
	*rig.Rig
	webhook *rig.Controller
	binary  string // of the webhook
	port    int    // that the API server calls
}

func fixtureFromEnv() (*fixture, error) {
	controlPlane, err := cluster.BinaryFromEnv()
	if err != nil {
		return nil, err
	}
	binary := os.Getenv(webhookEnv)
	if binary == "" {
		return nil, fmt.Errorf("%s is not set: run `make bin/joiner-webhook` and set it to the absolute path of that file", webhookEnv)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	r, err := rig.Start(ctx, rig.Options{
		ControlPlane: controlPlane, Components: []cluster.Component{cluster.Etcd, cluster.APIServer},
		Audit: true, WithoutJoiner: true, WithoutManifests: true,
	})
	if err != nil {
		return nil, err
	}
	f := &fixture{Rig: r}
	if err := f.prepare(ctx, binary); err != nil {
		return nil, errors.Join(err, f.stop())
	}
	started <- f
	return f, nil
}

func (f *fixture) stop() error {
	var failed error
	if f.webhook != nil {
		failed = f.webhook.Stop()
	}
	return errors.Join(failed, f.Cluster.Stop())
}

// prepare makes the world of the scripts, starts the webhook and puts its configuration into force.
func (f *fixture) prepare(ctx context.Context, binary string) error {
	manifests, err := crd.OpenShift()
	if err != nil {
		return err
	}
	all := placing.World
	for _, namespace := range placing.Namespaces() {
		all += fmt.Sprintf("---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", namespace)
	}
	for _, manifest := range manifests {
		all += string(manifest)
	}
	if err := f.Apply(ctx, all); err != nil {
		return err
	}
	if _, err := f.Kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"); err != nil {
		return err
	}
	accounts := ""
	for _, namespace := range placing.Namespaces() { // no controller makes them here
		accounts += fmt.Sprintf("---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: default, namespace: %s}\n", namespace)
	}
	rights, err := manifestsOf("ClusterRole")
	if err != nil {
		return err
	}
	rights = strings.ReplaceAll(rights, "kind: ServiceAccount, namespace: joiner-webhook, name: joiner-webhook", "kind: User, name: joiner-webhook")
	if err := f.Apply(ctx, accounts+"---\n"+rights); err != nil {
		return err
	}
	return f.guard(ctx, binary)
}

// guard starts the webhook and tells the API server of it, by the manifest of the user's page.
func (f *fixture) guard(ctx context.Context, binary string) error {
	dir := filepath.Dir(f.Cluster.AdminKubeconfig())
	certificate, key, err := serving()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"webhook.crt": certificate, "webhook.key": key, "policy.yaml": []byte(placing.Policy)} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return err
		}
	}
	f.binary, f.port = binary, freePort()
	if err := f.serve(ctx); err != nil {
		return err
	}
	text, err := manifestsOf("ValidatingWebhookConfiguration")
	if err != nil {
		return err
	}
	configuration := &admissionv1.ValidatingWebhookConfiguration{}
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(text, "caBundle: ...", "")), configuration); err != nil {
		return err
	}
	url := fmt.Sprintf("https://127.0.0.1:%d/node-scheduling", f.port)
	for i := range configuration.Webhooks {
		configuration.Webhooks[i].ClientConfig = admissionv1.WebhookClientConfig{URL: &url, CABundle: certificate}
	}
	// What the page says of the override: annotations can be written through the status too.
	configuration.Webhooks[0].Rules = append(configuration.Webhooks[0].Rules, admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods/status"}},
	})
	return f.Client.Create(ctx, configuration)
}

// serve starts the webhook at its port, and waits until it is ready.
func (f *fixture) serve(ctx context.Context) (err error) {
	in := func(name string) string { return filepath.Join(filepath.Dir(f.Cluster.AdminKubeconfig()), name) }
	f.webhook, err = f.Run(ctx, rig.Program{Name: "joiner-webhook", Path: f.binary, Command: func(at rig.Place) ([]string, []string) {
		return []string{
			"--kubeconfig", at.Kubeconfig, "--policy-file", in("policy.yaml"), "--bind-address", fmt.Sprintf("127.0.0.1:%d", f.port),
			"--tls-cert-file", in("webhook.crt"), "--tls-key-file", in("webhook.key"),
			"--metrics-bind-address", fmt.Sprintf("127.0.0.1:%d", at.MetricsPort), "--health-probe-bind-address", fmt.Sprintf("127.0.0.1:%d", at.HealthPort),
		}, nil
	}})
	return err
}

// manifestsOf returns the block of the user's page that starts with this kind.
func manifestsOf(kind string) (string, error) {
	content, err := os.ReadFile(page)
	if err != nil {
		return "", err
	}
	for block := range strings.SplitSeq(string(content), "```yaml\n") {
		block, _, _ = strings.Cut(block, "```")
		if lines := strings.SplitN(block, "\n", 3); len(lines) == 3 && lines[1] == "kind: "+kind && !strings.Contains(block, "name: control-plane-placement") {
			return block, nil
		}
	}
	return "", fmt.Errorf("%s has no block of kind %s", page, kind)
}

func freePort() int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0 // the webhook then refuses to start, and says so
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// serving makes a certificate for 127.0.0.1 that is its own authority, both in PEM.
func serving() (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "joiner-webhook"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), nil
}
