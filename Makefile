# Joiner. `make help` lists the targets. You need Go, git and make; everything else is built from Go modules.

GO ?= go
BIN := bin
# Builds are reproducible: they contain no paths and no version control state. They need no C, so any machine with Go
# can build. Programs, tests and vet share these settings; otherwise all dependencies would be compiled twice.
export CGO_ENABLED := 0
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath
BUILD := $(GO) build -trimpath
TEST_FLAGS ?=
# Most of these tests only wait. But with three at a time, in two packages at once, API servers on two cores sometimes
# starve.
E2E_FLAGS ?= -timeout 180m -parallel 2
E2E_ENV = CGO_ENABLED=0 JOINER_CONTROLPLANE='$(abspath $(CONTROLPLANE))' JOINER_BINARY='$(abspath $(BIN)/joiner)' \
	JOINER_OPERATOR_BINARY='$(abspath $(BIN)/joiner-operator)' JOINER_WEBHOOK_BINARY='$(abspath $(BIN)/joiner-webhook)' \
	JOINER_HELM3='$(abspath $(BIN)/helm3)' JOINER_HELM4='$(abspath $(BIN)/helm4)'
# Rounds of scale-up and scale-down in which two controllers must keep a hard limit (L-14).
LIMIT_ROUNDS ?= 200
# 1 makes the test of late launches wait until HardLimitEnforced is True. That takes three and a half minutes.
LIMIT_ENFORCED ?= 1
FLEET_NODES ?= 500
FLEET_KILLS ?= 50
DRA_CASES ?= 200
VOLUME_CASES ?= 60
# For the EC2 provider: nodes whose calls are counted (E-61), and how often Joiner is killed during a launch (E-37).
EC2_NODES ?= 500
EC2_KILLS ?= 50
# OpenshiftNodePools that a policy change must reach (B-15).
POLICY_POOLS ?= 500
# Hosted clusters that share one management cluster (A-10).
HOSTED_CLUSTERS ?= 20
# Operators whose policies are on one management cluster (A-47). For make bench-feeds alone.
POLICY_FEEDS ?= 1000
# 1 also runs the fleet test without kills, to compare the price.
FLEET_CALM ?= 1
# How many of the ten changes are foretold and then made (U-03).
FORETOLD_CHANGES ?= 10
# 1 makes the test of handmade nodes wait a minute, until one is judged (A-19).
NODE_SETTLES ?= 1
# Nodes that a hand-over between two operators must leave alone, and minutes for which both operators run (A-30, A-33).
HANDOVER_NODES ?= 20
ALONGSIDE_MINUTES ?= 5
# These packages start first, in this order. If a slow package started last, everything would wait for it.
E2E_FIRST := ./e2e ./e2e/autonode ./e2e/nodescheduling ./e2e/ec2 ./e2e/conversion
# Packages of end-to-end tests that are left out. The charts and the dashboards have their own targets. make test also
# leaves out firstuse, which types the quick start and runs the demo as a user does. tools/pages, a part of make check,
# parses the same pages.
LEFT_OUT ?= charts|dashboards
# The chapter that the test with two demos at once runs (empty: all), and minutes for which an idle cluster is watched.
DEMO_CHAPTER ?=
IDLE_MINUTES ?= 5
# Nodes of the clusters in which the latency of the node scheduling policy is measured (B-14).
PLACEMENT_NODES ?= 5000
# make check runs the race detector on code with goroutines. make e2e also runs it on the packages that decide.
# internal/tidy forbids goroutines there, so the detector can only find races between parallel tests.
RACE_PACKAGES ?= ./internal/engine/... ./internal/world/... ./internal/translate/...

GENERATED = $$(find api autonodepolicy/api nodescheduling/api charts/*/files charts/*/crds upstream/openshift-api/crd -name 'zz_generated*' -o -name '*.yaml' -o -name 'dashboard.json' | sort; find internal/console/assets docs/pictures -type f | sort)

