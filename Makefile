# Joiner. `make help` lists what there is. Needs Go, git and make; everything else is built from Go modules.

GO ?= go
BIN := bin
# Reproducible: no paths, no version control state; no C, so that any machine with Go can build. The same for programs, tests and
# vet: with other settings all dependencies would be compiled a second time.
export CGO_ENABLED := 0
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath
BUILD := $(GO) build -trimpath
TEST_FLAGS ?=
# Most of these tests wait, but with three at a time and two packages beside each other two cores starve API servers now and then.
E2E_FLAGS ?= -timeout 180m -parallel 2
E2E_ENV = CGO_ENABLED=0 JOINER_CONTROLPLANE='$(abspath $(CONTROLPLANE))' JOINER_BINARY='$(abspath $(BIN)/joiner)' \
	JOINER_OPERATOR_BINARY='$(abspath $(BIN)/joiner-operator)' JOINER_WEBHOOK_BINARY='$(abspath $(BIN)/joiner-webhook)' \
	JOINER_HELM3='$(abspath $(BIN)/helm3)' JOINER_HELM4='$(abspath $(BIN)/helm4)'
# Rounds of scale-up and scale-down in which two controllers must keep a hard limit (L-14).
LIMIT_ROUNDS ?= 200
# 1 lets the test of launches that land late wait until HardLimitEnforced is True, which takes three and a half minutes.
LIMIT_ENFORCED ?= 1
FLEET_NODES ?= 500
FLEET_KILLS ?= 50
DRA_CASES ?= 200
VOLUME_CASES ?= 60
# The same for the EC2 provider: nodes whose calls are counted (E-61), and ends of Joiner within a launch (E-37).
EC2_NODES ?= 500
EC2_KILLS ?= 50
# OpenshiftNodePools that a change of the policy must reach (B-15).
POLICY_POOLS ?= 500
# Hosted clusters that run beside each other on one management cluster (A-10).
HOSTED_CLUSTERS ?= 20
# Operators whose policies are on one management cluster (A-47).
POLICY_FEEDS ?= 1000
# 1 takes a fleet through its life without kills as well, beside the one with kills.
FLEET_CALM ?= 1
# Changes that are foretold and then made, of ten (U-03).
FORETOLD_CHANGES ?= 10
# 1 lets the test of nodes by hand wait until one is judged, which takes a minute (A-19).
NODE_SETTLES ?= 1
# Nodes that a hand-over between two operators must leave alone, and minutes for which both work beside each other (A-30, A-33).
HANDOVER_NODES ?= 20
ALONGSIDE_MINUTES ?= 5
# They begin in this order, and the others after them: a package that takes long and begins last is the one that everything waits for.
E2E_FIRST := ./e2e ./e2e/autonode ./e2e/nodescheduling ./e2e/ec2 ./e2e/conversion
# Packages of end-to-end tests that are not run: the charts and the dashboards have targets of their own. make test also leaves out those that type the
# quick start and tell the demo as a user does: tools/pages, a part of make check, parses the same pages.
LEFT_OUT ?= charts|dashboards
# The chapter of the demo that two demos at once tell, none for all of it; and for how many minutes an idle cluster is watched.
DEMO_CHAPTER ?=
IDLE_MINUTES ?= 5
# Nodes of the clusters in which the latency of the node scheduling policy is measured (B-14).
PLACEMENT_NODES ?= 5000
# What has goroutines is tested under the race detector in make check, and in make e2e also what decides, which has none by
# internal/tidy: there the detector could only see tests of its own that run beside each other.
RACE_PACKAGES ?= ./internal/engine/... ./internal/world/... ./internal/translate/...

GENERATED = $$(find api autonodepolicy/api nodescheduling/api charts/*/files charts/*/crds upstream/openshift-api/crd -name 'zz_generated*' -o -name '*.yaml' -o -name 'dashboard.json' | sort; find internal/console/assets docs/pictures -type f | sort)

include localcluster/localcluster.mk
include bench/bench.mk

.DEFAULT_GOAL := help

.PHONY: help
help: ## This list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' Makefile bench/bench.mk

# CHAPTER= tells one chapter alone; PAUSE=1 waits for Enter before each step.
CHAPTER ?=
PAUSE ?=
.PHONY: demo
demo: programs ## The main job, then a provider's policy, on real control planes with simulated machines; each step checked; CHAPTER=, PAUSE=1
	$(BIN)/demo --controlplane $(CONTROLPLANE) --joiner $(BIN)/joiner --operator $(BIN)/joiner-operator --joinerctl $(BIN)/joinerctl \
		$(if $(CHAPTER),--chapter $(CHAPTER)) $(if $(PAUSE),--pause)

