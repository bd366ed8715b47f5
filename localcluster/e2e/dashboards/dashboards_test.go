// Package dashboards looks at running programs as users of the dashboard and the alerts do: through a Prometheus. The
// program bin/dashboards, of the module tools/alerts, scrapes joiner, joiner-operator and joiner-webhook on real
// control planes. Meanwhile the test makes everything happen that they count. Then every query is evaluated (U-10).
//
// The binaries come from the environment. Without them the tests fail.
package dashboards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

const (
	// programEnv and operatorEnv name the binaries that the environment names.
	programEnv, operatorEnv = "JOINER_DASHBOARDS_BINARY", "JOINER_OPERATOR_BINARY"
	// later is generous: it only matters when something is wrong, or the machine is busy with something else.
	later = 4 * time.Minute
)

// watched is a hosted cluster with joiner and joiner-operator, its management cluster, and a cluster that
// joiner-webhook guards.
type watched struct {
	*rig.Rig
	t          *testing.T
	management *rig.Rig
	operator   *rig.Controller
	guarded    *placingtest.Guarded
}

// U-10: once everything has happened that the programs count, every query of the dashboard returns series, and so does
// every alert without its threshold. Those that return nothing are in the table of tools/alerts/dashboards, with the
// reason.
func TestU10_EveryQueryReturnsSeries(t *testing.T) {
	w := start(t)
	addresses := []string{
		charts.Joiner + "=" + strings.TrimSuffix(strings.TrimPrefix(w.MetricsURL(), "http://"), "/metrics"),
		fmt.Sprintf("%s=127.0.0.1:%d", charts.Operator, w.operator.MetricsPort),
		fmt.Sprintf("%s=127.0.0.1:%d", charts.Webhook, w.guarded.MetricsPort()),
	}
	prometheus := exec.CommandContext(t.Context(), named(t, programEnv), addresses...)
	var said bytes.Buffer
	prometheus.Stdout, prometheus.Stderr = &said, &said
	end, err := prometheus.StdinPipe()
	if err == nil {
		err = prometheus.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.happen()
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	if err := prometheus.Wait(); err != nil {
		t.Errorf("%v", err)
	}
	t.Logf("what the queries returned:\n%s", said.String())
}

// named returns the path in an environment variable.
func named(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Fatalf("%s is not set: run make dashboards, or set it to the absolute path of that binary", variable)
	}
	return path
}

