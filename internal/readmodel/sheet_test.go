package readmodel_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/enginetest"
	"github.com/joiner-autoscaler/joiner/internal/readmodel"
)

// held is a model as a reader keeps it.
type held struct {
	whole        map[string]any
	pools, nodes map[string]any
}

func decoded(t rapid.TB, data []byte) map[string]any {
	var value map[string]any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return value
}

func keyed(list []any, key string) map[string]any {
	all := map[string]any{}
	for _, row := range list {
		all[row.(map[string]any)[key].(string)] = row
	}
	return all
}

func read(t rapid.TB, snapshot []byte) held {
	h := held{whole: decoded(t, snapshot)}
	h.pools, h.nodes = keyed(h.whole["pools"].([]any), "name"), keyed(h.whole["nodes"].([]any), "id")
	delete(h.whole, "pools")
	delete(h.whole, "nodes")
	return h
}

// apply does what a reader does with a delta.
func (h held) apply(t rapid.TB, delta []byte) {
	d := decoded(t, delta)
	if d["from"] != h.whole["id"] {
		t.Fatalf("from %v, and the reader has %v", d["from"], h.whole["id"])
	}
	for _, part := range []string{"id", "version", "totals", "attention", "waiting"} {
		if value, told := d[part]; told {
			h.whole[part] = value
		}
	}
	change := func(part, key string, rows map[string]any) {
		c, told := d[part].(map[string]any)
		if !told {
			return
		}
		set, _ := c["set"].([]any)
		for name, row := range keyed(set, key) {
			rows[name] = row
		}
		gone, _ := c["gone"].([]any)
		for _, name := range gone {
			delete(rows, name.(string))
		}
	}
	change("pools", "name", h.pools)
	change("nodes", "id", h.nodes)
}

// TestU41_ADeltaLeadsFromOneModelToTheNext, whatever the clusters.
func TestU41_ADeltaLeadsFromOneModelToTheNext(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var sheets []*readmodel.Sheet
		for range 2 {
			s, err := enginetest.Parse(enginetest.Script(t))
			if err != nil {
				t.Fatal(err)
			}
			sheet, err := readmodel.Write(readmodel.Of(readmodel.Input{Snapshot: s, Plan: engine.Provision(s)}))
			if err != nil {
				t.Fatal(err)
			}
			sheets = append(sheets, sheet)
		}
		before, err := sheets[0].Snapshot("e.1")
		if err != nil {
			t.Fatal(err)
		}
		after, err := sheets[1].Snapshot("e.2")
		if err != nil {
			t.Fatal(err)
		}
		got, want := read(t, before), read(t, after)
		delta, different, err := sheets[1].Delta(sheets[0], "e.1", "e.2")
		if err != nil {
			t.Fatal(err)
		}
		if different {
			got.apply(t, delta)
		} else {
			got.whole["id"], got.whole["version"] = want.whole["id"], want.whole["version"]
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("a reader has\n%v\nwant\n%v\nby %s", got, want, delta)
		}
		if _, different, _ := sheets[1].Delta(sheets[1], "e.2", "e.3"); different {
			t.Fatal("it is other than itself")
		}
	})
}

// TestU41_ADeltaHoldsWhatIsOtherOnly.
func TestU41_ADeltaHoldsWhatIsOtherOnly(t *testing.T) {
	t.Parallel()
	const script = "type m cpu=4 zones=a od=0.2\npool p\nnode n1..50 type=m zone=a pool=p\n"
	write := func(more string) *readmodel.Sheet {
		sheet, err := readmodel.Write(readmodel.Of(input(t, script+more)))
		if err != nil {
			t.Fatal(err)
		}
		return sheet
	}
	delta, different, err := write("pod web cpu=1 node=n7\n").Delta(write(""), "e.1", "e.2")
	if err != nil || !different {
		t.Fatal(different, err)
	}
	nodes := decoded(t, delta)["nodes"].(map[string]any)
	set := nodes["set"].([]any)
	ids := keyed(set, "id")
	if ids["n7"] == nil || len(set) > 2 || len(delta) > 2000 {
		t.Errorf("%d bytes: %s", len(delta), delta)
	}
}
