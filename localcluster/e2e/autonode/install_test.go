package autonode

import (
	"context"
	"fmt"
)

// install gives each control plane what it needs: kinds, namespaces, just the rights of the charts (R41: the whole
// suite passes with them), and the node class that every cluster has.
func (f *fixture) install(ctx context.Context) error {
	if err := f.guest.Install(ctx); err != nil {
		return err
	}
	if err := f.guest.InstallHosted(ctx); err != nil {
		return err
	}
	if err := f.mgmt.Apply(ctx, fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: %s}}",
		otherHCP)); err != nil {
		return err
	}
	var err error
	if f.kubeconfig, err = f.mgmt.InstallHostedControlPlane(ctx, f.namespace); err != nil {
		return err
	}
	return f.guest.Apply(ctx, defaultClass)
}

// defaultClass comes from the hosted cluster's other controllers; every pool that names no class uses it.
const defaultClass = `
apiVersion: karpenter.hypershift.openshift.io/v1
kind: OpenshiftEC2NodeClass
metadata: {name: default}
spec: {monitoring: Basic}
`
