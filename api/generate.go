// Package api is the root of the public API types. It holds no code, only the commands that generate
// the deepcopy functions and the CRDs from the types; "go generate ./api" runs them, and so does
// tools/generate.sh.
//
// The commands: deepcopy functions beside the types, then CRDs into api/crd, then crdschema, which
// adds to the CRDs what markers cannot say about types of other modules (see tools/crdschema).
package api

//go:generate go tool -modfile=../tools/go.mod controller-gen object:headerFile=/dev/null paths=./karpenter/... paths=./karpenterkwok/...
//go:generate go tool -modfile=../tools/go.mod controller-gen crd paths=./karpenter/... paths=./karpenterkwok/... output:crd:dir=./crd
