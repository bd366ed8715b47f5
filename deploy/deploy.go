// Package deploy holds the manifests that a cluster needs beside the CRDs: what Joiner may do there.
package deploy

import _ "embed"

//go:embed rbac.yaml
var rbac []byte

// Manifests returns the documents by file name, ready for kubectl apply.
func Manifests() map[string][]byte { return map[string][]byte{"rbac.yaml": rbac} }
