package whatif

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

// generator makes clusters of files, and changes of them.
type generator struct {
	*rand.Rand
	t *testing.T
}

func newGenerator(t *testing.T, seed uint64) generator {
	t.Helper()
	return generator{rand.New(rand.NewPCG(seed, 18)), t}
}

func (g generator) document(format string, args ...any) Document {
	g.t.Helper()
	var content map[string]any
	if text := fmt.Sprintf(format, args...); json.Unmarshal([]byte(text), &content) != nil {
		g.t.Fatalf("not JSON: %s", text)
	}
	return Document{Where: "generated", Content: content}
}

func (g generator) pick(words ...string) string { return words[g.IntN(len(words))] }

func (g generator) pool(i int) Document {
	return g.document(`{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "pool-%d"},
		"spec": {"weight": %d, "template": {"metadata": {"labels": {"tier": %q}}, "spec": {
			"nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
			"requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": %s}]}},
		%q: {"nodes": %d}, "disruption": {"consolidateAfter": "30s", "budgets": [{"nodes": %q}]}}}`,
		i, 1+g.IntN(2), g.pick("a", "b"), g.pick(`["small"]`, `["small", "large"]`, `["large"]`),
		g.pick("limits", "hardLimits"), 1+g.IntN(8),
		g.pick("1", "2", "50%", "100%"))
}

func (g generator) deployment(i int) Document {
	spread := ""
	if g.IntN(3) == 0 {
		spread = fmt.Sprintf(
			`"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
			"whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "app-%d"}}}],`, i)
	}
	return g.document(
		`{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "app-%d", "namespace": "shop"},
		"spec": {"replicas": %d, "selector": {"matchLabels": {"app": "app-%d"}}, "template": {
			"metadata": {"labels": {"app": "app-%d"}}, "spec": {%s "containers": [{"name": "main", "resources": {"requests":
				{"cpu": %q, "memory": %q}}}]}}}}`,
		i, g.IntN(12), i, i, spread, g.pick("100m", "500m", "900m", "2500m"), g.pick("100Mi", "1Gi", "4Gi"))
}

func (g generator) budget(i int) Document {
	return g.document(`{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {
		"name": "app-%d", "namespace": "shop"}, "spec": {"maxUnavailable": %s, "selector": {"matchLabels": {
			"app": "app-%d"}}}}`, i, g.pick("0", "1", `"50%"`), i)
}

// cluster makes the files of a cluster.
func (g generator) cluster() []Document {
	list := []Document{
		g.document(
			`{"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}`),
		g.document(`{"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {
			"name": "log", "namespace": "kube-system"}, "spec": {"selector": {"matchLabels": {
			"app": "log"}}, "template": {"metadata": {"labels": {"app": "log"}}, "spec": {"containers": [
				{"name": "log", "resources": {"requests": {"cpu": "50m"}}}]}}}}`),
	}
	for i := range 1 + g.IntN(2) {
		list = append(list, g.pool(i))
	}
	for i := range 1 + g.IntN(4) {
		list = append(list, g.deployment(i))
		if g.IntN(3) == 0 {
			list = append(list, g.budget(i))
		}
	}
	return list
}

// change makes other states of some of the objects.
func (g generator) change(files []Document) Change {
	var c Change
	for _, d := range files {
		metadata, _ := d.Content["metadata"].(map[string]any)
		var number int
		switch kind, _ := d.Content["kind"].(string); {
		case g.IntN(2) == 0:
		case kind == "NodePool":
			fmt.Sscanf(metadata["name"].(string), "pool-%d", &number)
			c.Documents = append(c.Documents, g.pool(number))
		case kind == "Deployment":
			fmt.Sscanf(metadata["name"].(string), "app-%d", &number)
			c.Documents = append(c.Documents, g.deployment(number))
		}
	}
	return c
}

// pictured is the world of files.
func (g generator) pictured(files []Document) *World {
	g.t.Helper()
	inventory, err := kwok.LoadInventory("testdata/small.json", os.ReadFile)
	if err != nil {
		g.t.Fatal(err)
	}
	w, err := New(Input{Documents: copied(files), Catalogue: inventory.Catalog(), Now: time.Unix(1_800_000_000, 0)})
	if err != nil {
		g.t.Fatal(err)
	}
	return w
}

func (g generator) compared(files []Document, change Change, until Until) Comparison {
	g.t.Helper()
	c, err := g.pictured(files).Compare(change, until)
	if err != nil {
		g.t.Fatal(err)
	}
	return c
}

func copied(files []Document) []Document {
	list := make([]Document, len(files))
	for i, d := range files {
		list[i] = Document{Where: d.Where, Content: maps.Clone(d.Content), Stored: d.Stored}
	}
	return list
}
