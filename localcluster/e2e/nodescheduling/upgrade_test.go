package nodescheduling

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/localcluster/placing"
)

// unknownPlugin stands for ours on a server built without it: such a server knows no plugin of that name.
const unknownPlugin = "scheduling.openshift.io/NotBuiltIn"

// stanzaOf writes the part of the AdmissionConfiguration that configures a plugin, and returns the flag for it.
func stanzaOf(t *testing.T, plugin, policy string) string {
	t.Helper()
	content := "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: " + plugin +
		"\n  configuration:\n    " +
		strings.ReplaceAll(strings.TrimSpace(policy), "\n", "\n    ") + "\n"
	file := filepath.Join(t.TempDir(), "admission.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--admission-control-config-file=" + file
}

// a server without the plugin accepts its configuration and does nothing with it. It stops only if the plugin's
// name is among the enabled ones, or at the gate. So the configuration may come before the image and stay after it,
// and the flags may not. A plugin that exists but is not enabled does nothing either (N5: nor one without
// configuration).
func TestA48_TheConfigurationMayComeBeforeTheImage(t *testing.T) {
	const place = "alice create pod app/a node=cp1"
	for _, test := range []struct {
		what, plugin string
		args         []string
		stops        string // what the server says when it does not start; "" for one that does
		verdict      string
	}{
		{what: "no plugin, with the configuration", plugin: unknownPlugin, verdict: "allow"},
		{what: "no plugin, enabled by name", plugin: unknownPlugin, args: []string{"--enable-admission-plugins=" +
			unknownPlugin}, stops: unknownPlugin},
		{what: "no gate of that name", plugin: unknownPlugin, args: []string{"--feature-gates=NotBuiltIn=true"},
			stops: "NotBuiltIn"},
		{what: "the plugin, with the configuration, not enabled", plugin: pluginName, args: []string{gate + "true"},
			verdict: "allow"},
		{what: "the plugin, enabled, with the configuration", plugin: pluginName,
			args: []string{enable, gate + "true"}, verdict: "deny ControlPlane/UnknownNode"},
	} {
		t.Run(test.what, func(t *testing.T) {
			g, err := serve(t, "", append(test.args, stanzaOf(t, test.plugin, placing.Policy))...)
			if test.stops != "" {
				if err == nil || !strings.Contains(err.Error(), test.stops) {
					t.Errorf("error %v, want one that names %s", err, test.stops)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			g.Expect(t, test.verdict, place)
		})
	}
}

// pluginName is the plugin's name.
const pluginName = "scheduling.openshift.io/NodeSchedulingPolicy"
