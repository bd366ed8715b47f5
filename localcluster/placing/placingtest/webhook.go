package placingtest

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
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

const (
	// WebhookEnv is the environment variable in which tests expect the path of the built joiner-webhook binary.
	WebhookEnv = "JOINER_WEBHOOK_BINARY"
	// Configuration is the name of the ValidatingWebhookConfiguration.
	Configuration = "node-scheduling-policy"
	// Token is the last element of the path by which the API server calls.
	Token = "the-path-of-tests-abcdefghijklmnopqrstuvwxyz"
	// page is the user's page, from the folder of a package in localcluster/e2e. Its manifests are tested.
	page = "../../../docs/control-plane-protection.md"
)

func webhookFromEnv() (string, error) { return pathFromEnv(WebhookEnv) }

// guard starts the webhook with the rights of the user's page, and registers it at the API server with the page's
// manifest.
func (g *Guarded) guard(ctx context.Context, options Options) error {
	rights, err := manifestsOf("ClusterRole")
	if err != nil {
		return err
	}
	rights = strings.ReplaceAll(rights, "kind: ServiceAccount, namespace: joiner-webhook, name: joiner-webhook",
		"kind: User, name: joiner-webhook")
	if err := g.Apply(ctx, rights); err != nil {
		return err
	}
	if options.FromFiles != "" {
		return g.StartWebhook(ctx)
	}
	certificate, err := g.writeFiles(options.Policy)
	if err != nil {
		return err
	}
	if err := g.StartWebhook(ctx); err != nil {
		return err
	}
	if err := g.automate(ctx, options.Policy); err != nil {
		return err
	}
	configuration, err := chartConfiguration()
	if err != nil {
		return err
	}
	for i := range configuration.Webhooks {
		url := g.url() + "/" + Token
		configuration.Webhooks[i].ClientConfig = admissionv1.WebhookClientConfig{URL: &url, CABundle: certificate}
	}
	return g.Client.Create(ctx, configuration)
}

// automate applies the policies that write the annotation of the override, as joiner-webhook prints them, if the
// policy asks for that.
func (g *Guarded) automate(ctx context.Context, policy string) error {
	config, err := evaluator.Decode([]byte(policy))
	if err != nil || config.EmergencyOverride != v1alpha1.OverrideAutomatic {
		return err
	}
	command := exec.CommandContext(ctx, g.binary, "--policy-file", g.PolicyFile(), "--namespace", "joiner-webhook",
		"--print-automatic-policies")
	printed, err := command.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	return g.Apply(ctx, string(printed))
}

// writeFiles chooses the port and writes the files that the webhook reads. It returns the certificate.
func (g *Guarded) writeFiles(policy string) ([]byte, error) {
	certificate, key, err := ServingCertificate()
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{"webhook.crt": certificate, "webhook.key": key,
		"policy.yaml": []byte(policy), "token": []byte(Token + "\n")} {
		if err := os.WriteFile(g.file(name), content, 0o600); err != nil {
			return nil, err
		}
	}
	if g.reserved, err = cluster.Reserve(1); err != nil {
		return nil, err
	}
	g.port = g.reserved.Ports[0]
	return certificate, nil
}

