package operator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/approver"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/kube"
	ec2 "github.com/joiner-autoscaler/joiner/internal/provider/ec2/plug"
)

// defaultNodeBootstrapper is the service account with which OpenShift machines request their first certificate.
const defaultNodeBootstrapper = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"

// validateApproval returns an error when the approval of certificate requests is on and cannot work.
func (c Config) validateApproval() error {
	if !c.ApproveKubeletCSRs {
		return nil
	}
	if c.NodeBootstrapperUserName == "" || strings.HasPrefix(c.NodeBootstrapperUserName, "system:node:") {
		return fmt.Errorf(
			"--node-bootstrapper-user-name is %q: want the user name by which instances ask for their first certificate, usually %s",
			c.NodeBootstrapperUserName, defaultNodeBootstrapper)
	}
	return nil
}

// instanceNames returns the names of instances, as the platforms know them: those of simulated machines, and those of
// EC2 for the infra ID, which is the cluster's name there (E-47).
func (c Config) instanceNames(ctx context.Context, board *operator.Board) operator.InstanceNames {
	simulated, aws := slices.Contains(c.Platforms, PlatformKWOK), slices.Contains(c.Platforms, PlatformAWS)
	named := c.namesOnEC2(ctx, board)
	return func(ctx context.Context, providerIDs []string) (map[string]string, error) {
		names := map[string]string{}
		if simulated {
			known, err := operator.SimulatedInstanceNames(ctx, providerIDs)
			if err != nil {
				return nil, err
			}
			maps.Copy(names, known)
		}
		if aws {
			known, err := named(ctx, slices.DeleteFunc(slices.Clone(providerIDs),
				func(id string) bool { return names[id] != "" }))
			if err != nil {
				return nil, err
			}
			maps.Copy(names, known)
		}
		return names, nil
	}
}

// namesOnEC2 asks EC2 for the names of instances. With InfraFromHosted the HostedControlPlane says the cluster and the
// region. The result must not be called concurrently.
func (c Config) namesOnEC2(process context.Context, board *operator.Board) operator.InstanceNames {
	if c.InfraFrom != InfraFromHosted {
		return ec2.NewNames(process, c.InfraID, "").Of
	}
	var infraID, region string
	var names *ec2.Names
	return func(ctx context.Context, providerIDs []string) (map[string]string, error) {
		hosted := board.Hosted()
		if !hosted.Known {
			return nil, errors.New("the HostedControlPlane has not been read yet")
		}
		if names == nil || infraID != hosted.Infra.InfraID || region != hosted.Region {
			infraID, region = hosted.Infra.InfraID, hosted.Region
			names = ec2.NewNames(process, infraID, region)
		}
		return names.Of(ctx, providerIDs)
	}
}

// approval returns the controller of certificate requests. It wakes for requests, and for what a request may wait for.
func (d operatorDeps) approval() kube.Controller {
	return kube.Controller{
		Name: Approval, Workers: 1, Start: true,
		Reconciler: operator.NewApprovalController(operator.ApprovalConfig{
			Guest: d.guest, Live: d.live, Bootstrapper: d.bootstrapper, Names: d.instanceNames,
			Events: d.events, Metrics: d.metrics, Now: d.now, Log: d.log.WithName(Approval),
		}),
		Watches: []kube.Watch{
			{Object: &certificatesv1.CertificateSigningRequest{}, After: kube.OwnPatches, Requests: kubeletRequest},
			{Object: &karpenterv1.NodeClaim{}, After: kube.OwnPatches, Requests: claimOfInstance},
			{Object: &corev1.Node{}, After: kube.OwnPatches, Requests: nodeOfInstance},
		},
	}
}

// kubeletRequest wakes for new requests of kubelets that are undecided, and for changes and the end of all of them,
// since they were counted.
func kubeletRequest(_ context.Context, old, fresh client.Object) []reconcile.Request {
	if fresh == nil {
		fresh = old
	}
	csr := fresh.(*certificatesv1.CertificateSigningRequest)
	if !approver.Kubelets(csr) || old == nil && !approver.Pending(csr) {
		return nil
	}
	return []reconcile.Request{kube.Singleton()}
}

// claimOfInstance wakes for NodeClaims whose instance or node has become known.
func claimOfInstance(_ context.Context, old, fresh client.Object) []reconcile.Request {
	if old == nil || fresh == nil {
		return nil // it has no instance yet, or none any more
	}
	a, b := old.(*karpenterv1.NodeClaim), fresh.(*karpenterv1.NodeClaim)
	if a.Status.ProviderID == b.Status.ProviderID && a.Status.NodeName == b.Status.NodeName {
		return nil
	}
	return []reconcile.Request{kube.Singleton()}
}

// nodeOfInstance wakes for nodes whose instance or addresses have become known, not for heartbeats.
func nodeOfInstance(_ context.Context, old, fresh client.Object) []reconcile.Request {
	if fresh == nil {
		return nil
	}
	if old != nil {
		a, b := old.(*corev1.Node), fresh.(*corev1.Node)
		if a.Spec.ProviderID == b.Spec.ProviderID && slices.Equal(a.Status.Addresses, b.Status.Addresses) {
			return nil
		}
	}
	return []reconcile.Request{kube.Singleton()}
}
