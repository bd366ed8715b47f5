// Package deploy holds the manifests that a cluster needs beside the CRDs: the rights of Joiner, and of auditors.
package deploy

import _ "embed"

//go:embed rbac.yaml
var rbac []byte

//go:embed v1beta1.yaml
var v1beta1 []byte

//go:embed audit.yaml
var audit []byte

// Manifests returns the documents by file name, ready for kubectl apply.
func Manifests() map[string][]byte { return map[string][]byte{"rbac.yaml": rbac} }

// V1beta1 returns, in the same form, what joiner needs beside Manifests with --v1beta1.
func V1beta1() map[string][]byte { return map[string][]byte{"v1beta1.yaml": v1beta1} }

// Audit returns, in the same form, the ClusterRole of whoever runs joinerctl audit control-plane.
func Audit() map[string][]byte { return map[string][]byte{"audit.yaml": audit} }
