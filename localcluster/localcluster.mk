# Included by the Makefile at the root of the repository.
#
#   make $(CONTROLPLANE)    the control plane binary, about five minutes the
#                           first time, seconds afterwards
#
# Variables that may be set before the include:
#   BIN                         directory of built programs (bin)
#   CONTROLPLANE_EXTRA_SOURCES  further files that are linked in

LOCALCLUSTER := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
BIN ?= bin
CONTROLPLANE ?= $(BIN)/controlplane
GO ?= go

# Our own packages that are linked in: the command, and the admission plugin with what it is made of.
CONTROLPLANE_PACKAGES := $(addprefix $(LOCALCLUSTER)/,cmd/controlplane ../nodescheduling/plugin ../nodescheduling/door \
	../nodescheduling/evaluator ../nodescheduling/api/config/v1 ../nodescheduling/api/v1alpha1)

# What only runs the binary is not part of it: package cluster, the tests.
CONTROLPLANE_SOURCES := $(LOCALCLUSTER)/go.mod $(LOCALCLUSTER)/go.sum \
	$(LOCALCLUSTER)/build-controlplane.sh \
	$(filter-out %_test.go,$(wildcard $(addsuffix /*.go,$(CONTROLPLANE_PACKAGES)))) \
	$(CONTROLPLANE_EXTRA_SOURCES)

$(CONTROLPLANE): $(CONTROLPLANE_SOURCES)
	@mkdir -p $(@D)
	@GO='$(GO)' $(LOCALCLUSTER)/build-controlplane.sh $@

# The same settings as for the binary, so that vet and tests find its packages
# in the build cache. With others, all of Kubernetes would be compiled again.
.PHONY: localcluster-vet localcluster-test
localcluster-vet: ## Vet the module of the local control plane
	cd $(LOCALCLUSTER) && CGO_ENABLED=0 $(GO) vet -trimpath ./...

localcluster-test: $(CONTROLPLANE) ## Start real control planes and test them
	cd $(LOCALCLUSTER) && CGO_ENABLED=0 JOINER_CONTROLPLANE='$(abspath $(CONTROLPLANE))' \
		$(GO) test -trimpath -count=1 ./...