include localcluster/localcluster.mk
include bench/bench.mk

.DEFAULT_GOAL := help

.PHONY: help
help: ## Print this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' Makefile bench/bench.mk

# CHAPTER= runs one chapter alone. PAUSE=1 waits for Enter before each step.
CHAPTER ?=
PAUSE ?=
.PHONY: demo
demo: programs ## Run the demo on real control planes with simulated machines; CHAPTER=, PAUSE=1
	$(BIN)/demo --controlplane $(CONTROLPLANE) --joiner $(BIN)/joiner --operator $(BIN)/joiner-operator --joinerctl $(BIN)/joinerctl \
		$(if $(CHAPTER),--chapter $(CHAPTER)) $(if $(PAUSE),--pause)

# The cast is the source: text and picture are made from it, and a test compares them.
.PHONY: recording
recording: programs ## Record the demo in docs/recording: asciicast, text and an animated picture
	cd tools && $(GO) build -o ../$(BIN)/recording ./recording
	@mkdir -p docs/recording
	$(BIN)/recording docs/recording demo $(BIN)/demo --controlplane $(CONTROLPLANE) --joiner $(BIN)/joiner \
		--operator $(BIN)/joiner-operator --joinerctl $(BIN)/joinerctl

# The provider of make up: kwok, or ec2 with a simulated AWS account on this machine.
PROVIDER ?= kwok
.PHONY: up
up: programs ## Run the demo's cluster in the foreground; PROVIDER=kwok or ec2; state stays until make clean
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
test: unit clusters ## Run the unit tests, and the end-to-end tests in their short forms (docs/tests.md)

# The plugin's module, built as a part of the newest Kubernetes, which localcluster links. Its own go.mod asks for the
# oldest (A-36). Tests that need more modules are in a module of their own, nodescheduling/test.
PLUGIN_TESTS = cd localcluster && CGO_ENABLED=0 $(GO) test -trimpath $(TEST_FLAGS) github.com/joiner-autoscaler/joiner/nodescheduling/...

.PHONY: unit
unit: ## Run the tests that need no control plane
	$(GO) test $(TEST_FLAGS) ./...
	cd autonodepolicy && $(GO) test $(TEST_FLAGS) ./...
	$(PLUGIN_TESTS)
	cd nodescheduling/test && $(GO) test -count=1 $(TEST_FLAGS) ./...

.PHONY: e2e
e2e: clusters charts-e2e dashboards signals fuzz-public race ## Run the end-to-end tests in their long forms; also charts, dashboards, signals and races

# charts-e2e is not a part of make test: it needs Helm's programs and takes minutes. make check renders and lints the
# charts.
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
charts-e2e: $(CONTROLPLANE) $(BIN)/helm3 $(BIN)/helm4 ## Install, upgrade, roll back and remove the charts with Helm 3 and 4 (U-11)
	cd localcluster && $(E2E_ENV) $(GO) test -trimpath -count=1 -timeout 60m -v ./e2e/charts

.PHONY: dashboards
dashboards: programs $(BIN)/dashboards ## Run every query of the dashboard and the alerts over scrapes of running programs (U-10)
	cd localcluster && $(E2E_ENV) JOINER_DASHBOARDS_BINARY='$(abspath $(BIN)/dashboards)' $(GO) test -trimpath -count=1 -timeout 30m -v ./e2e/dashboards

# The server for those tests of the EC2 provider that set no faults: any server that speaks AWS's protocols. Its region
# and keys are AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.
ENDPOINT ?=
# A regular expression: only attempts whose text, section or test matches. Empty: all.
ATTACKS ?=
.PHONY: attack
attack: programs ## Run a tenant's attacks on policy and protection, and tell what stops each; ATTACKS=REGEXP
	cd localcluster && $(E2E_ENV) $(GO) run ./cmd/attack --only '$(ATTACKS)'

