// Package crd holds the manifests a cluster needs before it can store our kinds: the
// CustomResourceDefinitions, generated from the Go types by tools/generate.sh and never edited by
// hand, and beside them the admission policies that warn where a CRD can only accept or refuse.
//
// Those of the policy for hosted clusters (docs/spec/autonode-policy.md) stand apart, since no cluster
// needs all: a management cluster has AutoNodePolicy, and a hosted cluster the kinds that its users
// write, but not the policy (R1, R8). Scheduler stands apart too: OpenShift has it already, and only the
// protection of control plane nodes (docs/spec/node-scheduling-policy.md) reads it.
package crd

import (
	"embed"
	"fmt"
	"path"
	"strings"
)

//go:embed *.yaml conversion/*.yaml guest/*.yaml management/*.yaml nodescheduling/*.yaml openshift/*.yaml
var files embed.FS

// Manifests returns the YAML documents that a cluster in which Joiner provisions nodes needs, by file
// name, one document to a file, for example "karpenter.sh_nodepools.yaml". The order in which they are
// applied does not matter. The error is one of reading the embedded files, which a build that passes
// its tests does not give.
func Manifests() (map[string][]byte, error) { return manifests(".") }

// Management returns what a management cluster needs: AutoNodePolicy. Form and error are those of
// Manifests.
func Management() (map[string][]byte, error) { return manifests("management") }

// Guest returns what a hosted cluster needs beside Manifests: OpenshiftNodePool and
// OpenshiftEC2NodeClass. Form and error are those of Manifests.
func Guest() (map[string][]byte, error) { return manifests("guest") }

// OpenShift returns what a cluster that is not OpenShift needs for the protection of control plane nodes:
// Scheduler. It must not be applied to an OpenShift cluster, whose own definition it would replace. Form and
// error are those of Manifests.
func OpenShift() (map[string][]byte, error) { return manifests("openshift") }

// NodeScheduling returns what a cluster needs for the protection of control plane nodes where its Scheduler has no
// field for it, as that of OpenShift today: NodeSchedulingGroup. Form and error are those of Manifests.
func NodeScheduling() (map[string][]byte, error) { return manifests("nodescheduling") }

func manifests(folder string) (map[string][]byte, error) {
	entries, err := files.ReadDir(folder)
	if err != nil {
		return nil, fmt.Errorf("listing the embedded manifests: %w", err)
	}
	found := make(map[string][]byte, len(entries))
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".yaml") {
			continue
		}
		content, err := files.ReadFile(path.Join(folder, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading the embedded manifest %s: %w", entry.Name(), err)
		}
		found[entry.Name()] = content
	}
	return found, nil
}
