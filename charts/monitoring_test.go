package charts_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts"
)

// monitored returns the charts with a program that is scraped, and values with which each can be rendered.
func monitored() map[string]map[string]any {
	return map[string]map[string]any{charts.Operator: given(), charts.Webhook: {"image": "joiner-webhook:1"},
		charts.Joiner: {"image": "joiner:1"}}
}

// servedBy returns kinds of Prometheus' operator.
func servedBy(kinds ...string) (served apiVersions) {
	for _, kind := range kinds {
		served = append(served, "monitoring.coreos.com/v1/"+kind)
	}
	return served
}

// monitor is what the tests check of a PodMonitor or ServiceMonitor.
type monitor struct {
	APIVersion, Kind string
	Metadata         struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Spec struct {
		Selector struct {
			MatchLabels map[string]string `json:"matchLabels"`
		}
		PodMetricsEndpoints []endpoint `json:"podMetricsEndpoints"`
		Endpoints           []endpoint
	}
}

type endpoint struct{ Port, Interval string }

// the added objects depend on what the cluster serves and on the values.
func TestA43_MonitoringIsRenderedWhereItIsServed(t *testing.T) {
	t.Parallel()
	all := servedBy("PodMonitor", "ServiceMonitor", "PrometheusRule")
	for chart, values := range monitored() {
		plain := slices.Collect(maps.Keys(render(t, chart, values)))
		for _, test := range []struct {
			what   string
			set    map[string]any
			served apiVersions
			want   []string
		}{
			{"nothing is served", nil, nil, nil},
			{"another version is served", nil, apiVersions{"monitoring.coreos.com/v1beta1/PodMonitor"}, nil},
			{"all is served", nil, all, []string{"PodMonitor/" + chart, "PrometheusRule/" + chart}},
			{"rules are served", nil, servedBy("PrometheusRule"), []string{"PrometheusRule/" + chart}},
			{"monitors are served", nil, servedBy("PodMonitor"), []string{"PodMonitor/" + chart}},
			{"it is off", map[string]any{"monitoring.enabled": false}, all, nil},
			{"by Service", map[string]any{"monitoring.kind": "ServiceMonitor"}, all,
				[]string{"PrometheusRule/" + chart, "Service/" + chart + "-metrics", "ServiceMonitor/" + chart}},
			{"by Service, which is not served", map[string]any{"monitoring.kind": "ServiceMonitor"},
				servedBy("PodMonitor"), nil},
		} {
			set := maps.Clone(values)
			maps.Copy(set, test.set)
			var more []string
			for name := range renderWhere(t, chart, set, test.served) {
				if !slices.Contains(plain, name) {
					more = append(more, name)
				}
			}
			if slices.Sort(more); !slices.Equal(more, test.want) {
				t.Errorf("%s, %s: it adds %v, want %v", chart, test.what, more, test.want)
			}
		}
	}
}

// K-26, A-43: a Joiner that only observes is scraped, and has no alerts: it never leads, and what waits is up to
// another program.
func TestK26_AnObserverHasNoAlerts(t *testing.T) {
	t.Parallel()
	all := servedBy("PodMonitor", "ServiceMonitor", "PrometheusRule")
	for observes, want := range map[bool][]string{
		true:  {"PodMonitor/joiner"},
		false: {"PodMonitor/joiner", "PrometheusRule/joiner"},
	} {
		var found []string
		for name := range renderWhere(t, charts.Joiner, map[string]any{"image": "joiner:1", "observeOnly": observes},
			all) {
			if strings.HasPrefix(name, "PodMonitor/") || strings.HasPrefix(name, "PrometheusRule/") {
				found = append(found, name)
			}
		}
		if slices.Sort(found); !slices.Equal(found, want) {
			t.Errorf("observeOnly=%t: it has %v, want %v", observes, found, want)
		}
	}
}