.PHONY: e2e-ec2
e2e-ec2: programs ## Test the EC2 provider's contract, and scale up and down, at ENDPOINT=URL (E-64, docs/aws.md)
	@test -n '$(ENDPOINT)' || { echo "ENDPOINT is not set: want the URL of a server that speaks AWS's protocols"; exit 2; }
	JOINER_EC2_ENDPOINT='$(ENDPOINT)' $(GO) test -count=1 -timeout 30m -v -run TestContractAnywhere ./internal/provider/ec2
	cd localcluster && $(E2E_ENV) JOINER_EC2_ENDPOINT='$(ENDPOINT)' $(GO) test -trimpath -count=1 -timeout 30m -v -run TestAnywhere ./e2e/ec2

.PHONY: console-e2e
console-e2e: ## Test the console in a headless Chromium; needs chromium, and npm to fetch axe (U-08, U-38)
	cd internal/console/e2e && npm ci --ignore-scripts --no-audit --no-fund && CGO_ENABLED=0 $(GO) test -trimpath -count=1 $(TEST_FLAGS) .

.PHONY: bench-console
bench-console: ## Measure the console with up to 5,000 nodes and 100,000 pods; needs chromium (U-08)
	$(GO) test -run NONE -bench U08 -benchtime 20x ./internal/readmodel ./internal/app/serve/readers
	cd internal/console/e2e && CGO_ENABLED=0 $(GO) test -trimpath -count=1 -run NONE -bench U08 -benchtime 1x .

.PHONY: bench-policy
bench-policy: programs ## Measure time and requests of one policy change for POLICY_POOLS=500 pools (B-15)
	cd localcluster && $(E2E_ENV) JOINER_POLICY_POOLS='$(POLICY_POOLS)' $(GO) test -trimpath -count=1 -timeout 30m -v -run TestB15 ./e2e/autonode

.PHONY: bench-operator
bench-operator: programs ## Measure joiner-operator at rest, alone and inside another program, with 1,000 claims (A-47)
	cd localcluster && $(E2E_ENV) JOINER_OPERATOR_SIZES=full $(GO) test -trimpath -count=1 -timeout 30m -v -run TestA47_OneOperator ./e2e/autonode

.PHONY: bench-feeds
bench-feeds: $(CONTROLPLANE) ## Measure the load of POLICY_FEEDS=1000 operators on a management cluster (A-47)
	cd localcluster && $(E2E_ENV) JOINER_POLICY_FEEDS='$(POLICY_FEEDS)' $(GO) test -trimpath -count=1 -timeout 60m -v -run TestA47_OneManagement ./e2e/autonode

.PHONY: bench-placement
bench-placement: programs ## Measure the latency of the node scheduling policy with PLACEMENT_NODES=5000 (B-14)
	cd localcluster && $(E2E_ENV) JOINER_PLACEMENT_NODES='$(PLACEMENT_NODES)' $(GO) test -trimpath -count=1 -timeout 30m -v -run TestB14 ./e2e/nodescheduling

.PHONY: bench-conversion
bench-conversion: programs ## Renew the conversion webhook's certificate under 1,000 or more conversions a second (V-20)
	cd localcluster && $(E2E_ENV) JOINER_CONVERSION_RENEWALS=3 JOINER_CONVERSION_RATE=1000 $(GO) test -trimpath -count=1 -timeout 30m -v \
		-run TestReplicasServeV1beta1 ./e2e/conversion

# How long each fuzz target of the public module runs (A-27). Empty: each tries a number of inputs. If the time ends
# while Go minimizes an input, Go calls the run failed. make check tries a quarter of the inputs.
FUZZ_TIME ?=
FUZZ_PART ?= 1
.PHONY: fuzz-public
fuzz-public: ## Run the public module's fuzz targets, 10 to 40 s each or FUZZ_TIME=; make check runs a quarter
	cd autonodepolicy && for target in fold:FuzzOf:200000 policy:FuzzMergeRequirements:200000 policy:FuzzRootVolume:400000 \
		admission:FuzzClaimRule:30000; do \
		set -- $$(echo $$target | tr ':' ' '); \
		CGO_ENABLED=0 $(GO) test ./$$1 -run '^$$' -fuzz "^$$2$$" -fuzztime $(or $(FUZZ_TIME),$$(($$3 / $(FUZZ_PART)))x) -fuzzminimizetime 20x || exit 1; done

