package charts_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/charts/chartstest"
	"github.com/joiner-autoscaler/joiner/internal/settings"
)

// changeOf returns how all tests change a value of the chart joiner.
func changeOf(t *testing.T, path string) chartstest.Change {
	t.Helper()
	for _, change := range chartstest.Changes(charts.Joiner) {
		if change.Path == path {
			return change
		}
	}
	t.Fatalf("no change of %s in chartstest.Changes", path)
	return chartstest.Change{}
}

// K-20: each value of Karpenter's charts is one of ours, and changes in our objects what it changes in Karpenter's: at
// the place of the table, in a new line. The chart's own tests with Helm check each against its schema.
func TestK20_EachValueOfKarpentersIsShown(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, key := range chartstest.KarpentersKeys() {
		if seen[key.Path] {
			t.Errorf("%s is there twice", key.Path)
		}
		seen[key.Path] = true
		change := changeOf(t, key.Path)
		before := string(renderWhere(t, charts.Joiner, change.Before(charts.Joiner), change.Served)[key.In])
		after := string(renderWhere(t, charts.Joiner, change.Set(charts.Joiner), change.Served)[key.In])
		if !strings.Contains(after, key.Shows+"\n") || strings.Contains(before, key.Shows+"\n") {
			t.Errorf("%s: %v: want %q in %s, and not without it:\n%s", key.Path, change.Value, key.Shows, key.In,
				after)
		}
	}
	if len(seen) < 75 {
		t.Errorf("%d keys of Karpenter's are looked at: some are lost", len(seen))
	}
}

// peersFile returns the values of a chart of Karpenter, with all defaults and our image.
func peersFile(t *testing.T, kwok bool) map[string]any {
	t.Helper()
	set := chartstest.Needed(charts.Joiner)
	for _, key := range chartstest.KarpentersKeys() {
		text := key.Default
		if kwok && key.KWOK == "-" {
			continue
		}
		if kwok && key.KWOK != "" {
			text = key.KWOK
		}
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatalf("%s: %q: %v", key.Path, text, err)
		}
		set[key.Path] = value
	}
	return set
}

// K-20, K-22: the whole file of either chart, with all defaults written out, is rendered with compat.karpenter. The
// result is the same as without the file, except for variables with default values.
func TestK20_AWholeFileOfKarpentersMeansItsDefaults(t *testing.T) {
	t.Parallel()
	for _, kwok := range []bool{false, true} {
		given := peersFile(t, kwok)
		given["compat.karpenter"], given["compat.kwok"] = true, kwok
		bare := chartstest.Needed(charts.Joiner)
		bare["compat.karpenter"], bare["compat.kwok"] = true, kwok
		pods := func(set map[string]any) (corev1.PodTemplateSpec, map[string]string) {
			documents := render(t, charts.Joiner, set)
			for name := range documents {
				if strings.HasPrefix(name, "Deployment/") {
					template := read[appsv1.Deployment](t, documents[name]).Spec.Template
					env := map[string]string{}
					for _, variable := range template.Spec.Containers[0].Env {
						env[variable.Name] = variable.Value
					}
					template.Spec.Containers[0].Env = nil
					return template, env
				}
			}
			t.Fatal("no Deployment")
			return corev1.PodTemplateSpec{}, nil
		}
		want, without := pods(bare)
		got, with := pods(given)
		if kwok { // its chart has these differently
			got.Spec.DNSPolicy, got.Spec.SecurityContext = want.Spec.DNSPolicy, want.Spec.SecurityContext
		}
		got.Spec.SecurityContext, want.Spec.SecurityContext = nil, nil // the container has runAsNonRoot, too
		got.Spec.SchedulerName = ""
		one, _ := yaml.Marshal(want)
		if other, _ := yaml.Marshal(got); string(one) != string(other) {
			t.Errorf("for KWOK %t: the defaults of Karpenter's chart make\n%s\nours\n%s", kwok, other, one)
		}
		for name, value := range with {
			if s, known := settingOf(name); without[name] != value && (!known || !sameValue(s, value)) {
				t.Errorf("for KWOK %t: %s is %q, its default is %q", kwok, name, value, s.Default)
			}
		}
	}
}