// a monitor finds the pods of its chart, by a port that they have, as often as the values say.
func TestA43_MonitorsFindThePods(t *testing.T) {
	t.Parallel()
	for chart, values := range monitored() {
		for _, kind := range []string{"PodMonitor", "ServiceMonitor"} {
			set := maps.Clone(values)
			set["monitoring.kind"], set["monitoring.labels"] = kind, map[string]any{"release": "prometheus"}
			set["monitoring.interval"] = "45s"
			documents := renderWhere(t, chart, set, servedBy(kind))
			var (
				found      monitor
				deployment appsv1.Deployment
				service    corev1.Service
			)
			read := func(name string, into any) {
				if err := yaml.Unmarshal(documents[name], into); err != nil || documents[name] == nil {
					t.Fatalf("%s: %s is not there, or cannot be read: %v", chart, name, err)
				}
			}
			read(kind+"/"+chart, &found)
			read("Deployment/"+chart, &deployment)
			endpoints, labels := found.Spec.PodMetricsEndpoints, deployment.Spec.Template.Labels
			ports := map[string]bool{}
			for _, port := range deployment.Spec.Template.Spec.Containers[0].Ports {
				ports[port.Name] = true
			}
			if kind == "ServiceMonitor" {
				read("Service/"+chart+"-metrics", &service)
				for key, value := range service.Spec.Selector {
					if labels[key] != value {
						t.Errorf("%s: the Service selects %v, the pods have %v", chart, service.Spec.Selector, labels)
					}
				}
				if target := service.Spec.Ports[0].TargetPort.StrVal; !ports[target] {
					t.Errorf("%s: the Service leads to port %s, the pods have %v", chart, target, ports)
				}
				endpoints, labels, ports = found.Spec.Endpoints, service.Labels,
					map[string]bool{service.Spec.Ports[0].Name: true}
			}
			for key, value := range found.Spec.Selector.MatchLabels {
				if labels[key] != value {
					t.Errorf("%s: %s selects %v, what it is for has %v", chart, kind, found.Spec.Selector.MatchLabels,
						labels)
				}
			}
			if len(endpoints) != 1 || !ports[endpoints[0].Port] || endpoints[0].Interval != "45s" ||
				found.Metadata.Namespace != "hcp-a" || found.Metadata.Labels["release"] != "prometheus" {
				t.Errorf("%s: %s is %+v", chart, kind, found)
			}
		}
	}
}

// the PrometheusRule has the alerts of the file, for the metrics of the release's namespace.
func TestA43_TheRuleHasTheAlertsOfTheFile(t *testing.T) {
	t.Parallel()
	for chart, values := range monitored() {
		set := maps.Clone(values)
		set["monitoring.labels"] = map[string]any{"role": "alerts"}
		var found struct {
			Metadata struct {
				Namespace string
				Labels    map[string]string
			}
			Spec any
		}
		content := renderWhere(t, chart, set, servedBy("PrometheusRule"))["PrometheusRule/"+chart]
		if err := yaml.UnmarshalStrict(content, &struct {
			APIVersion, Kind string
			Metadata, Spec   any
		}{}); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(content, &found); err != nil {
			t.Fatal(err)
		}
		alerts, err := charts.Alerts(chart, "hcp-a")
		if err != nil {
			t.Fatal(err)
		}
		var want any
		if err := yaml.UnmarshalStrict(alerts, &want); err != nil {
			t.Fatal(err)
		}
		a, errA := yaml.Marshal(found.Spec)
		b, errB := yaml.Marshal(want)
		if errA != nil || errB != nil || string(a) != string(b) || found.Metadata.Namespace != "hcp-a" ||
			found.Metadata.Labels["role"] != "alerts" {
			t.Errorf("%s: the rule is %+v", chart, found)
		}
		if strings.Contains(string(content), "NAMESPACE") || strings.Contains(string(content), "${") {
			t.Errorf("%s: a placeholder is left in\n%s", chart, content)
		}
	}
}
