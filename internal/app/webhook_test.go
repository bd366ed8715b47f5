package app

import (
	"strings"
	"testing"
)

func TestWebhookConfigNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	config := DefaultWebhookConfig()
	config.BindAddress, config.Namespace, config.KubeClientQPS = "8443", "A b", 0
	err := config.Validate()
	for _, want := range []string{"--policy-file is missing", "--tls-cert-file is missing", "--tls-key-file is missing", `--bind-address is "8443"`, `--namespace is "A b"`, "--kube-client-qps is 0"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