# The cast is the source: text and picture are made of it, and a test compares them.
.PHONY: recording
recording: programs ## The demo as a recording in docs/recording: asciicast, text and an animated picture
	cd tools && $(GO) build -o ../$(BIN)/recording ./recording
	@mkdir -p docs/recording
	$(BIN)/recording docs/recording demo $(BIN)/demo --controlplane $(CONTROLPLANE) --joiner $(BIN)/joiner \
		--operator $(BIN)/joiner-operator --joinerctl $(BIN)/joinerctl

# Whose machines the cluster of make up has: kwok, or ec2 with an AWS account on this machine.
PROVIDER ?= kwok
.PHONY: up
up: programs ## The same cluster in the foreground, with its console, for your own kubectl and joinerctl, PROVIDER=kwok or ec2; the state stays until make clean
	$(BIN)/demo --controlplane $(CONTROLPLANE) --joiner $(BIN)/joiner --up --provider $(PROVIDER) --dir .run/up$(if $(filter kwok,$(PROVIDER)),,-$(PROVIDER))

.PHONY: test
test: LIMIT_ROUNDS = 10
test: LIMIT_ENFORCED = 0
test: FLEET_NODES = 20
test: FLEET_KILLS = 8
test: DRA_CASES = 20
test: VOLUME_CASES = 15
test: EC2_NODES = 20
test: EC2_KILLS = 3
test: POLICY_POOLS = 20
test: HOSTED_CLUSTERS = 3
test: HANDOVER_NODES = 5
test: ALONGSIDE_MINUTES = 1
test: PLACEMENT_NODES = 100
test: FLEET_CALM = 0
test: FORETOLD_CHANGES = 4
test: NODE_SETTLES = 0
test: LEFT_OUT = charts|dashboards|firstuse
test: unit clusters ## All tests: unit, scripts, laws, contract suites, and end to end on a real control plane

# The module of the plugin, built as a part of the newest Kubernetes, which is the one that localcluster links: its own go.mod asks for
# the oldest (A-36). The tests that need other modules are one of their own.
PLUGIN_TESTS = cd localcluster && CGO_ENABLED=0 $(GO) test -trimpath $(TEST_FLAGS) github.com/joiner-autoscaler/joiner/nodescheduling/...

.PHONY: unit
unit: ## Tests that need no control plane
	$(GO) test $(TEST_FLAGS) ./...
	cd autonodepolicy && $(GO) test $(TEST_FLAGS) ./...
	$(PLUGIN_TESTS)
	cd nodescheduling/test && $(GO) test -count=1 $(TEST_FLAGS) ./...

.PHONY: e2e
e2e: clusters charts-e2e dashboards signals fuzz-public race ## The end-to-end tests in their long forms; the variables that make test sets shorten them

# What make test has of the charts is make charts, a part of make check: the rest takes Helm's programs and minutes.
.PHONY: clusters
clusters: programs
	cd localcluster && $(E2E_ENV) JOINER_LIMIT_ROUNDS='$(LIMIT_ROUNDS)' JOINER_LIMIT_ENFORCED='$(LIMIT_ENFORCED)' \
		JOINER_FLEET_NODES='$(FLEET_NODES)' JOINER_FLEET_KILLS='$(FLEET_KILLS)' \
		JOINER_FLEET_CALM='$(FLEET_CALM)' JOINER_FORETOLD_CHANGES='$(FORETOLD_CHANGES)' JOINER_NODE_SETTLES='$(NODE_SETTLES)' \
		JOINER_EC2_NODES='$(EC2_NODES)' JOINER_EC2_KILLS='$(EC2_KILLS)' \
		JOINER_DEMO_CHAPTER='$(DEMO_CHAPTER)' JOINER_IDLE_MINUTES='$(IDLE_MINUTES)' \
		JOINER_HANDOVER_NODES='$(HANDOVER_NODES)' JOINER_ALONGSIDE_MINUTES='$(ALONGSIDE_MINUTES)' \
		JOINER_POLICY_POOLS='$(POLICY_POOLS)' JOINER_HOSTED_CLUSTERS='$(HOSTED_CLUSTERS)' JOINER_PLACEMENT_NODES='$(PLACEMENT_NODES)' \
		JOINER_DRA_CASES='$(DRA_CASES)' JOINER_VOLUME_CASES='$(VOLUME_CASES)' $(GO) test -trimpath -count=1 $(E2E_FLAGS) $$($(GO) list $(E2E_FIRST) ./... | grep -vE '/e2e/($(LEFT_OUT))$$')

