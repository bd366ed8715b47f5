package autonode

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/joiner-autoscaler/joiner/api/crd"
	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// install gives each control plane what it needs: kinds, namespaces, rights, and the node class that every cluster has.
func (f *fixture) install(ctx context.Context) error {
	guest, err := joined(crd.Manifests, crd.Guest)
	if err != nil {
		return err
	}
	mgmt, err := joined(crd.Management)
	if err != nil {
		return err
	}
	for _, namespace := range []string{f.namespace, otherHCP} {
		mgmt += fmt.Sprintf("---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", namespace)
	}
	mgmtRights, guestRights, err := f.rights()
	if err != nil {
		return err
	}
	for manifests, r := range map[string]*rig.Rig{guest + guestRights: f.guest, mgmt + mgmtRights: f.mgmt} {
		if err := r.Apply(ctx, manifests); err != nil {
			return err
		}
		if _, err := r.Kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"); err != nil {
			return err
		}
	}
	return f.guest.Apply(ctx, defaultClass)
}

// defaultClass is made by the hosted cluster's other controllers; every pool that names no class uses it.
const defaultClass = `
apiVersion: karpenter.hypershift.openshift.io/v1
kind: OpenshiftEC2NodeClass
metadata: {name: default}
spec: {monitoring: Basic}
`

// joined returns the documents of all sets as one text.
func joined(sets ...func() (map[string][]byte, error)) (string, error) {
	text := ""
	for _, set := range sets {
		documents, err := set()
		if err != nil {
			return "", err
		}
		for _, name := range slices.Sorted(maps.Keys(documents)) {
			text += fmt.Sprintf("---\n%s\n", strings.TrimPrefix(string(documents[name]), "---\n"))
		}
	}
	return text, nil
}

// rights grants the operator what the charts grant it, and nothing else: the whole suite passes with that (R41).
func (f *fixture) rights() (management, guest string, err error) {
	role, err := charts.ManagementRules()
	if err != nil {
		return "", "", err
	}
	clusterRole, err := charts.GuestRules()
	if err != nil {
		return "", "", err
	}
	return strings.NewReplacer("NAMESPACE", f.namespace, "RULES", string(role)).Replace(managementRights),
		strings.Replace(guestRights, "RULES", string(clusterRole), 1), nil
}

const managementRights = `---
apiVersion: v1
kind: ServiceAccount
metadata: {name: joiner-operator, namespace: NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: joiner-operator, namespace: NAMESPACE}
rules:
RULES
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: joiner-operator, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: joiner-operator}
subjects: [{kind: ServiceAccount, name: joiner-operator, namespace: NAMESPACE}]
`

const guestRights = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: joiner-operator}
rules:
RULES
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: joiner-operator}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: joiner-operator}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:hosted-cluster-config"}]
`
