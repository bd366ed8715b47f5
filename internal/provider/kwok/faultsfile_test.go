package kwok_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok/kwoktest"
)

// Each error names the rule, the field, the value and what is allowed.
func TestMalformedFaultsAreRefusedByName(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: b: c":                               "not YAML",
		"[]":                                    "faults: got []; want an object",
		"gremlins: []":                          `unknown field "gremlins"; allowed are seed, insufficientCapacity`,
		"seed: 1\n---\ndrift: []\n":             "it has 2 YAML documents",
		"{drift: [], drift: []}":                "not YAML",
		"seed: -1":                              "faults.seed: got -1; want a whole number",
		"neverJoin: {}":                         "neverJoin: got {}; want an array",
		"neverJoin: [5]":                        "neverJoin[0]: got 5; want an object",
		"neverJoin: [{delay: 5s}]":              `neverJoin[0]: unknown field "delay"`,
		"neverJoin: [{probability: 2}]":         "neverJoin[0].probability: got 2; want a number from 0 to 1",
		"neverJoin: [{probability: .nan}]":      "NaN",
		"neverJoin: [{types: []}]":              "neverJoin[0].types: got []; want at least one",
		"neverJoin: [{types: ['[a']}]":          `neverJoin[0].types[0]: got "[a"; want a name of instance types`,
		"neverJoin: [{zones: [7]}]":             "neverJoin[0].zones[0]: got 7",
		"neverJoin: [{capacityTypes: [cheap]}]": `capacityTypes[0]: got "cheap"; want on-demand, spot or reserved`,
		"neverJoin: [{from: tomorrow}]":         `from: got "tomorrow"; want a time`,
		"neverJoin: [{from: 2026-07-02T00:00:00Z, until: 2026-07-01T00:00:00Z}]": "until: got",
		"neverJoin: [{for: 5m}]":                              "for: got \"5m\"; want a duration not above every",
		"neverJoin: [{every: 1m, for: 5m}]":                   "want a duration not above every",
		"neverJoin: [{every: 0s}]":                            "every: got \"0s\"; want a duration",
		"slowBoot: [{}]":                                      "slowBoot[0].delay: got nothing; want a duration",
		"drift: [{reason: 'no word'}]":                        "drift[0].reason",
		"drift: [{after: -5m}]":                               "drift[0].after",
		"interruption: [{kind: Meteor}]":                      `kind: got "Meteor"; want one of SpotInterrupted`,
		"throttling: [{calls: [ring]}]":                       `calls[0]: got "ring"; want one of catalog, launch`,
		"throttling: [{zones: [a]}]":                          `unknown field "zones"`,
		"prices: [{}]":                                        "prices[0]: want either factor or steps",
		"prices: [{factor: -1}]":                              "prices[0].factor: got -1; want a number from 0 to 1000",
		"prices: [{steps: [{at: 0s, factor: 1}]}]":            "want every or from beside steps",
		"prices: [{every: 1h, steps: []}]":                    "want at least one step",
		"prices: [{every: 1h, steps: [{at: 2h, factor: 1}]}]": "steps[0].at",
		"prices: [{every: 1h, steps: [{at: 5m, factor: 1}, {at: 5m, factor: 2}]}]":              "steps[1].at",
		"prices: [{every: 1h, steps: [{at: 5m, factor: .inf}]}]":                                "+Inf",
		strings.Repeat("#", 300<<10):                                                            "want at most 262144",
		"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b]": "",
	} {
		if _, err := kwok.ParseFaults([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: error %v, want one with %q", text, err, want)
		}
	}
}

func TestNoFaultsAreNone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "null", "{}", "# a comment", "neverJoin:\n"} {
		if _, err := kwok.ParseFaults([]byte(text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTheFaultsFileIsNamedInItsErrors(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{"seed: x": "faults file f.yaml: faults.seed",
		"neverJoin: [{zones: [mars]}]": "faults file f.yaml: neverJoin[0]: types [], zones [\"mars\"]", "": ""} {
		_, err := kwok.LoadFaults("f.yaml", mustGeneric(t), func(string) ([]byte, error) {
			return []byte(content),
				nil
		})
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", content, err, want)
		}
	}
	if _, err := kwok.LoadFaults("f.yaml", mustGeneric(t), func(string) ([]byte, error) {
		return nil, errors.New("no such file")
	}); err == nil {
		t.Error("a file that cannot be read is no error")
	}
	rules, err := kwok.ParseFaults([]byte("neverJoin: [{zones: [mars]}]"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kwok.New(kwok.Config{Cluster: kwoktest.New(time.Now), Now: time.Now, Inventory: mustGeneric(t),
		Faults: rules}); err == nil || !strings.Contains(err.Error(), "neverJoin[0]") {
		t.Errorf("error %v, want the rule named that matches nothing", err)
	}
}

// FuzzFaults: for any document nothing panics, and the catalogue stays valid for planning.
func FuzzFaults(f *testing.F) {
	for _, seed := range []string{
		"{seed: 3, neverJoin: [{probability: 0.5, every: 10m, for: 1m}]}",
		"prices: [{factor: 1000}, {every: 1h, steps: [{at: 0s, factor: 0}, {at: 1m, factor: 2.5}]}]",
		"{interruption: [{after: 1m, kind: InstanceStopping}], throttling: [{calls: [launch], probability: 0.1}]}",
		"{drift: [{reason: X}], slowBoot: [{delay: 1s, types: ['*']}], insufficientCapacity: [{zones: [test-zone-a]}]}",
	} {
		f.Add([]byte(seed))
	}
	inventory, err := kwok.GenericInventory()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		faults, err := kwok.ParseFaults(data)
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without a word")
			}
			return
		}
		now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
		cluster := kwoktest.New(func() time.Time { return now })
		cluster.SetNodeClass("default", 0, "")
		p, err := kwok.New(kwok.Config{Cluster: cluster, Now: func() time.Time { return now }, Inventory: inventory,
			Faults: faults})
		if err != nil {
			return
		}
		if offered, err := p.Catalog(t.Context(), "default"); err == nil {
			if err := offered.Validate(); err != nil {
				t.Errorf("the catalogue is invalid: %v", err)
			}
		}
		claim := newClaim("web", nil)
		_, _ = p.Launch(t.Context(), claim, time.Time{}) // what comes of it is up to the faults
		now = now.Add(time.Hour)
		if _, err := p.Drifted(t.Context(), claim); err != nil {
			t.Errorf("Drifted: %v", err)
		}
		if _, err := p.Notices(t.Context()); err != nil {
			t.Errorf("Notices: %v", err)
		}
	})
}