// settingOf returns Karpenter's setting with this variable.
func settingOf(variable string) (settings.Setting, bool) {
	for _, s := range settings.Table() {
		if s.Variable() == variable {
			return s, true
		}
	}
	return settings.Setting{}, false
}

// sameValue reports whether a value is a setting's default.
func sameValue(s settings.Setting, value string) bool {
	if s.Name == settings.FeatureGates {
		return maps.Equal(settings.KarpentersGates(value), settings.KarpentersGates(""))
	}
	return value == s.Default || value+"0s" == s.Default
}

// K-20: from the keys of settings, the chart makes the variables in the table of Karpenter's settings. None of its
// gates is missing.
func TestK20_VariablesAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	var own struct {
		Variables, EC2 map[string]string
		Gates          []struct{ Key, Name, Default string }
	}
	if err := yaml.UnmarshalStrict(file(t, charts.Joiner+"/files/karpenter.yaml"), &own); err != nil {
		t.Fatal(err)
	}
	for _, list := range []map[string]string{own.Variables, own.EC2} {
		for key, variable := range list {
			s, known := settingOf(variable)
			if !known || strings.ReplaceAll(s.Name, "-", "") != strings.ToLower(key) {
				t.Errorf("settings.%s becomes %s, which is no setting of that name", key, variable)
			}
		}
	}
	ec2 := 0
	for _, s := range settings.Table() {
		if s.Origin == settings.AWS && s.Name != "aws-feature-gates" {
			if ec2++; !slices.Contains(slices.Collect(maps.Values(own.EC2)), s.Variable()) {
				t.Errorf("no key of settings becomes %s", s.Variable())
			}
		}
	}
	if ec2 != len(own.EC2) {
		t.Errorf("%d settings of EC2, the chart has %d", ec2, len(own.EC2))
	}
	var gates []string
	for _, gate := range settings.Gates() {
		gates = append(gates, gate.Name)
	}
	for i, gate := range own.Gates {
		if gate.Name != gates[i] || !strings.EqualFold(gate.Key, gate.Name) {
			t.Errorf("gate %d of the chart is %+v, of the table %s", i, gate, gates[i])
		}
		if known := settings.Gates()[i]; gate.Default != "" && (gate.Default == "true") != known.Karpenter {
			t.Errorf("the default of %s is %s in the chart, %t in Karpenter", gate.Name, gate.Default, known.Karpenter)
		}
	}
	if len(own.Gates) != len(gates) {
		t.Errorf("the chart has %d gates, Karpenter %d", len(own.Gates), len(gates))
	}
}

// K-20, K-04: nothing that had no effect under Karpenter begins to act: with compat.karpenter, its defaults hold for
// gates that are not given.
func TestK20_GatesOfKarpentersReleaseStayAsTheyWere(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		set  map[string]any
		want string
	}{
		{nil, ""},
		{map[string]any{"settings.featureGates.nodeRepair": true}, "NodeRepair=true"},
		{map[string]any{"compat.karpenter": true},
			"NodeRepair=false,ReservedCapacity=true,SpotToSpotConsolidation=false," +
				"NodeOverlay=false,StaticCapacity=false,CapacityBuffer=false"},
		{map[string]any{"compat.karpenter": true, "settings.featureGates.nodeOverlay": true,
			"settings.featureGates.reservedCapacity": false}, "NodeRepair=false,ReservedCapacity=false," +
			"SpotToSpotConsolidation=false,NodeOverlay=true,StaticCapacity=false,CapacityBuffer=false"},
	} {
		got := ""
		for name, document := range controller(t, c.set) {
			if strings.HasPrefix(name, "Deployment/") {
				for _, variable := range read[appsv1.Deployment](t, document).Spec.Template.Spec.Containers[0].Env {
					if variable.Name == "FEATURE_GATES" {
						got = variable.Value
					}
				}
			}
		}
		if got != c.want {
			t.Errorf("%v: the gates are %q, want %q", c.set, got, c.want)
		}
	}
}

