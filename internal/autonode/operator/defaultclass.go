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

// DefaultClassName is the node class that pools use which name none (G20).
const DefaultClassName = "default"

// DefaultClassConfig is what the controller of the default node class works with; all fields are required.
type DefaultClassConfig struct {
	Guest   GuestClient
	InfraID string // unless the HostedControlPlane says it
	Board   *Board
	Metrics Metrics
}

// DefaultClassController makes an OpenshiftEC2NodeClass named default when there is none, so that a pool needs no node
// class of its own. One that is there is left as it is: in a cluster of HyperShift's another controller may write it.
type DefaultClassController struct {
	config DefaultClassConfig
}

// NewDefaultClassController returns the controller.
func NewDefaultClassController(config DefaultClassConfig) *DefaultClassController {
	return &DefaultClassController{config: config}
}

// Reconcile creates the class when it is missing. It waits for the guest to be protected, like every write (G22).
func (c *DefaultClassController) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if !c.config.Board.Protected() {
		return reconcile.Result{}, nil
	}
	infraID := c.config.InfraID
	if hosted := c.config.Board.Hosted(); hosted.Asked {
		if infraID = hosted.Infra.InfraID; infraID == "" || hosted.LeavesClasses || hosted.Deleting {
			return reconcile.Result{}, nil // its next state wakes this controller
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

// defaultClass says what a class that says nothing would mean; an empty spec is not accepted.
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
