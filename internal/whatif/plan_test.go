package whatif_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// TestU21_WhatHasNoPriceIsInNoSum: a node whose price nobody knows is counted apart, and printed as "-".
func TestU21_WhatHasNoPriceIsInNoSum(t *testing.T) {
	t.Parallel()
	kind := func(name string, cores int64, price resources.Money) catalog.Type {
		return catalog.Type{Name: name, Capacity: resources.Amounts{"cpu": cores * 1000, "memory": 64 << 30,
			"pods": 1},
			Labels:    requirement.NewSet(requirement.OneOf("kubernetes.io/arch", "amd64")),
			Offerings: []catalog.Offering{{Zone: "a", CapacityType: catalog.OnDemand, Price: price, Available: true}}}
	}
	world, err := whatif.New(whatif.Input{Now: time.Unix(1_800_000_000, 0), Documents: documents(t, "4", "16"),
		Catalogue: catalog.Catalog{
			WellKnown: map[requirement.Key]bool{catalog.LabelInstanceType: true, catalog.LabelZone: true,
				catalog.LabelCapacityType: true},
			Types: []catalog.Type{kind("priced", 8, resources.Dollar), kind("unknown", 32, resources.MaxPrice)},
		}})
	if err != nil {
		t.Fatal(err)
	}
	result := world.Plan()
	if result.Nodes != 2 || result.Unpriced != 1 || result.PricePerHour != whatif.Dollars(resources.Dollar) {
		t.Errorf("%d nodes, %d of them without a price, $%s/h; want 2, 1 and 1.000", result.Nodes, result.Unpriced,
			result.PricePerHour)
	}
	var out strings.Builder
	if err := result.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	pool, err := world.ExplainPool("default")
	if l := pool.Pool.Launches; err != nil || l.Nodes != 2 || l.Unpriced != 1 ||
		l.PricePerHour != result.PricePerHour ||
		!strings.Contains(pool.Text, "2 nodes for 2 pods, $1.000/h +1 unpriced together") {
		t.Errorf("of the pool: %+v, %q, %v", l, pool.Text, err)
	}
	if text := out.String(); !strings.Contains(text, "$1.000/h +1 unpriced") ||
		!strings.Contains(text, "on-demand  -  ") {
		t.Errorf("the price that nobody knows has to be -, and counted:\n%s", text)
	}
}

// documents are a pool, its class, and a pod for each number of cores.
func documents(t *testing.T, cores ...string) []whatif.Document {
	t.Helper()
	texts := []string{
		`{"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}`,
		`{"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "default"}, "spec": {"template": {"spec": {"requirements": [],
			"nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}}}}}`,
	}
	for _, n := range cores {
		texts = append(texts, `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod-`+n+
			`"}, "spec": {"containers": [
			{"name": "main", "resources": {"requests": {"cpu": "`+n+`"}}}]}}`)
	}
	var list []whatif.Document
	for _, text := range texts {
		var content map[string]any
		if err := json.Unmarshal([]byte(text), &content); err != nil {
			t.Fatal(err)
		}
		list = append(list, whatif.Document{Where: "test", Content: content})
	}
	return list
}