// K-20: contradictions are refused with a message that says what is wrong.
func TestK20_ContradictionsAreRefused(t *testing.T) {
	t.Parallel()
	for says, set := range map[string]map[string]any{
		"settings.interruptionQueue: want it empty where aws.clusterName is given": {"image": "joiner:1",
			"aws.clusterName": "prod", "settings.interruptionQueue": "warnings"},
		"image: want the image of joiner, or controller.image.repository": {"image": ""},
	} {
		if _, err := chartstest.Render(charts.Joiner, set, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: error %v, want %q", set, err, says)
		}
	}
}

// K-20: a variable of controller.env wins over the value that sets it, and one of env over both. None appears twice,
// which Helm 4 would refuse.
func TestK20_VariablesThatAreGivenWin(t *testing.T) {
	t.Parallel()
	variable := func(value string) map[string]any { return map[string]any{"name": "LOG_LEVEL", "value": value} }
	for want, set := range map[string]map[string]any{
		"info":  {},
		"warn":  {"logLevel": "debug", "controller.env": []any{variable("warn")}},
		"error": {"logLevel": "debug", "controller.env": []any{variable("warn")}, "env": []any{variable("error")}},
	} {
		seen := map[string]int{}
		for _, e := range read[appsv1.Deployment](t,
			controller(t, set)["Deployment/joiner"]).Spec.Template.Spec.Containers[0].Env {
			if seen[e.Name]++; e.Name == "LOG_LEVEL" && e.Value != want || seen[e.Name] > 1 {
				t.Errorf("%v: %s is %q, want %q", set, e.Name, e.Value, want)
			}
		}
		if seen["LOG_LEVEL"] != 1 {
			t.Errorf("%v: the variables are %v", set, seen)
		}
	}
	from := map[string]any{"secretKeyRef": map[string]any{"name": "keys", "key": "id"}}
	all := read[appsv1.Deployment](t, controller(t, map[string]any{"controller.env": []any{
		map[string]any{"name": "AWS_ACCESS_KEY_ID",
			"valueFrom": from}}})["Deployment/joiner"]).Spec.Template.Spec.Containers[0].Env
	if last := all[len(all)-1]; last.ValueFrom == nil || last.ValueFrom.SecretKeyRef.Name != "keys" {
		t.Errorf("the last variable is %+v", last)
	}
}

// K-21: users with the roles admin and view get rights on pools, claims, overlays and classes; view may only read.
func TestK21_UsersGetRights(t *testing.T) {
	t.Parallel()
	documents := controller(t, nil)
	for role, writes := range map[string]bool{"admin": true, "view": false} {
		found := read[rbacv1.ClusterRole](t, documents["ClusterRole/joiner-"+role])
		if found.Labels["rbac.authorization.k8s.io/aggregate-to-"+role] != "true" {
			t.Errorf("%s has the labels %v", role, found.Labels)
		}
		for _, rule := range found.Rules {
			if got := slices.Contains(rule.Verbs, "delete"); got != writes || !slices.Contains(rule.Verbs, "watch") {
				t.Errorf("%s may %v", role, rule.Verbs)
			}
		}
	}
}

