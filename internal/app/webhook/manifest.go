package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
)

// Manifest configures what to print for a kube-apiserver that reads its webhooks from files (Kubernetes 1.36, feature
// gate ManifestBasedAdmissionControlConfig). Its fields are named like their flags.
type Manifest struct {
	PrintManifestURL    string // where the API server calls joiner-webhook; "" prints nothing
	PrintManifestCAFile string // the CA of its certificate

	// PrintAutomaticPolicies instead prints what an API server needs for emergencyOverride Automatic. These are
	// objects for its API: files cannot hold policies that look at nodes.
	PrintAutomaticPolicies bool
}

// staticSuffix ends the names of configurations in files. kube-apiserver refuses other names in files, and refuses
// these names in its API.
const staticSuffix = ".static.k8s.io"

// Print writes the chart's ValidatingWebhookConfiguration for this webhook, with a URL: kube-apiserver accepts no
// Service in a file. The webhook's own namespace is exempt, as in the cluster. An error names the wrong flag.
func (m Manifest) Print(config Config, out io.Writer) error {
	bundle, err := m.bundle()
	if err != nil {
		return err
	}
	policy, err := config.readPolicy()
	if err != nil {
		return err
	}
	at, err := m.url(config)
	if err != nil {
		return err
	}
	override := v1alpha1.OverrideDisable
	if policy.EmergencyOverride != "" {
		override = policy.EmergencyOverride
	}
	rendered, err := charts.WebhookConfiguration(config.Namespace, string(override))
	if err != nil {
		return fmt.Errorf("the chart's configuration: %w", err)
	}
	object := &admissionv1.ValidatingWebhookConfiguration{}
	if err := yaml.UnmarshalStrict(rendered, object); err != nil {
		return fmt.Errorf("the chart's configuration: %w", err)
	}
	object.Name += staticSuffix
	for i := range object.Webhooks {
		object.Webhooks[i].ClientConfig = admissionv1.WebhookClientConfig{URL: &at, CABundle: bundle}
		if config.Namespace == "" {
			object.Webhooks[i].NamespaceSelector = nil
		}
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	_, err = out.Write(text)
	return err
}

// PrintAutomatic writes the chart's MutatingAdmissionPolicies for the policy of the file, with their bindings.
func (m Manifest) PrintAutomatic(config Config, out io.Writer) error {
	policy, err := config.readPolicy()
	if err != nil {
		return err
	}
	if policy.EmergencyOverride != v1alpha1.OverrideAutomatic {
		return fmt.Errorf("--print-automatic-policies: emergencyOverride of --policy-file is %q: want %s",
			policy.EmergencyOverride, v1alpha1.OverrideAutomatic)
	}
	content, err := json.Marshal(policy)
	if err != nil {
		return err
	}
	values := map[string]any{}
	if err := json.Unmarshal(content, &values); err != nil {
		return err
	}
	text, err := charts.AutomaticPolicies(config.Namespace, values)
	if err != nil {
		return fmt.Errorf("the chart's policies: %w", err)
	}
	_, err = out.Write(bytes.TrimLeft(text, "\n"))
	return err
}

// url returns where the API server calls: with --authentication=Path it ends in the first token of --path-token-file.
func (m Manifest) url(config Config) (string, error) {
	if config.Authentication != ByPath {
		return m.PrintManifestURL, nil
	}
	tokens, err := readTokens(config.PathTokenFile)
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(m.PrintManifestURL, "/") + "/" + tokens[0], nil
}

// bundle checks the flags, and returns the CA bundle that they name.
func (m Manifest) bundle() ([]byte, error) {
	var faults []error
	if at, err := url.Parse(m.PrintManifestURL); err != nil || at.Scheme != "https" || at.Host == "" ||
		at.RawQuery != "" || at.Fragment != "" {
		faults = append(faults, fmt.Errorf("--print-manifest-url is %q: want https://HOST:PORT%s", m.PrintManifestURL,
			Path))
	}
	bundle, err := os.ReadFile(m.PrintManifestCAFile)
	if err == nil {
		_, err = cert.ParseCertsPEM(bundle)
	}
	if err != nil {
		faults = append(faults, fmt.Errorf("--print-manifest-ca-file: %w", err))
	}
	return bundle, errors.Join(faults...)
}
