# Included by the Makefile at the root of the repository.
#
#   make bench           every scenario for both sides; takes hours, nearly all of them for the peer
#   make bench QUICK=1   sizes up to 5,000, fewer repetitions
#   make bench BENCH_FLAGS='-scenarios plain-100k -sides joiner'
#   make bench BENCH_FLAGS='-scenarios system-500 -rounds 1'
#   make waves           plans against a model of kube-scheduler; takes seconds
#   make takeover        hands a running cluster from Karpenter to Joiner, and back
#   make signals         compares metrics, events, tables and logs of both sides after one scenario;
#                        SIGNALS_FLAGS=-rewrite writes the page
#
# The peer is Karpenter. It needs a newer Go than Joiner; the go command fetches it (GOTOOLCHAIN=auto).

BENCH := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
BIN ?= bin
GO ?= go
BENCH_FLAGS ?=
BENCH_GO := cd $(BENCH) && GOTOOLCHAIN=auto CGO_ENABLED=0 $(GO)

.PHONY: bench oraclecheck bench-test bench-vet takeover signals $(BIN)/karpenter
bench: oraclecheck $(CONTROLPLANE) $(BIN)/joiner $(BIN)/karpenter ## Compare Joiner with Karpenter on the same inputs: bench/results.json; QUICK=1 for small sizes
	@$(BENCH_GO) build -trimpath -o $(abspath $(BIN))/bench .
	@$(BIN)/bench $(if $(QUICK),-quick) -out $(BENCH)/results.json $(BENCH_FLAGS)

.PHONY: waves
waves: ## Compare nodes planned and launched, with a model of kube-scheduler (B-16); BENCH_FLAGS=
	@$(BENCH_GO) build -trimpath -o $(abspath $(BIN))/waves ./waves
	@$(BIN)/waves $(BENCH_FLAGS)

oraclecheck: ## Build the program that checks plans with kube-scheduler's plugins
	@cd $(BENCH)/../localcluster && CGO_ENABLED=0 $(GO) build -trimpath -o $(abspath $(BIN))/oraclecheck ./cmd/oraclecheck

$(BIN)/karpenter: ## Build Karpenter's own controller for KWOK nodes
	@echo "Building $@ ..."
	@$(BENCH_GO) build -trimpath -o $(abspath $@) sigs.k8s.io/karpenter/kwok

BENCH_ENV = JOINER_JOINERCTL='$(abspath $(BIN)/joinerctl)' JOINER_CONTROLPLANE='$(abspath $(CONTROLPLANE))' JOINER_BINARY='$(abspath $(BIN)/joiner)' JOINER_PEER='$(abspath $(BIN)/karpenter)' \
	JOINER_HELM4='$(abspath $(BIN)/helm4)' JOINER_SWITCH_ROUNDS='$(SWITCH_ROUNDS)'

# How many times a release of Karpenter's chart is switched to Joiner and back under load. bench-test does it once.
SWITCH_ROUNDS ?= 3
bench-test: SWITCH_ROUNDS = 1

SIGNALS_FLAGS ?=
signals: $(CONTROLPLANE) $(BIN)/joiner $(BIN)/karpenter ## Compare metrics, events, tables and logs of both sides (K-08 to K-19, docs/metrics-parity.md)
	cd $(BENCH) && $(BENCH_ENV) GOTOOLCHAIN=auto CGO_ENABLED=0 $(GO) test -trimpath -count=1 -timeout 60m -v ./signals $(SIGNALS_FLAGS)

takeover: $(CONTROLPLANE) $(BIN)/joiner $(BIN)/joinerctl $(BIN)/karpenter $(BIN)/helm4 ## Hand a running cluster from Karpenter to Joiner and back, with equal drift hashes (P-34)
	cd $(BENCH) && $(BENCH_ENV) GOTOOLCHAIN=auto CGO_ENABLED=0 $(GO) test -trimpath -count=1 -timeout 60m -v ./takeover ./internal/karpenter

bench-test: $(CONTROLPLANE) $(BIN)/joiner $(BIN)/joinerctl $(BIN)/karpenter $(BIN)/helm4 ## Test the benchmark itself, and the takeover
	cd $(BENCH) && $(BENCH_ENV) GOTOOLCHAIN=auto CGO_ENABLED=0 $(GO) test -trimpath ./...

bench-vet: ## Run go vet on the module of the benchmark
	$(BENCH_GO) vet -trimpath ./...