// K-22: by default the pods run where Karpenter's do: not on nodes of pools, each on a node of its own, spread over
// zones, as nobody. Terms without a selector are about our pods; others stay as they are.
func TestK22_PlacementIsKarpenters(t *testing.T) {
	t.Parallel()
	for _, compat := range []bool{false, true} {
		documents := controller(t, map[string]any{"compat.karpenter": compat, "compat.kwok": compat,
			"nameOverride": "scaler", "fullnameOverride": "scaler"})
		deployment := read[appsv1.Deployment](t, documents["Deployment/scaler"])
		pod, own := deployment.Spec.Template.Spec, deployment.Spec.Selector.MatchLabels
		between := pod.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		if len(between) != 1 || between[0].TopologyKey != corev1.LabelHostname ||
			!maps.Equal(between[0].LabelSelector.MatchLabels, own) {
			t.Errorf("pods keep away from each other by %+v, their selector is %v", between, own)
		}
		spread := pod.TopologySpreadConstraints
		want := map[bool]corev1.UnsatisfiableConstraintAction{false: corev1.DoNotSchedule,
			true: corev1.ScheduleAnyway}[compat]
		if len(spread) != 1 || spread[0].WhenUnsatisfiable != want ||
			!maps.Equal(spread[0].LabelSelector.MatchLabels, own) {
			t.Errorf("compat %t: pods are spread by %+v", compat, spread)
		}
		container := pod.Containers[0]
		if *container.SecurityContext.RunAsUser != 65532 || *container.SecurityContext.RunAsGroup != 65532 ||
			!*container.SecurityContext.ReadOnlyRootFilesystem ||
			pod.SecurityContext.SeccompProfile.Type != "RuntimeDefault" ||
			pod.PriorityClassName != "system-cluster-critical" || pod.NodeSelector["kubernetes.io/os"] != "linux" ||
			pod.Tolerations[0].Key != "CriticalAddonsOnly" {
			t.Errorf("the pods are %+v", pod)
		}
	}
	given := map[string]any{"podAntiAffinity": map[string]any{"preferredDuringSchedulingIgnoredDuringExecution": []any{
		map[string]any{"weight": 1, "podAffinityTerm": map[string]any{"topologyKey": "rack"}},
		map[string]any{"weight": 2, "podAffinityTerm": map[string]any{"topologyKey": "row",
			"labelSelector": map[string]any{"matchLabels": map[string]any{"app": "other"}}}},
	}}}
	terms := read[appsv1.Deployment](t, controller(t, map[string]any{"affinity": given})["Deployment/joiner"]).
		Spec.Template.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution
	if terms[0].PodAffinityTerm.LabelSelector.MatchLabels["app.kubernetes.io/name"] != "joiner" ||
		terms[1].PodAffinityTerm.LabelSelector.MatchLabels["app"] != "other" {
		t.Errorf("the terms are %+v", terms)
	}
}

// K-23: with compat.karpenter, objects, selectors, ports and container have the names of Karpenter's chart, by its
// rule for the release's name. So what cannot be changed in place is the same.
func TestK23_NamesAreKarpenters(t *testing.T) {
	t.Parallel()
	for release, fullname := range map[string]string{"karpenter": "karpenter", "my-karpenter": "my-karpenter",
		"autoscaler": "autoscaler-karpenter", strings.Repeat("x", 53): (strings.Repeat("x", 53) + "-karpenter")[:63]} {
		set := map[string]any{"image": "joiner:1", "compat.karpenter": true}
		documents, err := chartstest.RenderAs(release, charts.Joiner, set, nil)
		if err != nil {
			t.Fatal(err)
		}
		deployment := read[appsv1.Deployment](t, documents["Deployment/"+fullname])
		want := map[string]string{"app.kubernetes.io/name": "karpenter", "app.kubernetes.io/instance": release}
		container := deployment.Spec.Template.Spec.Containers[0]
		if !maps.Equal(deployment.Spec.Selector.MatchLabels, want) ||
			!selects(want, deployment.Spec.Template.Labels) ||
			container.Name != "controller" || container.Ports[0].Name != "http-metrics" ||
			container.Ports[1].Name != "http" ||
			deployment.Spec.Template.Spec.ServiceAccountName != fullname ||
			!slices.Contains(container.Args, "--unknown-flags=warn") {
			t.Errorf("release %s: the Deployment is %+v", release, deployment.Spec)
		}
		service := read[corev1.Service](t, documents["Service/"+fullname])
		budget := read[policyv1.PodDisruptionBudget](t, documents["PodDisruptionBudget/karpenter"])
		if !maps.Equal(service.Spec.Selector, want) || !selects(want, service.Labels) ||
			service.Spec.Ports[0].Name != "http-metrics" || !maps.Equal(budget.Spec.Selector.MatchLabels, want) {
			t.Errorf("release %s: the Service is %+v, the budget %+v", release, service, budget.Spec)
		}
		for _, kind := range []string{"Role", "ClusterRole"} {
			binding := read[right](t, documents[kind+"Binding/"+fullname])
			if binding.RoleRef.Kind != kind || binding.RoleRef.Name != fullname ||
				binding.Subjects[0].Name != fullname {
				t.Errorf("release %s: the %sBinding is %+v", release, kind, binding)
			}
		}
	}
}