// file returns a file of testdata.
func file(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile("testdata/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// start starts clusters and programs. The NodePools are there before the operator, so that it leaves them alone (G18).
func start(t *testing.T) *watched {
	t.Helper()
	options, err := rig.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	options.Log = io.Discard
	ctx, cancel := context.WithTimeout(t.Context(), shared.StartTimeout)
	defer cancel()
	w := &watched{t: t}
	stopped := func(what string, stop func() error) {
		t.Cleanup(func() {
			if err := stop(); err != nil {
				t.Errorf("stopping %s: %v", what, err)
			}
		})
	}
	w.management, err = rig.StartManagement(ctx, options)
	w.must(err)
	stopped("the management cluster", w.management.Stop)
	account, err := w.management.InstallHostedControlPlane(ctx, charts.Operator)
	w.must(err)

	options.Args = []string{"--registration-timeout=15s", "--batch-idle-duration=200ms", "--max-nodes=50",
		"--max-node-claims-hard=60"}
	w.Rig, err = rig.Start(ctx, options)
	w.must(err)
	stopped("the hosted cluster", w.Stop)
	w.must(w.InstallHosted(ctx))
	pools, _, _ := strings.Cut(file(t, "work"), "---\napiVersion: apps/v1")
	w.must(w.Apply(ctx, pools))
	w.operator, err = w.Run(ctx, rig.OperatorProgram(named(t, operatorEnv), account, charts.Operator,
		"--platform=KWOK", "--operand-user-name="+rig.User))
	w.must(err)
	stopped("joiner-operator", w.operator.Stop)

	w.guarded, err = placingtest.Start(ctx,
		placingtest.Options{Door: placingtest.Webhook, Policy: file(t, "scheduling"),
			World: placing.Nodes + file(t, "infra"), WithScheduler: true, Components: []cluster.Component{
				cluster.Etcd, cluster.APIServer,
			}})
	w.must(err)
	stopped("the cluster that joiner-webhook guards", w.guarded.Stop)
	return w
}

func (w *watched) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// happen makes everything happen that the programs count.
func (w *watched) happen() {
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"the provider's policy and a tenant's pool", func(ctx context.Context) error {
			if err := w.management.Apply(ctx, file(w.t, "policy")); err != nil {
				return err
			}
			return w.Apply(ctx, file(w.t, "tenant"))
		}},
		{"pods on protected nodes", w.place},
		{"pods that wait, at a limit and for a size that nothing has", func(ctx context.Context) error {
			if err := w.Apply(ctx, file(w.t, "work")); err != nil {
				return err
			}
			return w.shows(ctx, `joiner_nodepool_limited{limit="soft_nodes",nodepool="web"} 1`,
				`joiner_pods_waiting{cause="PodTooLarge",`, `joiner_nodes{nodepool="hard",state="ready"} 1`)
		}},
		{"a provider that refuses, and then machines that never join", func(ctx context.Context) error {
			if err := errors.Join(w.faults(ctx, "throttling: [{calls: [launch]}]"),
				w.Apply(ctx, file(w.t, "faulty"))); err != nil {
				return err
			}
			if err := w.shows(ctx,
				`karpenter_cloudprovider_errors_total{controller="nodeclaim.lifecycle",error="ThrottledError",`+
					`method="Create",`); err != nil {
				return err
			}
			if err := w.faults(ctx, "neverJoin: [{}]"); err != nil {
				return err
			}
			return w.shows(ctx, `karpenter_nodeclaims_disrupted_total{`+`|reason="registration_timeout"`)
		}},
		{"a node that expires, and whose successor the hard limit holds back", func(ctx context.Context) error {
			if _, err := w.Kubectl(ctx, "", "delete", "kwoknodeclass", "broken"); err != nil {
				return err
			}
			return w.shows(ctx, `joiner_nodepool_ready{nodepool="broken"} 0`,
				`joiner_nodepools_disruptions_blocked_by_node_limit_total{nodepool="hard"`, `joiner_nodes_staying{`)
		}},
		{"a node that drains and may not", func(ctx context.Context) error {
			if err := w.Apply(ctx, file(w.t, "budget")); err != nil {
				return err
			}
			if _, err := w.Kubectl(ctx, "", "delete", "nodes", "-l", "karpenter.sh/nodepool=hard",
				"--wait=false"); err != nil {
				return err
			}
			return w.shows(ctx, `joiner_oldest_drain_seconds{nodepool="hard"}`,
				`karpenter_pods_eviction_requests_total{code="429"}`)
		}},
		{"nodes that go with their pods", func(ctx context.Context) error {
			if _, err := w.Kubectl(ctx, "", "scale", "deployment", "web", "--replicas=0"); err != nil {
				return err
			}
			return w.shows(ctx, `joiner_decisions_total{cause="Empty",outcome="done",verb="remove"}`,
				`joiner_nodes{nodepool="web",state="ready"} 0`)
		}},
	} {
		began := time.Now()
		if err := step.do(w.t.Context()); err != nil {
			w.t.Fatalf("%s: %v", step.what, err)
		}
		w.t.Logf("%s: %.0f s", step.what, time.Since(began).Seconds())
	}
}

// faults sets the faults of the pool faulty from now on. Throttling concerns all launches: clouds count the calls of
// an account.
func (w *watched) faults(ctx context.Context, rules string) error {
	_, err := w.Kubectl(ctx, "", "annotate", "kwoknodeclass", "faulty", "--overwrite", "karpenter.kwok.sh/faults="+
		rules)
	return err
}

// place makes requests that the policy refuses, warns of, and lets through by the emergency override.
func (w *watched) place(ctx context.Context) error {
	for _, request := range []struct{ line, want string }{
		{"alice create pod app/- node=cp1", "deny ControlPlane/NodeName"},
		{"system:admin create pod tmp/- node=cp1 override=must-gather", "warn ControlPlane/NodeName"},
		{"alice create pod app/- node=infra1", "warn Infra/NodeName"},
	} {
		err := w.Eventually(ctx, later, request.line, func(ctx context.Context) (bool, string, error) {
			got, err := w.guarded.Ask(ctx, request.line+" dry-run", placing.People)
			return got == request.want, got, err
		})
		if err != nil {
			return err
		}
		// Requests that are no dry runs are counted separately.
		got, err := w.guarded.Ask(ctx, strings.Replace(request.line, "/-", "/counted", 1), placing.People)
		if err != nil || got != request.want {
			return fmt.Errorf("%s: %s, want %s (%v)", request.line, got, request.want, err)
		}
	}
	return nil
}

// shows waits until a scrape of joiner has, for each text, a line with all of its parts, which are separated by |.
func (w *watched) shows(ctx context.Context, texts ...string) error {
	for _, text := range texts {
		err := w.Eventually(ctx, later, "a metric "+text, func(ctx context.Context) (bool, string, error) {
			scraped, err := scrape(ctx, w.MetricsURL())
			parts := strings.Split(text, "|")
			name, _, _ := strings.Cut(parts[0], "{")
			near := ""
			for line := range strings.Lines(scraped) {
				if !strings.HasPrefix(line, name) {
					continue
				}
				near += line
				has := true
				for _, part := range parts {
					has = has && strings.Contains(line, part)
				}
				if has {
					return true, line, nil
				}
			}
			return false, near, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func scrape(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	return string(text), err
}