.PHONY: charts-e2e
charts-e2e: $(CONTROLPLANE) $(BIN)/helm3 $(BIN)/helm4 ## U-11: the charts installed, upgraded, rolled back and removed by Helm 3 and 4 on a real API server
	cd localcluster && $(E2E_ENV) $(GO) test -trimpath -count=1 -timeout 60m -v ./e2e/charts

.PHONY: dashboards
dashboards: programs $(BIN)/dashboards ## U-10: every query of the dashboard and of the alerts, by Prometheus' own code over scrapes of programs that work
	cd localcluster && $(E2E_ENV) JOINER_DASHBOARDS_BINARY='$(abspath $(BIN)/dashboards)' $(GO) test -trimpath -count=1 -timeout 30m -v ./e2e/dashboards

# Where the tests of the EC2 provider that set no faults are to run: any server that speaks AWS's protocols. Region and keys are
# AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
ENDPOINT ?=
# Attempts whose text, section or test matches; all of them without.
ATTACKS ?=
.PHONY: attack
attack: programs ## What a tenant tries against policy and protection, and what becomes of it, as a story; ATTACKS=REGEXP for some
	cd localcluster && $(E2E_ENV) $(GO) run ./cmd/attack --only '$(ATTACKS)'

.PHONY: e2e-ec2
e2e-ec2: programs ## E-64: the contract of the EC2 provider, and pods to instances and back, at ENDPOINT=URL (docs/aws.md)
	@test -n '$(ENDPOINT)' || { echo "ENDPOINT is not set: want the URL of a server that speaks AWS's protocols"; exit 2; }
	JOINER_EC2_ENDPOINT='$(ENDPOINT)' $(GO) test -count=1 -timeout 30m -v -run TestContractAnywhere ./internal/provider/ec2
	cd localcluster && $(E2E_ENV) JOINER_EC2_ENDPOINT='$(ENDPOINT)' $(GO) test -trimpath -count=1 -timeout 30m -v -run TestAnywhere ./e2e/ec2

.PHONY: console-e2e
console-e2e: ## U-08, U-38: the console in a headless Chromium, with axe; needs chromium, and npm for axe alone
	cd internal/console/e2e && npm ci --ignore-scripts --no-audit --no-fund && CGO_ENABLED=0 $(GO) test -trimpath -count=1 $(TEST_FLAGS) .

.PHONY: bench-console
bench-console: ## U-08: what the console costs at 300/3,000 and 5,000/100,000, in the controller and in a headless Chromium; needs chromium
	$(GO) test -run NONE -bench U08 -benchtime 20x ./internal/readmodel ./internal/app/serve/readers
	cd internal/console/e2e && CGO_ENABLED=0 $(GO) test -trimpath -count=1 -run NONE -bench U08 -benchtime 1x .

.PHONY: bench-policy
bench-policy: programs ## B-15: one change of the policy for POLICY_POOLS=500 pools, the time and the requests it takes
	cd localcluster && $(E2E_ENV) JOINER_POLICY_POOLS='$(POLICY_POOLS)' $(GO) test -trimpath -count=1 -timeout 30m -v -run TestB15 ./e2e/autonode

.PHONY: bench-operator
bench-operator: programs ## A-47: what joiner-operator costs beside 100 pools, 10 node classes and 1,000 claims at rest, alone and inside another program
	cd localcluster && $(E2E_ENV) JOINER_OPERATOR_SIZES=full $(GO) test -trimpath -count=1 -timeout 30m -v -run TestA47_OneOperator ./e2e/autonode

.PHONY: bench-feeds
bench-feeds: $(CONTROLPLANE) ## A-47: what one management cluster has to do for the policies of POLICY_FEEDS=1000 operators, and after a restart
	cd localcluster && $(E2E_ENV) JOINER_POLICY_FEEDS='$(POLICY_FEEDS)' $(GO) test -trimpath -count=1 -timeout 60m -v -run TestA47_OneManagement ./e2e/autonode

