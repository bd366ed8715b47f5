package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/approver"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

const (
	// approvalAgainAfter is when to judge a request again whose node may become known: no event tells when a cloud
	// learns the name of an instance.
	approvalAgainAfter = 10 * time.Second
	// approvalReason is the reason of the condition Approved that the operator gives.
	approvalReason = "NodeOfNodeClaim"
)

// ApprovalConfig is the configuration of an [ApprovalController]. All fields are required.
type ApprovalConfig struct {
	Guest        GuestClient   // reads from a cache that watches certificate requests, NodeClaims and nodes
	Live         client.Reader // reads from the guest's API server
	Bootstrapper string        // the user name by which instances ask for their first certificate
	Names        InstanceNames
	Events       event.Recorder
	Metrics      Metrics
	Now          func() time.Time
	Log          logr.Logger
}

// ApprovalController approves the certificate requests of kubelets whose node belongs to a NodeClaim, and leaves all
// others alone. One step covers all pending requests, so that a cloud is asked once for many. It keeps no state: the
// requests show which certificates were issued.
type ApprovalController struct {
	config ApprovalConfig
}

// NewApprovalController returns the controller.
func NewApprovalController(config ApprovalConfig) *ApprovalController {
	return &ApprovalController{config: config}
}

// Reconcile decides about every pending request of a kubelet. It returns to requests that cannot be decided now.
func (c *ApprovalController) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	var cached certificatesv1.CertificateSigningRequestList
	if err := c.config.Guest.List(ctx, &cached, client.UnsafeDisableDeepCopy); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing certificate requests: %w", err)
	}
	if !slices.ContainsFunc(cached.Items, undecided) {
		c.config.Metrics.ShowPending(nil)
		return reconcile.Result{}, nil
	}
	s, err := c.gather(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	facts := approver.NewFacts(s.cluster)
	pending, again := map[approver.Reason]int{}, false
	failed := []error{s.unnamed}
	for i := range s.cluster.Requests {
		csr := &s.cluster.Requests[i]
		if !undecided(*csr) {
			continue
		}
		verdict := approver.Approve(csr, facts)
		if !verdict.Approve {
			pending[verdict.Reason]++
			again = again || verdict.Wait
			c.tell(csr, verdict)
			continue
		}
		approved, err := c.approve(ctx, s, csr, verdict)
		failed = append(failed, err)
		again = again || !approved
	}
	c.config.Metrics.ShowPending(pending)
	if err := errors.Join(failed...); err != nil {
		return reconcile.Result{}, err
	}
	if again {
		return reconcile.Result{RequeueAfter: approvalAgainAfter}, nil
	}
	return reconcile.Result{}, nil
}

func undecided(csr certificatesv1.CertificateSigningRequest) bool {
	return approver.Kubelets(&csr) && approver.Pending(&csr)
}

// tell reports why a request of a NodeClaim is left alone, unless that may pass by itself. Other requests are not the
// operator's business.
func (c *ApprovalController) tell(csr *certificatesv1.CertificateSigningRequest, verdict approver.Verdict) {
	if verdict.Claim == "" || verdict.Wait && verdict.Reason != approver.Contested {
		c.config.Log.V(1).Info("left a certificate request alone", "request", csr.Name, "reason", verdict.Reason,
			"message", verdict.Message)
		return
	}
	c.config.Events.Event(csr, event.Warning, ReasonNotApproved,
		fmt.Sprintf("left alone, for NodeClaim %s: %s", verdict.Claim, verdict.Message))
}

// approve approves exactly the request that was judged, unless the cluster has changed. It returns false if the
// request must be judged again.
func (c *ApprovalController) approve(ctx context.Context, s surroundings,
	csr *certificatesv1.CertificateSigningRequest, verdict approver.Verdict) (bool, error) {
	same, err := c.confirm(ctx, s, verdict)
	if err != nil || !same {
		return false, err
	}
	now := metav1.NewTime(c.config.Now())
	approved := csr.DeepCopy()
	approved.Status.Conditions = append(approved.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: approvalReason,
		Message: "joiner-operator: " + verdict.Message, LastUpdateTime: now, LastTransitionTime: now,
	})
	if err := c.config.Guest.SubResource("approval").Update(ctx, approved); err != nil {
		if apierrors.IsNotFound(err) { // it is gone
			return true, nil
		}
		return false, fmt.Errorf("approving certificate request %s of node %s: %w", csr.Name, verdict.Node, err)
	}
	c.config.Metrics.Approvals.WithLabelValues(csr.Spec.SignerName).Inc()
	c.config.Log.Info("approved a certificate request", "request", csr.Name, "signer", csr.Spec.SignerName, "node",
		verdict.Node, "claim", verdict.Claim)
	return true, nil
}

// confirm checks with the API server that the NodeClaim and the node behind a verdict have not changed: the cache may
// be behind, and a certificate cannot be revoked.
func (c *ApprovalController) confirm(ctx context.Context, s surroundings, verdict approver.Verdict) (bool, error) {
	var claim karpenterv1.NodeClaim
	err := c.config.Live.Get(ctx, client.ObjectKey{Name: verdict.Claim}, &claim)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading NodeClaim %s: %w", verdict.Claim, err)
	}
	if claim.UID != s.uids[claim.Name] || !slices.ContainsFunc(s.cluster.Machines, func(m approver.Machine) bool {
		return same(m, machineOf(&claim, m.InstanceName))
	}) {
		return false, nil
	}
	at := slices.IndexFunc(s.cluster.Nodes, func(n approver.Node) bool { return n.Name == verdict.Node })
	var node corev1.Node
	err = c.config.Live.Get(ctx, client.ObjectKey{Name: verdict.Node}, &node)
	switch {
	case apierrors.IsNotFound(err):
		return at < 0, nil
	case err != nil:
		return false, fmt.Errorf("reading node %s: %w", verdict.Node, err)
	case at < 0:
		return false, nil
	}
	known := s.cluster.Nodes[at]
	return known.ProviderID == node.Spec.ProviderID && slices.Equal(known.Addresses, node.Status.Addresses), nil
}

// same reports whether two states of a NodeClaim are equal.
func same(a, b approver.Machine) bool {
	created := a.Created.Equal(b.Created)
	a.Created, b.Created = time.Time{}, time.Time{}
	return created && a == b
}
