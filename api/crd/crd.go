// Package crd holds the manifests a cluster needs before it can store our kinds: the
// CustomResourceDefinitions, generated from the Go types by tools/generate.sh and never edited by
// hand, and beside them the admission policies that warn where a CRD can only accept or refuse.
package crd

import (
	"embed"
	"fmt"
)

//go:embed *.yaml
var files embed.FS

// Manifests returns the YAML documents by file name, one document to a file, for example
// "karpenter.sh_nodepools.yaml". The order in which they are applied does not matter. The error is
// one of reading the embedded files, which a build that passes its tests does not give.
func Manifests() (map[string][]byte, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("listing the embedded manifests: %w", err)
	}
	manifests := make(map[string][]byte, len(entries))
	for _, entry := range entries {
		content, err := files.ReadFile(entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the embedded manifest %s: %w", entry.Name(), err)
		}
		manifests[entry.Name()] = content
	}
	return manifests, nil
}