.PHONY: bench-placement
bench-placement: programs ## B-14: what a verdict of the node scheduling policy costs with PLACEMENT_NODES=5000, plugin and webhook
	cd localcluster && $(E2E_ENV) JOINER_PLACEMENT_NODES='$(PLACEMENT_NODES)' $(GO) test -trimpath -count=1 -timeout 30m -v -run TestB14 ./e2e/nodescheduling

.PHONY: bench-conversion
bench-conversion: programs ## V-20: the conversion webhook renews its certificate under at least 1,000 conversions a second
	cd localcluster && $(E2E_ENV) JOINER_CONVERSION_RENEWALS=3 JOINER_CONVERSION_RATE=1000 $(GO) test -trimpath -count=1 -timeout 30m -v \
		-run TestReplicasServeV1beta1 ./e2e/conversion

# How long each fuzz target of what others import is run (A-27), instead of a number of inputs. A time may end while an input is made
# smaller, and then Go calls the run failed. make check tries a part of the inputs.
FUZZ_TIME ?=
FUZZ_PART ?= 1
.PHONY: fuzz-public
fuzz-public: ## The fuzz targets of the module that others import, some ten to forty seconds each, or FUZZ_TIME=; make check takes a quarter
	cd autonodepolicy && for target in fold:FuzzOf:200000 policy:FuzzMergeRequirements:200000 policy:FuzzRootVolume:400000 \
		admission:FuzzClaimRule:30000; do \
		set -- $$(echo $$target | tr ':' ' '); \
		CGO_ENABLED=0 $(GO) test ./$$1 -run '^$$' -fuzz "^$$2$$" -fuzztime $(or $(FUZZ_TIME),$$(($$3 / $(FUZZ_PART)))x) -fuzzminimizetime 20x || exit 1; done

# What is generated is written in place for a moment: whatever compiles beside it would read half of it. The rest may run beside tests.
.PHONY: check
check: generated checks ## Generated files are current, vet, lint, import rules, race-free tests of what has goroutines, tests of the tools, of the alerts, of the charts and of the public module

.PHONY: checks
checks: FUZZ_PART = 4
checks: RACE_PACKAGES = ./internal/world/...
checks: vet lint race fuzz-public alerts charts
	$(GO) test ./internal/tidy/...
	cd tools && $(GO) test -count=1 ./... # a cached result does not know that a page changed: files outside of a module are not part of it
	cd tools/release && $(GO) vet ./... && $(GO) test ./...
	cd autonodepolicy && $(GO) test ./...
	$(PLUGIN_TESTS)
	cd nodescheduling/test && $(GO) test -count=1 ./...

.PHONY: alerts
alerts: ## The alerts of the charts, evaluated by Prometheus' own code (A-43 to A-45)
	cd tools/alerts && CGO_ENABLED=0 $(GO) vet ./... && CGO_ENABLED=0 $(GO) test -count=1 -trimpath $(TEST_FLAGS) ./...

.PHONY: charts
charts: ## The charts as Helm 3 and Helm 4 render and lint them, with each value changed once (U-11)
	cd tools/helm && CGO_ENABLED=0 $(GO) vet -trimpath ./... && CGO_ENABLED=0 $(GO) test -count=1 -trimpath $(TEST_FLAGS) ./...

# One image layout for each program, and joinerctl for each system, below bin (U-11, U-33).
RELEASE := cd tools/release && $(GO) run .
.PHONY: images
images: ## Images of the programs as OCI layouts for two architectures, without a daemon, below bin/images (docs/images.md)
	$(RELEASE) images --source ../.. --out ../../$(BIN)/images

.PHONY: release
release: ## joinerctl for Linux, macOS and Windows as archives with their sums, in bin/release
	$(RELEASE) archives --source ../.. --out ../../$(BIN)/release

# A second time from a clone of the last commit with a cache of its own, so nothing of the first can be in it.
.PHONY: images-check
images-check: images release ## Images and archives are the same bytes when they are built elsewhere, and each program starts from its layout
	@again="$$(mktemp -d)"; trap 'chmod -R u+w "$$again"; rm -rf "$$again"' EXIT; \
	git clone -q . "$$again/clone" && GOCACHE="$$again/cache" $(MAKE) --no-print-directory -C "$$again/clone" images release && \
	diff -r $(BIN)/images "$$again/clone/$(BIN)/images" && diff -r $(BIN)/release "$$again/clone/$(BIN)/release" && \
	for program in "joiner --version" "joiner-operator --version" "joiner-webhook --version" "joinerctl version --client"; do \
		set -- $$program; layout=../../$(BIN)/images/$$1; shift; \
		(cd tools/release && $(GO) run . run --layout "$$layout" -- "$$@") || exit 1; done && \
	(cd $(BIN)/release && sha256sum --quiet -c SHA256SUMS) && echo "the same bytes twice"

