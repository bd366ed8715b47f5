package operator

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
)

// DefaultClassName is the name of the node class for pools that name none (G20).
const DefaultClassName = "default"

// DefaultClassConfig is the configuration of a [DefaultClassController]. All fields are required.
type DefaultClassConfig struct {
	Guest   GuestClient
	InfraID string // replaced by that of the HostedControlPlane, if one is asked for
	Board   *Board
	Metrics Metrics
}

// DefaultClassController creates an OpenshiftEC2NodeClass named default if there is none, so that a pool needs no node
// class of its own. It leaves an existing one as it is: in a cluster of HyperShift, another controller may write it.
type DefaultClassController struct {
	config DefaultClassConfig
}

// NewDefaultClassController returns the controller.
func NewDefaultClassController(config DefaultClassConfig) *DefaultClassController {
	return &DefaultClassController{config: config}
}

// Reconcile creates the class if it is missing. Like every write, it waits until the guest is protected (G22).
func (c *DefaultClassController) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !c.config.Board.Protected() {
		return reconcile.Result{}, nil
	}
	infraID := c.config.InfraID
	if hosted := c.config.Board.Hosted(); hosted.Asked {
		if infraID = hosted.Infra.InfraID; infraID == "" || hosted.LeavesClasses || hosted.Deleting {
			return reconcile.Result{}, nil // a change of it wakes this controller
		}
	}
	wanted := defaultClass(infraID)
	err := c.config.Guest.Get(ctx, client.ObjectKeyFromObject(wanted), &hypershiftv1.OpenshiftEC2NodeClass{})
	if !apierrors.IsNotFound(err) {
		return reconcile.Result{}, err
	}
	c.config.Metrics.Writes.WithLabelValues(hypershiftv1.OpenshiftEC2NodeClassKind, "create").Inc()
	if err := c.config.Guest.Create(ctx, wanted); err != nil && !apierrors.IsAlreadyExists(err) {
		return reconcile.Result{}, fmt.Errorf("creating the default OpenshiftEC2NodeClass: %w", err)
	}
	return reconcile.Result{}, nil
}

// defaultClass states explicitly what an empty spec would mean, since the API server refuses an empty one.
func defaultClass(infraID string) *hypershiftv1.OpenshiftEC2NodeClass {
	return &hypershiftv1.OpenshiftEC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: DefaultClassName,
			Labels: map[string]string{merge.ManagedByLabel: merge.ManagedByValue}},
		Spec: hypershiftv1.OpenshiftEC2NodeClassSpec{
			SubnetSelectorTerms: []hypershiftv1.SubnetSelectorTerm{{Tags: map[string]string{
				"kubernetes.io/role/internal-elb": "1", "kubernetes.io/cluster/" + infraID: "*",
			}}},
			SecurityGroupSelectorTerms: []hypershiftv1.SecurityGroupSelectorTerm{
				{Tags: map[string]string{"karpenter.sh/discovery": infraID}},
			},
		},
	}
}
