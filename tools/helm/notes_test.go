package helm

import (
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/charts/chartstest"
)

// U-11: with every value changed once, both versions of Helm say the same about what to do next.
func TestU11_TheNotesAreTheSameOfBothVersions(t *testing.T) {
	t.Parallel()
	for _, chart := range chartstest.Charts() {
		none := chartstest.Change{Path: "global", Value: map[string]any{}}
		for _, change := range append(chartstest.Changes(chart), none) {
			var told []string
			for _, v := range Versions() {
				_, notes, err := rendered(v, chart, change.Set(chart), change.Served)
				if err != nil {
					t.Fatalf("%s: %s: %v", chart, v.Name, err)
				}
				if !strings.Contains(notes, "What to do next:\n\n1. ") || strings.Contains(notes, "<no value>") {
					t.Errorf("%s: %s: %s: the notes are\n%s", chart, v.Name, change.Path, notes)
				}
				told = append(told, strings.TrimSpace(notes))
			}
			if told[0] != told[1] {
				t.Errorf("%s: %s: Helm 3 tells\n%s\nHelm 4\n%s", chart, change.Path, told[0], told[1])
			}
		}
	}
}

// U-11: NOTES.txt says what to do next for the given values.
func TestU11_TheNotesFollowTheValues(t *testing.T) {
	t.Parallel()
	monitors := chartstest.Served{"monitoring.coreos.com/v1/PodMonitor"}
	for _, c := range []struct {
		chart  string
		set    map[string]any
		served chartstest.Served
		has    string
		hasn   string
	}{
		{charts.Joiner, nil, nil, "machines are simulated", "Make an EC2NodeClass"},
		{charts.Joiner, map[string]any{"aws.clusterName": "prod"}, nil, "for the cluster prod",
			"machines are simulated"},
		{charts.Joiner, nil, nil, "--namespace hcp-a rollout status deployment/joiner", "v1beta1"},
		{charts.Joiner, map[string]any{"v1beta1.mode": "Enable"}, nil, "v1beta1 is served", "taken away"},
		{charts.Joiner, map[string]any{"v1beta1.mode": "Withdraw"}, nil, "Set v1beta1.mode=Disable when", "is served"},
		{charts.Joiner, nil, nil, "the cluster serves no PodMonitor", "no ServiceMonitor"},
		{charts.Joiner, map[string]any{"monitoring.kind": "ServiceMonitor"}, monitors,
			"the cluster serves no ServiceMonitor", "no PodMonitor"},
		{charts.Joiner, nil, monitors, "CRDs", "Nothing is scraped"},
		{charts.Joiner, map[string]any{"monitoring.enabled": false}, nil, "CRDs", "Nothing is scraped"},
		{charts.Joiner, map[string]any{"logErrorOutputPaths": []any{"stderr", "/var/log/a"}}, nil,
			"no effect:\n  - logErrorOutputPaths: what goes wrong", "logOutputPaths"},
		{charts.Joiner, map[string]any{"logOutputPaths": []any{"stdout"}, "logErrorOutputPaths": []any{"stderr"}}, nil,
			"CRDs", "no effect"},
		{charts.Joiner, map[string]any{"settings.featureGates.podDeletionCostManagement": true}, nil,
			"settings.featureGates.podDeletionCostManagement: Joiner does not have this", "terminateFirst"},
		{charts.Joiner, map[string]any{"settings.featureGates.terminateFirstRepair": false,
			"settings.ignoreDRARequests": false}, nil,
			"no effect:\n  - settings.featureGates.terminateFirstRepair: Joiner always does this",
			"ignoreDRARequests"},
		{charts.Joiner, map[string]any{"settings.reservedENIs": "1"}, nil,
			"settings.reservedENIs: it is of Amazon EC2, and settings.clusterName is empty", "settings.isolatedVPC"},
		{charts.Joiner, map[string]any{"settings.reservedENIs": "1", "settings.clusterName": "prod"}, nil,
			"for the cluster prod", "no effect"},
		{charts.Joiner, map[string]any{"controller.image.tag": "1.14.1"}, nil, "controller.image.tag: image is given",
			"controller.image.repository"},
		{charts.Joiner, map[string]any{"serviceMonitor.enabled": true}, monitors,
			"serviceMonitor: the cluster serves no", "Nothing is scraped"},
		{charts.Joiner, map[string]any{"compat.karpenter": true}, nil, "joinerctl takeover check",
			"Overlays, static pools"},
		{charts.Joiner, nil, nil, "Overlays, static pools", "joinerctl takeover check"},
		{charts.Operator, nil, nil, "crds.install is false", "approveKubeletCSRs"},
		{charts.Operator, map[string]any{"crds.install": true}, nil, "Write the AutoNodePolicy",
			"crds.install is false"},
		{charts.Operator, map[string]any{"guest.approveKubeletCSRs": true}, nil, "approveKubeletCSRs=true",
			"crds.install is true"},
		{charts.Operator, map[string]any{"serviceAccountName": "autonode"}, nil, "deployment/autonode",
			"deployment/joiner-operator"},
		{charts.Guest, map[string]any{"userName": "me"}, nil, "guest.userName=me", "crds.install is false"},
		{charts.Guest, map[string]any{"crds.install": false, "approveKubeletCSRs": true}, nil, "crds.install is false",
			"approveKubeletCSRs=false"},
		{charts.Webhook, nil, nil, "is in mode Inform", "is protected"},
		{charts.Webhook, nil, nil, "pod-security.kubernetes.io/enforce=privileged", "need the pod network"},
		{charts.Webhook, map[string]any{"hostNetwork": false}, nil, "need the pod network", "enforce=privileged"},
		{charts.Webhook, map[string]any{"failurePolicy": "Ignore"}, nil, "failurePolicy is Ignore", "is protected"},
		{charts.Webhook, map[string]any{"policy.groups": []any{group("Enable"), group("Disable")}}, nil,
			"is protected", "is in mode Inform"},
		{charts.Webhook, map[string]any{"certificates.secret": "mine", "certificates.caBundle": "eA==",
			"authentication.path": strings.Repeat("x", 32)}, nil, "those of Secret mine", "is protected"},
		{charts.CRDs, map[string]any{"aws": false}, nil, "nodepools.karpenter.sh", "ec2nodeclasses"},
	} {
		set := chartstest.Needed(c.chart)
		for name, value := range c.set {
			set[name] = value
		}
		for _, v := range Versions() {
			_, notes, err := rendered(v, c.chart, set, c.served)
			if err != nil || !strings.Contains(notes, c.has) || strings.Contains(notes, c.hasn) {
				t.Errorf("%s: %s with %v (%v): want %q and not %q in\n%s", v.Name, c.chart, c.set, err, c.has, c.hasn,
					notes)
			}
		}
	}
}

func group(mode string) map[string]any {
	return map[string]any{"name": "ControlPlane", "mode": mode, "labelSelector": map[string]any{},
		"authorizedUsers": []any{}}
}