# As another operator's build would do it: no workspace, and the module's own go.mod; its Go is newer than Joiner's.
CONSUMER := cd examples/karpenter-operator && GOWORK=off GOFLAGS=-mod=mod GOTOOLCHAIN=auto CGO_ENABLED=0 $(GO)
.PHONY: check-consumers
check-consumers: $(CONTROLPLANE) ## A-28: an operator of others' making that uses the public module, built apart, on two real control planes
	$(CONSUMER) vet -trimpath ./... && GOWORK=off GOFLAGS=-mod=mod GOTOOLCHAIN=auto CGO_ENABLED=0 $(GO) test -trimpath -c -o $(abspath $(BIN))/consumer.test .
	cd localcluster && CGO_ENABLED=0 $(GO) build -trimpath -o $(abspath $(BIN))/pair ./cmd/pair
	$(BIN)/pair --controlplane $(CONTROLPLANE) $(BIN)/consumer.test -test.v

# The oldest and the middle one of the releases that the plugin's module is built with; localcluster links the newest.
UPSTREAM ?= 1.34.0 1.35.4
.PHONY: check-upstream
check-upstream: ## A-36: the plugin's module as a part of older Kubernetes releases, UPSTREAM=; needs the network
	GO='$(GO)' tools/check-upstream.sh $(UPSTREAM)

.PHONY: generate
generate: ## Deep copies and CRDs from the API types, and the dashboard
	tools/generate.sh

# Needs the network, unlike what make check compares.
.PHONY: tables
tables: ## What is known of EC2 without asking it: prices and branch interfaces, from published Go modules
	cd tools && $(GO) run ./ec2tables ../internal/provider/ec2/tables

.PHONY: generated
generated:
	@before="$$(cat $(GENERATED) | cksum)"; tools/generate.sh; if [ "$$before" != "$$(cat $(GENERATED) | cksum)" ]; then \
		echo "Generated files were not current; they are now. Commit them:"; git status --porcelain -- api autonodepolicy nodescheduling charts upstream internal/console/assets docs/pictures; exit 1; fi

.PHONY: vet
vet: localcluster-vet ## go vet in every module
	$(GO) vet ./...
	cd tools && $(GO) vet ./...
	cd autonodepolicy && $(GO) vet ./...
	cd localcluster && CGO_ENABLED=0 $(GO) vet -trimpath github.com/joiner-autoscaler/joiner/nodescheduling/...
	cd nodescheduling/test && $(GO) vet ./...

.PHONY: lint
lint: ## staticcheck and formatting
	@unformatted="$$(gofmt -l $$(git ls-files '*.go'))"; if [ -n "$$unformatted" ]; then echo "not formatted: $$unformatted"; exit 1; fi
	$(GO) tool -modfile=tools/go.mod staticcheck ./...
	cd autonodepolicy && $(GO) tool -modfile=../tools/go.mod staticcheck ./...
	cd nodescheduling/test && $(GO) tool -modfile=../../tools/go.mod staticcheck ./... github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/...

.PHONY: race
race: ## Tests of the core under the race detector, RACE_PACKAGES= (needs a C compiler); make check takes those with goroutines
	CGO_ENABLED=1 $(GO) test -race $(RACE_PACKAGES)

# One seed tells its story; without SEED, N of them from FROM. With CLOUD=ec2 the machines are EC2's.
SEED ?=
CLOUD ?=
FROM ?= 0
N ?= 1000
.PHONY: sim
sim: ## The controllers in simulated worlds with faults: N= seeds, FROM= the first, or SEED= alone, with its story; CLOUD=ec2
	@$(BUILD) -o $(BIN)/joiner-sim ./cmd/joiner-sim
	$(BIN)/joiner-sim $(if $(CLOUD),-cloud $(CLOUD)) $(if $(SEED),-seed $(SEED) -v,-from $(FROM) -n $(N))

