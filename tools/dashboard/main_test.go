package main

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"
)

// U-10: the chart's file is what this program writes.
func TestU10_TheDashboardOfTheChartIsCurrent(t *testing.T) {
	t.Parallel()
	want, err := json.MarshalIndent(dashboard(), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../charts/joiner/files/dashboard.json")
	if err != nil || !bytes.Equal(bytes.TrimSpace(got), want) {
		t.Errorf("it is another one (%v): make generate writes it", err)
	}
}

// U-10: no panel covers another or leaves the grid. Each has a title, its unit and an expression, and no two have the
// same number.
func TestU10_PanelsStandBesideEachOther(t *testing.T) {
	t.Parallel()
	taken, numbers := map[[2]int]any{}, map[any]bool{}
	for _, made := range dashboard()["panels"].([]any) {
		p := made.(object)
		at := p["gridPos"].(object)
		x, y, wide, tall := at["x"].(int), at["y"].(int), at["w"].(int), at["h"].(int)
		if x < 0 || x+wide > columns {
			t.Errorf("%v leaves the grid: %v", p["title"], at)
		}
		for i := range wide * tall {
			cell := [2]int{x + i%wide, y + i/wide}
			if other := taken[cell]; other != nil {
				t.Errorf("%v covers %v", p["title"], other)
			}
			taken[cell] = p["title"]
		}
		if p["title"] == "" || numbers[p["id"]] {
			t.Errorf("panel %v has the title %q, or a number of another one", p["id"], p["title"])
		}
		numbers[p["id"]] = true
	}
	for _, row := range rows() {
		if len(row.panels) == 0 {
			t.Errorf("row %s is empty", row.title)
		}
		for _, p := range row.panels {
			if p.unit == "" || len(p.queries) == 0 {
				t.Errorf("%s has the unit %q and %d expressions", p.title, p.unit, len(p.queries))
			}
		}
	}
}