# generated writes files in place, so nothing may compile at the same time: it could read half a file. checks may run
# in parallel with tests.
.PHONY: check
check: generated checks ## Check generated files, vet, lint, races, fuzz targets, alerts, charts, code rules and tools

.PHONY: checks
checks: FUZZ_PART = 4
checks: RACE_PACKAGES = ./internal/world/...
checks: vet lint race fuzz-public alerts charts
	$(GO) test ./internal/tidy/...
	cd tools && $(GO) test -count=1 ./... # a cached result ignores changed pages: they are outside the module
	cd tools/release && $(GO) vet ./... && $(GO) test ./...
	cd autonodepolicy && $(GO) test ./...
	$(PLUGIN_TESTS)
	cd nodescheduling/test && $(GO) test -count=1 ./...

.PHONY: alerts
alerts: ## Test the alerts of the charts with Prometheus' own code (A-43 to A-45)
	cd tools/alerts && CGO_ENABLED=0 $(GO) vet ./... && CGO_ENABLED=0 $(GO) test -count=1 -trimpath $(TEST_FLAGS) ./...

.PHONY: charts
charts: ## Render and lint the charts with Helm 3 and Helm 4, with each value changed once (U-11)
	cd tools/helm && CGO_ENABLED=0 $(GO) vet -trimpath ./... && CGO_ENABLED=0 $(GO) test -count=1 -trimpath $(TEST_FLAGS) ./...

# Below bin: an image layout for each program, and joinerctl for each system (U-11, U-33).
RELEASE := cd tools/release && $(GO) run .
.PHONY: images
images: ## Build images for two architectures as OCI layouts in bin/images (docs/images.md)
	$(RELEASE) images --source ../.. --out ../../$(BIN)/images

.PHONY: release
release: ## Build archives of joinerctl for Linux, macOS and Windows, with checksums, in bin/release
	$(RELEASE) archives --source ../.. --out ../../$(BIN)/release

# The second build starts from a clone of the last commit and an empty cache, so it can reuse nothing of the first.
.PHONY: images-check
images-check: images release ## Build images and archives twice, compare the bytes, and start the programs
	@again="$$(mktemp -d)"; trap 'chmod -R u+w "$$again"; rm -rf "$$again"' EXIT; \
	git clone -q . "$$again/clone" && GOCACHE="$$again/cache" $(MAKE) --no-print-directory -C "$$again/clone" images release && \
	diff -r $(BIN)/images "$$again/clone/$(BIN)/images" && diff -r $(BIN)/release "$$again/clone/$(BIN)/release" && \
	for program in "joiner --version" "joiner-operator --version" "joiner-webhook --version" "joinerctl version --client"; do \
		set -- $$program; layout=../../$(BIN)/images/$$1; shift; \
		(cd tools/release && $(GO) run . run --layout "$$layout" -- "$$@") || exit 1; done && \
	(cd $(BIN)/release && sha256sum --quiet -c SHA256SUMS) && echo "the same bytes twice"

# Builds as another operator would: without a workspace, with the module's own go.mod. Its Go is newer than Joiner's.
CONSUMER := cd examples/karpenter-operator && GOWORK=off GOFLAGS=-mod=mod GOTOOLCHAIN=auto CGO_ENABLED=0 $(GO)
.PHONY: check-consumers
check-consumers: $(CONTROLPLANE) ## Build an operator that imports the public module; test it on two control planes (A-28)
	$(CONSUMER) vet -trimpath ./... && GOWORK=off GOFLAGS=-mod=mod GOTOOLCHAIN=auto CGO_ENABLED=0 $(GO) test -trimpath -c -o $(abspath $(BIN))/consumer.test .
	cd localcluster && CGO_ENABLED=0 $(GO) build -trimpath -o $(abspath $(BIN))/pair ./cmd/pair
	$(BIN)/pair --controlplane $(CONTROLPLANE) $(BIN)/consumer.test -test.v

