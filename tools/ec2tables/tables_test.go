package main

import (
	"bytes"
	"strings"
	"testing"
)

var here = source{module: "example.com/m", version: "v1.0.0", sum: "h1:sum", file: "some.go"}

const prices = `package p
// generated at 2026-07-20T13:44:30Z for us-east-1
var V, other = map[string]map[string]float64{
	"us-gov-west-1": {"m5.large": 0.121000},
	"us-east-1": {
		// m5 family
		"m5.12xlarge": 2.304000, "m5.2xlarge": 0.384000, "m5.large": 0.096000,
		"u.x": 40.000000, "u.y": 40,
	},
}, 0
`

// E-26: the file of prices is a function of its sources. It says where each column comes from, and which ones are old.
func TestPricesAreWritten(t *testing.T) {
	t.Parallel()
	lists, err := readPrices(here, []byte(prices))
	if err != nil {
		t.Fatal(err)
	}
	china, err := readPrices(here, []byte(`package p
// generated at 2025-07-19T01:00:11Z for cn-north-1
var V = map[string]map[string]float64{"cn-north-1": {"m5.large": 1.013000}}`))
	if err != nil {
		t.Fatal(err)
	}
	var w bytes.Buffer
	if err := writePrices(&w, append(lists, china...)); err != nil {
		t.Fatal(err)
	}
	const from = " module=example.com/m version=v1.0.0 file=some.go licence=Apache-2.0 sum=h1:sum\n"
	want := "region us-east-1 currency=USD date=2026-07-20" + from +
		"region cn-north-1 currency=CNY date=2025-07-19 old=true" + from +
		"region us-gov-west-1 currency=USD date=2026-07-20" + from + `type us-east-1 cn-north-1 us-gov-west-1
m5.large 0.096 1.013 0.121
m5.2xlarge 0.384 - -
m5.12xlarge 2.304 - -
u.x 40 - -
u.y 40 - -
`
	if _, got, _ := strings.Cut(w.String(), "is no price.\n"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if err := writePrices(&w, append(lists, lists...)); err == nil ||
		!strings.Contains(err.Error(), "region us-east-1 has prices in") {
		t.Errorf("a region with two columns: %v", err)
	}
}

const limits = `package p
// This file was generated at 2026-09-02T16:44:35Z
type card struct{}
var empty = map[string]int{}
var Limits = map[string]*T{
	"t3.micro": {Interface: 2, IsTrunkingCompatible: false, BranchInterface: 0, Cards: []card{{}}, Hypervisor: "nitro", IsBareMetal: true},
	"m5.large": {Interface: 3, IsTrunkingCompatible: true, BranchInterface: 9},
}
`

// E-26: the same for the file of branch interfaces.
func TestBranchesAreWritten(t *testing.T) {
	t.Parallel()
	list, err := readBranches(here, []byte(limits))
	if err != nil {
		t.Fatal(err)
	}
	var w bytes.Buffer
	writeBranches(&w, list)
	want :=
		"region all date=2026-09-02 module=example.com/m version=v1.0.0 file=some.go licence=Apache-2.0 sum=h1:sum\n" +
			"type trunking branches\nm5.large true 9\nt3.micro false 0\n"
	if !strings.HasSuffix(w.String(), want) {
		t.Errorf("%s\nwant\n%s", w.String(), want)
	}
}

// E-26: a source of an unknown form is refused, never read in part.
func TestOtherFormsAreRefused(t *testing.T) {
	t.Parallel()
	for change, want := range map[[2]string]string{
		{"package p", "package"}:                                 "some.go:",
		{"2026-07-20T", "July 20 "}:                              "it has 0 dates",
		{"// m5 family", "// generated at 2026-07-20T13:44:30Z"}: "it has 2 dates",
		{"var V", "const V"}:                                     "it has 0 variables with entries",
		{"0.096000", "0.096e1"}:                                  "the price of m5.large in us-east-1: want",
		{"0.096000", "-0.096"}:                                   "the price of m5.large in us-east-1: want",
		{"0.096000", "0.0960001"}:                                "the price of m5.large in us-east-1: want",
		{"0.096000", "0.000000"}:                                 "the price of m5.large in us-east-1: want",
		{"0.096000", "price()"}:                                  "the price of m5.large in us-east-1: want",
		{`"m5.2xlarge"`, `"m5.large"`}:                           `key "m5.large": want`,
		{`"m5.2xlarge"`, `"M5 large"`}:                           `key "M5 large": want`,
		{`"m5.2xlarge"`, `large`}:                                "a key is no string",
		{`"m5.2xlarge": `, ``}:                                   "an entry has no key",
		{`{"m5.large": 0.121000}`, `govWest`}:                    "region us-gov-west-1 is no list",
	} {
		if _, err := readPrices(here, []byte(strings.Replace(prices, change[0], change[1], 1))); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("prices with %s: %v, want %q", change[1], err, want)
		}
	}
	for change, want := range map[[2]string]string{
		{"package p", "package"}:                                                    "some.go:",
		{"var empty = map[string]int{}", "var list = []int{1}"}:                     "it has 2 variables with entries",
		{"Compatible: true", "Compatible: maybe"}:                                   "type m5.large: want",
		{"Compatible: true", "Compatible: false"}:                                   "type m5.large: want",
		{"Interface: 9", "Interface: nine"}:                                         "type m5.large: want",
		{"BranchInterface: 9", "Branches: 9"}:                                       "type m5.large: want",
		{"BranchInterface: 9", "9"}:                                                 "type m5.large: want",
		{"{Interface: 3, IsTrunkingCompatible: true, BranchInterface: 9}", "large"}: "type m5.large is no structure",
	} {
		if _, err := readBranches(here, []byte(strings.Replace(limits, change[0], change[1], 1))); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("limits with %s: %v, want %q", change[1], err, want)
		}
	}
}
