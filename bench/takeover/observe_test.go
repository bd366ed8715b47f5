package takeover

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/bench/internal/peer"
	"github.com/joiner-autoscaler/joiner/deploy"
	audit "github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// K-26: beside an active Karpenter, and with rights to read only, Joiner tells what it would do. The audit log has
// only reads by Joiner.
func TestK26_ObservedBesideKarpenter(t *testing.T) {
	t.Parallel()
	c := startWith(t, func(o *rig.Options) { o.Audit = true })
	c.must(peer.Install(t.Context(), c.Rig))
	c.must(c.Apply(t.Context(), readRights(t)))
	c.controlledBy(peer.Program(binary(t)), func() {
		c.must(c.Apply(t.Context(), pools))
		observer, err := c.Run(t.Context(), rig.JoinerProgram(c.options.Joiner, "--observe-only"))
		c.must(err)
		defer func() {
			if t.Failed() {
				log, _ := os.ReadFile(observer.Log())
				t.Logf("the log of the observer:\n%s", log)
			}
			if err := observer.Stop(); err != nil {
				t.Error(err)
			}
		}()
		c.workload(28, 6)
		c.must(c.Apply(t.Context(), huge))
		c.until(observer, "launches that were told", func(m map[string]float64) bool {
			return m[`joiner_observed_launches_total{nodepool="plain",reason="Pending"}`] > 0 ||
				m[`joiner_observed_launches_total{nodepool="full",reason="Pending"}`] > 0
		})
		c.must(c.Apply(t.Context(), deployment("plain", 1, "")))
		c.until(observer, "removals that were told", func(m map[string]float64) bool {
			told := 0.0
			for series, value := range m {
				if strings.HasPrefix(series, "joiner_observed_removals_total{") {
					told += value
				}
			}
			return told > 0
		})
		c.until(observer, "where it would end", func(m map[string]float64) bool {
			return m[`joiner_observed_nodes{nodepool="full"}`] > 0 &&
				m[`joiner_observed_cost_per_hour{nodepool="full"}`] > 0
		})
		if m := metricsOf(c, observer); m["joiner_leader"] != 0 {
			t.Error("a process that only observes says that it leads")
		}
	})
	asked := 0
	c.must(audit.ReadAudit(c.Cluster.AuditLog(), func(e audit.Event) {
		if e.User != rig.User {
			return
		}
		if asked++; !slices.Contains([]string{"get", "list", "watch"}, e.Verb) {
			t.Errorf("it sent %s %s", e.Verb, e.URI)
		}
	}))
	if asked < 10 {
		t.Errorf("the audit log has %d requests of the observer: it did not look", asked)
	}
}

// readRights returns those rights of Joiner's role that only read.
func readRights(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for name, text := range deploy.Manifests() {
		for _, document := range strings.Split(string(text), "\n---\n") {
			var role rbacv1.ClusterRole
			if err := yaml.Unmarshal([]byte(document), &role); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if role.Kind != "ClusterRole" && role.Kind != "Role" {
				fmt.Fprintf(&all, "---\n%s\n", document)
				continue
			}
			var reads []rbacv1.PolicyRule
			for _, rule := range role.Rules {
				rule.Verbs = slices.DeleteFunc(rule.Verbs,
					func(verb string) bool { return !slices.Contains([]string{"get", "list", "watch"}, verb) })
				if len(rule.Verbs) > 0 {
					reads = append(reads, rule)
				}
			}
			role.Rules = reads
			out, err := yaml.Marshal(role)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&all, "---\n%s", out)
		}
	}
	return all.String()
}

// until waits until the metrics of a controller are as wanted.
func (c *cluster) until(of *rig.Controller, what string, is func(map[string]float64) bool) {
	c.t.Helper()
	c.must(c.Eventually(c.t.Context(), within, what, func(context.Context) (bool, string, error) {
		return is(metricsOf(c, of)), "", nil
	}))
}

// metricsOf returns a controller's metrics by series, or nothing if it does not answer.
func metricsOf(c *cluster, of *rig.Controller) map[string]float64 {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet,
		fmt.Sprintf("http://127.0.0.1:%d/metrics", of.MetricsPort), nil)
	c.must(err)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil
	}
	found := map[string]float64{}
	for _, line := range strings.Split(string(text), "\n") {
		at := strings.LastIndexByte(line, ' ')
		if at < 0 || strings.HasPrefix(line, "#") {
			continue
		}
		if value, err := strconv.ParseFloat(line[at+1:], 64); err == nil {
			found[line[:at]] = value
		}
	}
	return found
}