# The oldest and the middle release that the plugin's module must build with. localcluster links the newest.
UPSTREAM ?= 1.34.0 1.35.4
.PHONY: check-upstream
check-upstream: ## Build the plugin's module in older Kubernetes releases, UPSTREAM=; needs the network (A-36)
	GO='$(GO)' tools/check-upstream.sh $(UPSTREAM)

.PHONY: generate
generate: ## Generate deep copies, CRDs, dashboard, diagrams and the console's page; copy files into charts
	tools/generate.sh

# Needs the network, so make generate and make check leave it out.
.PHONY: tables
tables: ## Update the EC2 tables of prices and branch interfaces from Go modules; needs the network
	cd tools && $(GO) run ./ec2tables ../internal/provider/ec2/tables

.PHONY: generated
generated:
	@before="$$(cat $(GENERATED) | cksum)"; tools/generate.sh; if [ "$$before" != "$$(cat $(GENERATED) | cksum)" ]; then \
		echo "Generated files were not current; they are now. Commit them:"; git status --porcelain -- api autonodepolicy nodescheduling charts upstream internal/console/assets docs/pictures; exit 1; fi

.PHONY: vet
vet: localcluster-vet ## Run go vet in the main module, tools, the public module, localcluster and the plugin
	$(GO) vet ./...
	cd tools && $(GO) vet ./...
	cd autonodepolicy && $(GO) vet ./...
	cd localcluster && CGO_ENABLED=0 $(GO) vet -trimpath github.com/joiner-autoscaler/joiner/nodescheduling/...
	cd nodescheduling/test && $(GO) vet ./...

.PHONY: lint
lint: ## Check formatting, and run staticcheck
	@unformatted="$$(gofmt -l $$(git ls-files '*.go'))"; if [ -n "$$unformatted" ]; then echo "not formatted: $$unformatted"; exit 1; fi
	$(GO) tool -modfile=tools/go.mod staticcheck ./...
	cd autonodepolicy && $(GO) tool -modfile=../tools/go.mod staticcheck ./...
	cd nodescheduling/test && $(GO) tool -modfile=../../tools/go.mod staticcheck ./... github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/...

.PHONY: race
race: ## Test RACE_PACKAGES= under the race detector; needs a C compiler
	CGO_ENABLED=1 $(GO) test -race $(RACE_PACKAGES)

# SEED= runs one seed and tells its story. Without it, N seeds run, from FROM on. CLOUD=ec2 simulates EC2's machines.
SEED ?=
CLOUD ?=
FROM ?= 0
N ?= 1000
.PHONY: sim
sim: ## Simulate the controllers with faults: N= seeds from FROM=, or the story of SEED=; CLOUD=ec2
	@$(BUILD) -o $(BIN)/joiner-sim ./cmd/joiner-sim
	$(BIN)/joiner-sim $(if $(CLOUD),-cloud $(CLOUD)) $(if $(SEED),-seed $(SEED) -v,-from $(FROM) -n $(N))

.PHONY: sim-mutants
sim-mutants: ## Plant the bugs of a list; the simulation must catch each one
	@$(BUILD) -o $(BIN)/joiner-sim ./cmd/joiner-sim
	$(BIN)/joiner-sim -mutants internal/sim/testdata/mutants.txt

# PKG= is one package; by default those of tools/mutants/packages.go. WRITE=1 updates docs/mutants.txt.
PKG ?=
WRITE ?=
.PHONY: mutants
mutants: ## Plant small bugs; those that no test notices must be in docs/mutants.txt; PKG=, WRITE=1
	@cd tools && $(GO) build -o ../$(BIN)/mutants ./mutants
	$(BIN)/mutants -root . $(if $(WRITE),-write) $(PKG)

