package main

// subject is a package that is mutated, and the tests that judge its mutants.
type subject struct {
	dir   string
	path  string   // its import path, when it is of another module of the repository than the root's
	from  string   // the module that lists it, when the root's go.mod lacks what it needs
	tests string   // where the tests are that count as its own; dir when empty
	files []string // those that are mutated; all when there are none
	args  []string // further arguments of its tests
	skip  string   // tests that are left out, as a regular expression: those that take long and add nothing

	witnesses []witness // tests of other packages, asked about what survives the package's own
}

// witness is the tests of another package that check promises of this one.
type witness struct {
	dir, run string
	args     []string
	// the module that builds them, where the package's own go.mod lacks what its tests need; dir when empty
	from string
}

var subjects = []subject{
	{dir: "internal/kube/event"},
	{dir: "internal/controller/metrics"},
	{dir: "nodescheduling/evaluator", path: "github.com/joiner-autoscaler/joiner/nodescheduling/evaluator",
		tests: "nodescheduling/test",
		witnesses: []witness{{dir: "nodescheduling/evaluator", from: "nodescheduling/test"}, {dir: "internal/webhook"},
			{dir: "internal/admission/audit"}, {dir: "charts"}, {dir: "localcluster/doors"}}},
	{dir: "nodescheduling/door", path: "github.com/joiner-autoscaler/joiner/nodescheduling/door",
		witnesses: []witness{{dir: "internal/webhook"}, {dir: "nodescheduling/plugin"}, {dir: "localcluster/doors"}}},
	{dir: "nodescheduling/plugin", path: "github.com/joiner-autoscaler/joiner/nodescheduling/plugin",
		from: "nodescheduling", witnesses: []witness{{dir: "localcluster/doors"}}},
	{dir: "internal/webhook", witnesses: []witness{{dir: "localcluster/doors"}}},
	{dir: "internal/admission/audit"},
	{dir: "internal/admission/platform"},
	{dir: "internal/admission/suggest"},
	{dir: "internal/convert"},
	{dir: "internal/autonode/merge"},
	{dir: "autonodepolicy/policy", path: "github.com/joiner-autoscaler/joiner/autonodepolicy/policy",
		tests: "internal/autonode/merge"},
	{dir: "internal/autonode/operator"},
	{dir: "internal/autonode/conformance"},
	{dir: "internal/controller/node"},
	{dir: "internal/controller/repair"},
	{dir: "internal/controller/interruption"},
	{dir: "internal/controller/pool"},
	{dir: "internal/engine/limit", witnesses: []witness{{dir: "internal/engine", run: "TestScripts"}}},
	{dir: "internal/engine", files: []string{"trim.go", "candidates.go"}},
	{dir: "internal/controller/claim"},
	{dir: "internal/controller/disruption"},
	{dir: "internal/apply"},
}