.PHONY: sim-mutants
sim-mutants: ## Planted bugs, each of which the simulation has to catch
	@$(BUILD) -o $(BIN)/joiner-sim ./cmd/joiner-sim
	$(BIN)/joiner-sim -mutants internal/sim/testdata/mutants.txt

# One package, or all of those that carry promises; WRITE=1 brings docs/mutants.txt up to date.
PKG ?=
WRITE ?=
.PHONY: mutants
mutants: ## Small changes of the code: those no test notices must be in docs/mutants.txt; PKG= one package, WRITE=1
	@cd tools && $(GO) build -o ../$(BIN)/mutants ./mutants
	$(BIN)/mutants -root . $(if $(WRITE),-write) $(PKG)

# KEEP=1 leaves the cluster of a seed that failed running until Ctrl-C.
KEEP ?=
.PHONY: churn
churn: T = 60s
churn: N = 5
churn: $(CONTROLPLANE) $(BIN)/joiner $(BIN)/churn ## Random users on a real control plane, for T=60s and until it rests: N=5 fresh seeds, or SEED=; KEEP=1
	$(BIN)/churn --controlplane $(CONTROLPLANE) --joiner $(BIN)/joiner --t $(T) $(if $(SEED),--seed $(SEED) --n 1,--n $(N)) $(if $(KEEP),--keep)

.PHONY: rewrite
rewrite: ## Rewrite the expected output of all scripts (docs/scripts.md); the diff is the review
	$(GO) test ./internal/engine ./internal/autonode/merge ./internal/admission/... ./internal/convert ./internal/migrate -run TestScripts -rewrite
	cd nodescheduling/test && $(GO) test . -run TestScripts -rewrite
	$(GO) test ./internal/whatif -run TestScripts -rewrite
	$(GO) test ./internal/view ./internal/cli -run "TestU16|ThePageShows" -rewrite
	$(GO) test ./internal/cli/top -run TestU05_Frames -rewrite
	$(GO) test ./internal/controller/metrics -run "TestU10_ThePageListsTheMetrics|TestK25" -rewrite
	$(GO) test ./internal/provider/ec2/plug -run TestBadInputIsTold -rewrite
	$(GO) test ./upstream/ckao -run TestA39_TheStanzaIsMadeOfTheList -rewrite

# How long each fuzz target runs. Inputs that are merely new are not made smaller for long: by default that takes the whole time.
T ?= 10s
.PHONY: fuzz
fuzz: ## Every fuzz target in turn, each for T=10s; an input that fails is kept below testdata/fuzz
	@git grep --untracked -oE '^func Fuzz[A-Za-z0-9_]+' -- '*_test.go' | sed 's/:func / /' | while read -r file name; do \
		echo "$$name in $${file%/*}"; \
		(cd "$${file%/*}" && CGO_ENABLED=0 $(GO) test -trimpath -run '^$$' -fuzz "^$$name$$" -fuzztime $(T) -fuzzminimizetime 20x .) || exit 1; \
	done

.PHONY: clean
clean: ## Built programs and the state of make up
	rm -rf $(BIN) .run

.PHONY: programs
programs: $(CONTROLPLANE) $(BIN)/joiner $(BIN)/joiner-operator $(BIN)/joiner-webhook $(BIN)/joinerctl $(BIN)/demo

# Go decides itself what is out of date.
.PHONY: $(BIN)/joiner $(BIN)/joiner-operator $(BIN)/joiner-webhook $(BIN)/joinerctl $(BIN)/demo $(BIN)/churn
$(BIN)/joiner $(BIN)/joiner-operator $(BIN)/joiner-webhook $(BIN)/joinerctl:
	@echo "Building $@ ..."
	@$(BUILD) -o $@ ./cmd/$(@F)

# Prometheus' scrapes, storage and engine, from the module of the alerts.
.PHONY: $(BIN)/dashboards
$(BIN)/dashboards:
	@echo "Building $@ ..."
	@cd tools/alerts && $(BUILD) -o ../../$@ ./dashboards

# Helm's own commands, from the module that its libraries are tested in.
.PHONY: $(BIN)/helm3 $(BIN)/helm4
$(BIN)/helm3 $(BIN)/helm4: $(BIN)/helm%:
	@echo "Building $@ ..."
	@cd tools/helm && $(BUILD) -o ../../$@ helm.sh/helm/v$*/cmd/helm

$(BIN)/demo $(BIN)/churn:
	@echo "Building $@ ..."
	@cd localcluster && $(BUILD) -o ../$@ ./cmd/$(@F)