# KEEP=1 keeps the cluster of a failed seed running until Ctrl-C.
KEEP ?=
.PHONY: churn
churn: T = 60s
churn: N = 5
churn: $(CONTROLPLANE) $(BIN)/joiner $(BIN)/churn ## Run random users on a real control plane for T=60s: N=5 fresh seeds, or SEED=; KEEP=1
	$(BIN)/churn --controlplane $(CONTROLPLANE) --joiner $(BIN)/joiner --t $(T) $(if $(SEED),--seed $(SEED) --n 1,--n $(N)) $(if $(KEEP),--keep)

.PHONY: rewrite
rewrite: ## Rewrite the expected output in scripts and on pages (docs/scripts.md); the diff is the review
	$(GO) test ./internal/engine ./internal/autonode/merge ./internal/admission/... ./internal/convert ./internal/migrate -run TestScripts -rewrite
	cd nodescheduling/test && $(GO) test . -run TestScripts -rewrite
	$(GO) test ./internal/whatif -run TestScripts -rewrite
	$(GO) test ./internal/view ./internal/cli -run "TestU16|ThePageShows" -rewrite
	$(GO) test ./internal/cli/top -run TestU05_Frames -rewrite
	$(GO) test ./internal/controller/metrics -run "TestU10_ThePageListsTheMetrics|TestK25" -rewrite
	$(GO) test ./internal/provider/ec2/plug -run TestBadInputIsTold -rewrite
	$(GO) test ./upstream/ckao -run TestA39_TheStanzaIsMadeOfTheList -rewrite

# How long each fuzz target runs. -fuzzminimizetime limits how long new inputs are minimized: by default that takes all
# the time.
T ?= 10s
.PHONY: fuzz
fuzz: ## Run every fuzz target in turn for T=10s; failing inputs are kept below testdata/fuzz
	@git grep --untracked -oE '^func Fuzz[A-Za-z0-9_]+' -- '*_test.go' | sed 's/:func / /' | while read -r file name; do \
		echo "$$name in $${file%/*}"; \
		(cd "$${file%/*}" && CGO_ENABLED=0 $(GO) test -trimpath -run '^$$' -fuzz "^$$name$$" -fuzztime $(T) -fuzzminimizetime 20x .) || exit 1; \
	done

.PHONY: clean
clean: ## Remove built programs and the state of make up
	rm -rf $(BIN) .run

.PHONY: programs
programs: $(CONTROLPLANE) $(BIN)/joiner $(BIN)/joiner-operator $(BIN)/joiner-webhook $(BIN)/joinerctl $(BIN)/demo

# These are phony because Go decides what is out of date.
.PHONY: $(BIN)/joiner $(BIN)/joiner-operator $(BIN)/joiner-webhook $(BIN)/joinerctl $(BIN)/demo $(BIN)/churn
$(BIN)/joiner $(BIN)/joiner-operator $(BIN)/joiner-webhook $(BIN)/joinerctl:
	@echo "Building $@ ..."
	@$(BUILD) -o $@ ./cmd/$(@F)

# Prometheus' scrapes, storage and engine, from the module tools/alerts.
.PHONY: $(BIN)/dashboards
$(BIN)/dashboards:
	@echo "Building $@ ..."
	@cd tools/alerts && $(BUILD) -o ../../$@ ./dashboards

# Helm's own commands, built from the module tools/helm, whose tests use Helm's libraries.
.PHONY: $(BIN)/helm3 $(BIN)/helm4
$(BIN)/helm3 $(BIN)/helm4: $(BIN)/helm%:
	@echo "Building $@ ..."
	@cd tools/helm && $(BUILD) -o ../../$@ helm.sh/helm/v$*/cmd/helm

$(BIN)/demo $(BIN)/churn:
	@echo "Building $@ ..."
	@cd localcluster && $(BUILD) -o ../$@ ./cmd/$(@F)
