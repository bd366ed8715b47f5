# Included by the Makefile at the root of the repository.
#
#   make $(CONTROLPLANE)    builds the control plane binary: five to ten minutes
#                           the first time, seconds afterwards
#
# You can set these variables before the include:
#   BIN                         directory of built programs (bin)
#   CONTROLPLANE_EXTRA_SOURCES  more files that are linked in

LOCALCLUSTER := $(patsubst %/,%,$(dir $(lastword $(MAKEFILE_LIST))))
BIN ?= bin
CONTROLPLANE ?= $(BIN)/controlplane
GO ?= go

# Our own packages that are linked in: the command, and the admission plugin with its packages.
CONTROLPLANE_PACKAGES := $(addprefix $(LOCALCLUSTER)/,cmd/controlplane ../nodescheduling/plugin ../nodescheduling/door \
	../nodescheduling/evaluator ../nodescheduling/api/config/v1 ../nodescheduling/api/v1alpha1)

# Package cluster and the tests only run the binary, so they are not among its sources.
CONTROLPLANE_SOURCES := $(LOCALCLUSTER)/go.mod $(LOCALCLUSTER)/go.sum \
	$(LOCALCLUSTER)/build-controlplane.sh \
	$(filter-out %_test.go,$(wildcard $(addsuffix /*.go,$(CONTROLPLANE_PACKAGES)))) \
	$(CONTROLPLANE_EXTRA_SOURCES)

$(CONTROLPLANE): $(CONTROLPLANE_SOURCES)
	@mkdir -p $(@D)
	@GO='$(GO)' $(LOCALCLUSTER)/build-controlplane.sh $@

# These use the settings of the binary, so vet and tests find its packages in
# the build cache. Other settings would compile all of Kubernetes again.
.PHONY: localcluster-vet localcluster-test
localcluster-vet: ## Run go vet on the module of the local control plane
	cd $(LOCALCLUSTER) && CGO_ENABLED=0 $(GO) vet -trimpath ./...

localcluster-test: $(CONTROLPLANE) ## Start real control planes and test them
	cd $(LOCALCLUSTER) && CGO_ENABLED=0 JOINER_CONTROLPLANE='$(abspath $(CONTROLPLANE))' \
		$(GO) test -trimpath -count=1 ./...
