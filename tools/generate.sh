#!/bin/sh
# Generates the deepcopy functions and CRDs from the types under api/. Needs only Go; the generator's
# version is the one in tools/go.mod. Running it on an unchanged tree changes no file.
set -eu
cd "$(dirname "$0")/.."

types="paths=./api/..."
go tool -modfile=tools/go.mod controller-gen object "$types"
go tool -modfile=tools/go.mod controller-gen crd "$types" output:crd:dir=./api/crd

# CRDs are called <group>_<plural>.yaml; a group has a dot, the policies written by hand have none.
set -- "$PWD"/api/crd/*.*_*.yaml
go run -C tools ./crdschema "$@"
