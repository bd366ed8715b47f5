# Included by the Makefile at the root of the repository.
#
#   make $(CONTROLPLANE)    the control plane binary, about five minutes the
#                           first time, seconds afterwards
#
# Variables that may be set before the include:
#   BIN                         directory of built programs (bin)
#   CONTROLPLANE_EXTRA_SOURCES  files outside localcluster/ that are linked in

LOCALCLUSTER := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
BIN ?= bin
CONTROLPLANE ?= $(BIN)/controlplane
GO ?= go

# Package cluster runs the binary and is not part of it; tests are not either.
CONTROLPLANE_SOURCES := $(LOCALCLUSTER)/go.mod $(LOCALCLUSTER)/go.sum \
	$(LOCALCLUSTER)/build-controlplane.sh \
	$(shell find $(LOCALCLUSTER) -name '*.go' ! -name '*_test.go' ! -path '$(LOCALCLUSTER)/cluster/*') \
	$(CONTROLPLANE_EXTRA_SOURCES)

$(CONTROLPLANE): $(CONTROLPLANE_SOURCES)
	@mkdir -p $(@D)
	@GO='$(GO)' $(LOCALCLUSTER)/build-controlplane.sh $@

.PHONY: localcluster-test
localcluster-test: $(CONTROLPLANE) ## Start real control planes and test them
	cd $(LOCALCLUSTER) && JOINER_CONTROLPLANE='$(abspath $(CONTROLPLANE))' $(GO) test -count=1 ./...
