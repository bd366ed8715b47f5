# Included by the Makefile at the root of the repository.
#
#   make bench           every scenario, both sides: hours, nearly all of them the peer's
#   make bench QUICK=1   sizes up to 5,000, fewer repetitions
#   make bench BENCH_FLAGS='-scenarios plain-100k -sides joiner'
#   make bench BENCH_FLAGS='-scenarios system-500 -rounds 1'
#   make waves           plans against a model of kube-scheduler, seconds
#   make takeover        a cluster goes from Karpenter to Joiner and back
#   make signals         metrics, events, tables and logs of both sides after one scenario; SIGNALS_FLAGS=-rewrite writes the page
#
# The peer asks for a newer Go than Joiner does; the go command fetches it (GOTOOLCHAIN=auto).

BENCH := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
BIN ?= bin
GO ?= go
BENCH_FLAGS ?=
BENCH_GO := cd $(BENCH) && GOTOOLCHAIN=auto CGO_ENABLED=0 $(GO)

.PHONY: bench oraclecheck bench-test bench-vet takeover signals $(BIN)/karpenter
bench: oraclecheck $(CONTROLPLANE) $(BIN)/joiner $(BIN)/karpenter ## Joiner against Karpenter on the same inputs; bench/results.json. QUICK=1 for small sizes
	@$(BENCH_GO) build -trimpath -o $(abspath $(BIN))/bench .
	@$(BIN)/bench $(if $(QUICK),-quick) -out $(BENCH)/results.json $(BENCH_FLAGS)

.PHONY: waves
waves: ## Plans against a model of kube-scheduler: nodes planned and launched (B-16). BENCH_FLAGS='-scenarios mixed-500 -inputs 10'
	@$(BENCH_GO) build -trimpath -o $(abspath $(BIN))/waves ./waves
	@$(BIN)/waves $(BENCH_FLAGS)

oraclecheck: ## The program that checks plans by kube-scheduler's plugins
	@cd $(BENCH)/../localcluster && CGO_ENABLED=0 $(GO) build -trimpath -o $(abspath $(BIN))/oraclecheck ./cmd/oraclecheck

$(BIN)/karpenter: ## Karpenter's own controller for KWOK nodes
	@echo "Building $@ ..."
	@$(BENCH_GO) build -trimpath -o $(abspath $@) sigs.k8s.io/karpenter/kwok

BENCH_ENV = JOINER_JOINERCTL='$(abspath $(BIN)/joinerctl)' JOINER_CONTROLPLANE='$(abspath $(CONTROLPLANE))' JOINER_BINARY='$(abspath $(BIN)/joiner)' JOINER_PEER='$(abspath $(BIN)/karpenter)' \
	JOINER_HELM4='$(abspath $(BIN)/helm4)' JOINER_SWITCH_ROUNDS='$(SWITCH_ROUNDS)'

# How many times the release of Karpenter's chart goes there and back under load; the tests of the module do it once.
SWITCH_ROUNDS ?= 3
bench-test: SWITCH_ROUNDS = 1

SIGNALS_FLAGS ?=
signals: $(CONTROLPLANE) $(BIN)/joiner $(BIN)/karpenter ## K-08 to K-19: metrics, events, tables and logs of both sides after one scenario, docs/metrics-parity.md
	cd $(BENCH) && $(BENCH_ENV) GOTOOLCHAIN=auto CGO_ENABLED=0 $(GO) test -trimpath -count=1 -timeout 60m -v ./signals $(SIGNALS_FLAGS)

takeover: $(CONTROLPLANE) $(BIN)/joiner $(BIN)/joinerctl $(BIN)/karpenter $(BIN)/helm4 ## Joiner takes a running cluster over from Karpenter and hands it back; equal drift hashes (P-34)
	cd $(BENCH) && $(BENCH_ENV) GOTOOLCHAIN=auto CGO_ENABLED=0 $(GO) test -trimpath -count=1 -timeout 60m -v ./takeover ./internal/karpenter

bench-test: $(CONTROLPLANE) $(BIN)/joiner $(BIN)/joinerctl $(BIN)/karpenter $(BIN)/helm4 ## Tests of the benchmark itself, and of the takeover
	cd $(BENCH) && $(BENCH_ENV) GOTOOLCHAIN=auto CGO_ENABLED=0 $(GO) test -trimpath ./...

bench-vet: ## Vet the module of the benchmark
	$(BENCH_GO) vet -trimpath ./...
