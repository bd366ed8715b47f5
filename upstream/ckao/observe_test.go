package ckao_test

import (
	"bytes"
	"flag"
	"os"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/admission/platform"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/upstream/ckao"
)

var rewrite = flag.Bool("rewrite", false, "make the stanza anew")

// object reads a KubeAPIServerConfig, or a part of it.
func object(t *testing.T, text string) map[string]any {
	t.Helper()
	read := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &read); err != nil {
		t.Fatal(err)
	}
	return read
}

// the stanza is that of the list of the platform, and the plugin's own reader takes it: one group with every
// entry, which does nothing until Scheduler gives it a mode.
func TestA39_TheStanzaIsMadeOfTheList(t *testing.T) {
	t.Parallel()
	list, err := platform.Load()
	if err != nil {
		t.Fatal(err)
	}
	want, err := ckao.Write(list)
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile("pluginconfig.yaml", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return // the program that runs has the file of before
	}
	if !bytes.Equal(ckao.Stanza(), want) {
		t.Error("pluginconfig.yaml is not what the list says; run `make rewrite` and read the diff")
	}
	configuration, err := ckao.Configuration()
	if err != nil {
		t.Fatal(err)
	}
	config, err := evaluator.Decode(configuration)
	if err != nil {
		t.Fatal(err)
	}
	policy, ignored, err := evaluator.New(evaluator.Sources{Config: config})
	if err != nil || len(ignored) > 0 {
		t.Fatalf("ignored %v, error %v", ignored, err)
	}
	effective := policy.Effective()
	if len(effective) != 1 || effective[0].Group != string(configv1.ControlPlane) ||
		effective[0].Mode != configv1.Disable ||
		effective[0].Authorized != len(list.Entries()) || config.Groups[0].Mode != "" {
		t.Errorf("groups in force: %+v", effective)
	}
	config.EntryPins = "Require" // no name that somebody else may come to have
	if err := evaluator.Check(config); err != nil {
		t.Error(err)
	}
}

// the rule, row by row; README.md has the same rows.
func TestA39_TheRuleOfTheObserver(t *testing.T) {
	t.Parallel()
	whole := object(t, string(ckao.Stanza()))
	const before = `{admission: {pluginConfig: {` + ckao.Plugin + `: {configuration: {kind: Older}}%s}}%s}`
	existing := object(t, strings.Replace(strings.Replace(before, "%s", ", PodSecurity: {configuration: {}}", 1), "%s",
		", projectConfig: {defaultNodeSelector: a=b}", 1))
	older := object(t, strings.ReplaceAll(before, "%s", ""))
	on, others := []string{"Other", evaluator.FeatureGate}, []string{"Other"}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		gates    ckao.Gates
		existing map[string]any
		want     map[string]any
		page     string
	}{
		{ckao.Gates{}, existing, older, "| not known yet | anything | as it was before |"},
		{ckao.Gates{Enabled: on}, map[string]any{}, map[string]any{}, "| not known yet | nothing | nothing |"},
		{ckao.Gates{Observed: true, Enabled: others}, existing, map[string]any{},
			"| known | off | nothing: the plugin is inert |"},
		{ckao.Gates{Observed: true, Enabled: on}, map[string]any{}, whole, "| known | on | the stanza |"},
		{ckao.Gates{Observed: true, Enabled: on}, existing, whole, "| known | on | the stanza |"},
	} {
		was := object(t, mustYAML(t, row.existing))
		got, err := ckao.Observe(row.existing, row.gates)
		if err != nil || !reflect.DeepEqual(got, row.want) {
			t.Errorf("%+v: %v, %v, want %v", row.gates, got, err, row.want)
		}
		if !reflect.DeepEqual(row.existing, was) {
			t.Errorf("%+v: the rule changed its argument: %v", row.gates, row.existing)
		}
		if !strings.Contains(string(readme), row.page) {
			t.Errorf("README.md lacks the row %s", row.page)
		}
	}
}

func mustYAML(t *testing.T, value any) string {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