// admission tells an API server where the configuration files of webhooks are; see the user's page.
const admission = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionWebhook
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    staticManifestsDir: %s
`

// writeManifest writes the configuration that joiner-webhook prints, and returns the API server's flags to read it.
func (g *Guarded) writeManifest(ctx context.Context, options Options) ([]string, error) {
	g.files = options.FromFiles
	if _, err := g.writeFiles(options.Policy); err != nil {
		return nil, err
	}
	manifests, config := g.file("webhooks"), g.file("admission.yaml")
	if err := os.Mkdir(manifests, 0o700); err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, g.binary, "--policy-file", g.PolicyFile(), "--print-manifest-url", g.url(),
		"--print-manifest-ca-file", g.file("webhook.crt"), "--path-token-file", g.file("token"))
	printed, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", command, err)
	}
	err = errors.Join(os.WriteFile(filepath.Join(manifests, "node-scheduling-policy.yaml"), printed, 0o600),
		os.WriteFile(config, fmt.Appendf(nil, admission, manifests), 0o600))
	return []string{"--feature-gates=ManifestBasedAdmissionControlConfig=true", "--admission-control-config-file=" +
		config}, err
}

func (g *Guarded) url() string { return fmt.Sprintf("https://127.0.0.1:%d/node-scheduling", g.port) }

// chartConfiguration returns the chart's configuration for a policy with the emergency override. A test of the charts
// compares it with the user's page.
func chartConfiguration() (*admissionv1.ValidatingWebhookConfiguration, error) {
	text, err := charts.WebhookConfiguration("joiner-webhook", "Enable")
	if err != nil {
		return nil, err
	}
	configuration := &admissionv1.ValidatingWebhookConfiguration{}
	return configuration, yaml.UnmarshalStrict(text, configuration)
}

// StartWebhook starts the webhook at its port, and waits until it is ready.
func (g *Guarded) StartWebhook(ctx context.Context) (err error) {
	if g.webhook != nil {
		return errors.New("joiner-webhook runs already")
	}
	g.webhook, err = g.Run(ctx, rig.Program{Name: "joiner-webhook", Path: g.binary,
		Command: func(at rig.Place) ([]string, []string) {
			return []string{
				"--kubeconfig", at.Kubeconfig, "--policy-file", g.PolicyFile(), "--bind-address",
				fmt.Sprintf("127.0.0.1:%d", g.port),
				"--tls-cert-file", g.file("webhook.crt"), "--tls-key-file", g.file("webhook.key"), "--path-token-file",
				g.file("token"), "--metrics-bind-address", fmt.Sprintf("127.0.0.1:%d", at.MetricsPort),
				"--health-probe-bind-address", fmt.Sprintf("127.0.0.1:%d", at.HealthPort),
			}, nil
		}})
	return err
}

// KillWebhook ends the webhook as a crash would.
func (g *Guarded) KillWebhook() error {
	ended := g.webhook
	if ended == nil {
		return errors.New("joiner-webhook does not run")
	}
	g.webhook = nil
	return ended.Kill()
}

// PolicyFile returns the path of the policy file that the webhook reads at its start.
func (g *Guarded) PolicyFile() string { return g.file("policy.yaml") }

// Binary returns the path of joiner-webhook.
func (g *Guarded) Binary() string { return g.binary }

func (g *Guarded) file(name string) string {
	if g.files != "" {
		return filepath.Join(g.files, name)
	}
	return filepath.Join(filepath.Dir(g.Cluster.AdminKubeconfig()), name)
}

// Address returns where the webhook answers reviews, without the token.
func (g *Guarded) Address() string { return g.url() }

// Point sets where the API server calls each webhook of the configuration: webhook i is called as at(i) says.
func (g *Guarded) Point(ctx context.Context, at func(i int) admissionv1.WebhookClientConfig) error {
	object, err := g.WebhookConfiguration(ctx)
	if err != nil {
		return err
	}
	for i := range object.Webhooks {
		object.Webhooks[i].ClientConfig = at(i)
	}
	return g.Client.Update(ctx, object)
}

// WebhookConfiguration returns the API server's configuration of the webhook.
func (g *Guarded) WebhookConfiguration(ctx context.Context) (*admissionv1.ValidatingWebhookConfiguration, error) {
	object := &admissionv1.ValidatingWebhookConfiguration{}
	return object, g.Client.Get(ctx, types.NamespacedName{Name: Configuration}, object)
}

func (g *Guarded) webhookMetrics(ctx context.Context) (string, error) {
	if g.webhook == nil {
		return "", errors.New("joiner-webhook does not run")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("http://127.0.0.1:%d/metrics", g.webhook.MetricsPort), nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return string(content), err
}

// manifestsOf returns the block of the user's page that starts with this kind.
func manifestsOf(kind string) (string, error) {
	content, err := os.ReadFile(page)
	if err != nil {
		return "", err
	}
	for block := range strings.SplitSeq(string(content), "```yaml\n") {
		block, _, _ = strings.Cut(block, "```")
		if lines := strings.SplitN(block, "\n", 3); len(lines) == 3 && lines[1] == "kind: "+kind &&
			!strings.Contains(block, "name: control-plane-placement") {
			return block, nil
		}
	}
	return "", fmt.Errorf("%s has no block of kind %s", page, kind)
}

// ServingCertificate makes a certificate for 127.0.0.1 that is its own CA. Certificate and key are in PEM.
func ServingCertificate() (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "joiner-webhook"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth,
		},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), nil
}

// MetricsPort returns the loopback port of the webhook's metrics.
func (g *Guarded) MetricsPort() int { return g.webhook.MetricsPort }
