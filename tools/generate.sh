#!/bin/sh
# Generates the deepcopy functions and CRDs from the types under api/. Needs only Go; the generator's
# version is the one in tools/go.mod. Running it on an unchanged tree changes no file.
set -eu
cd "$(dirname "$0")/.."

types="paths=./api/..."
go tool -modfile=tools/go.mod controller-gen object "$types"
for group in karpenter karpenterkwok karpenteraws; do
	go tool -modfile=tools/go.mod controller-gen crd "paths=./api/$group/..." output:crd:dir=./api/crd
done
# What a hosted cluster has, and what its users must not see (R1, R8).
go tool -modfile=tools/go.mod controller-gen crd "paths=./api/hypershift/..." output:crd:dir=./api/crd/guest
mkdir -p api/crd/management
mv api/crd/guest/*_autonodepolicies.yaml api/crd/management/
# What OpenShift has already, for clusters that are not OpenShift.
go tool -modfile=tools/go.mod controller-gen crd "paths=./api/openshiftconfig/..." output:crd:dir=./api/crd/openshift

# CRDs are called <group>_<plural>.yaml; a group has a dot, the policies written by hand have none.
set -- "$PWD"/api/crd/*.*_*.yaml "$PWD"/api/crd/*/*.yaml
go run -C tools ./crdschema "$@"

# Helm reads nothing outside of a chart.
cp api/crd/management/*.yaml charts/joiner-operator/files/
cp api/crd/guest/*.yaml charts/joiner-operator-guest/files/
