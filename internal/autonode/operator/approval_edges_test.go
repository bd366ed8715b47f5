package operator_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/approver"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

func decidedRequest(t *testing.T, name, node string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	csr := kubeletRequest(t, name, node)
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue},
	}
	return csr
}

func otherSigner(t *testing.T, name string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	csr := kubeletRequest(t, name, "web-1")
	csr.Spec.SignerName = "example.com/signer"
	return csr
}

func renewalRequest(t *testing.T, name, node string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	csr := kubeletRequest(t, name, node)
	csr.Spec.Username, csr.Spec.Groups = "system:node:"+node, []string{"system:nodes", "system:authenticated"}
	return csr
}

// reasons are those that the metric of requests left alone shows, each with its number.
func (a *approvals) reasons() map[string]float64 {
	a.t.Helper()
	families, err := a.registry.Gather()
	if err != nil {
		a.t.Fatal(err)
	}
	shown := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "autonode_certificate_requests_left" {
				shown[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
			}
		}
	}
	return shown
}

// The approval says who gave it, when, and for which node.
func TestAnApprovalSaysWhatItRestsOn(t *testing.T) {
	t.Parallel()
	a := newApprovals(t, launchedClaim("web-1"), kubeletRequest(t, "ours", "web-1"))
	a.mustStep()
	var csr certificatesv1.CertificateSigningRequest
	if err := a.live.Get(t.Context(), types.NamespacedName{Name: "ours"}, &csr); err != nil {
		t.Fatal(err)
	}
	got, now := csr.Status.Conditions[0], controllertest.Start()
	if got.Reason != "NodeOfNodeClaim" ||
		got.Message != "joiner-operator: the instance of NodeClaim web-1 joins as web-1" ||
		!got.LastUpdateTime.Time.Equal(now) || !got.LastTransitionTime.Time.Equal(now) {
		t.Errorf("the approval is %+v", got)
	}
}

// Requests that are decided, or that others decide, are not judged: no cloud is asked about them, and they are not
// counted. They do not hide requests to decide.
func TestOnlyWhatIsPendingIsLookedAt(t *testing.T) {
	t.Parallel()
	a := newApprovals(t, launchedClaim("web-1"), decidedRequest(t, "decided", "web-2"), otherSigner(t, "other"))
	asked := 0
	a.names = func(context.Context, []string) (map[string]string, error) { asked++; return nil, nil }
	a.metrics.ShowPending(map[approver.Reason]int{approver.NoMachine: 3})
	if again := a.mustStep().RequeueAfter; again != 0 || asked != 0 {
		t.Errorf("again after %s, %d questions to the cloud; nothing is pending", again, asked)
	}
	shown := a.reasons()
	if _, approved := shown["Approved"]; approved || len(shown) != len(approver.Reasons())-1 ||
		shown["NoMachine"] != 0 {
		t.Errorf("shown are %v; want each reason to be left alone, and 0", shown)
	}
	a = newApprovals(t, launchedClaim("web-1"), decidedRequest(t, "decided", "web-2"), otherSigner(t, "other"),
		kubeletRequest(t, "ours", "web-1"), kubeletRequest(t, "unknown", "web-3"))
	a.mustStep()
	a.approved("ours", true)
	for reason, n := range a.reasons() {
		if want := map[string]float64{"NoMachine": 1}[reason]; n != want {
			t.Errorf("%v requests are left for %s, want %v", n, reason, want)
		}
	}
}

// Requests are judged again after 10 s while one may still be approved, but not if they are wrong for good.
func TestWhenARequestIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	wrong := kubeletRequest(t, "wrong", "web-9")
	wrong.Spec.Usages = nil
	for name, c := range map[string]struct {
		requests []client.Object
		want     time.Duration
	}{
		"wrong for good": {[]client.Object{wrong.DeepCopy()}, 0},
		"waits":          {[]client.Object{kubeletRequest(t, "a", "web-2")}, 10 * time.Second},
		"one waits, first": {[]client.Object{kubeletRequest(t, "a", "web-2"), kubeletRequest(t, "b", "web-1")},
			10 * time.Second},
		"one waits, wrong":  {[]client.Object{kubeletRequest(t, "a", "web-2"), wrong.DeepCopy()}, 10 * time.Second},
		"one is approved":   {[]client.Object{kubeletRequest(t, "a", "web-1"), wrong.DeepCopy()}, 0},
		"none is there any": {nil, 0},
	} {
		a := newApprovals(t, append(c.requests, launchedClaim("web-1"))...)
		if again := a.mustStep().RequeueAfter; again != c.want {
			t.Errorf("%s: again after %s, want %s", name, again, c.want)
		}
	}
}

// A request that goes while it is approved is no failure, and no approval.
func TestARequestThatGoesMeanwhileIsNoFailure(t *testing.T) {
	t.Parallel()
	a := newApprovals(t, launchedClaim("web-1"), kubeletRequest(t, "ours", "web-1"))
	a.approvalFails = apierrors.NewNotFound(schema.GroupResource{Resource: "certificatesigningrequests"}, "ours")
	if again := a.mustStep().RequeueAfter; again != 0 {
		t.Errorf("again after %s", again)
	}
	if n := a.metric("autonode_certificate_approvals_total",
		certificatesv1.KubeAPIServerClientKubeletSignerName); n != 0 {
		t.Errorf("%v approvals are counted", n)
	}
}

// Nothing is approved on the basis of what could not be read, and each failure is reported.
func TestNoFailureToApproveIsSwallowed(t *testing.T) {
	t.Parallel()
	for _, request := range []func(*testing.T, string, string) *certificatesv1.CertificateSigningRequest{
		kubeletRequest,
		renewalRequest} {
		controllertest.EachFailureIsTold(t, func(t *testing.T, f *controllertest.Failures) func() error {
			csr, claim := request(t, "ours", "web-1"), launchedClaim("web-1")
			objects := []client.Object{csr, claim}
			if csr.Spec.Username != bootstrapper {
				claim.Status.NodeName = "web-1"
				objects = append(objects, joinedNode("web-1"))
			}
			a := newApprovals(t, objects...)
			return func() error {
				_, err := operator.NewApprovalController(operator.ApprovalConfig{
					Guest: operator.GuestClient{Client: a.approving(f.Wrap(a.live),
						f)}, Live: f.Wrap(a.live), Bootstrapper: bootstrapper, Names: a.names,
					Events: a.tape, Metrics: a.metrics, Now: controllertest.Start, Log: logr.Discard(),
				}).Reconcile(t.Context(), reconcile.Request{})
				a.approved("ours", err == nil)
				return err
			}
		})
	}
}

// approving lets a server accept approvals, which the fake one treats as a status.
func (a *approvals) approving(server client.WithWatch, f *controllertest.Failures) client.WithWatch {
	return interceptor.NewClient(server, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, _ client.Client, sub string, o client.Object,
			options ...client.SubResourceUpdateOption) error {
			if err := f.Call("update %s", sub); err != nil {
				return err
			}
			return a.live.Status().Update(ctx, o, options...)
		},
	})
}

func joinedNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: "kwok://" + name},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}},
	}
}

// Other nodes do not matter for a first certificate, nor for a renewal.
func TestOtherNodesDoNotMatter(t *testing.T) {
	t.Parallel()
	joined := launchedClaim("web-2")
	joined.Status.NodeName = "web-2"
	a := newApprovals(t, launchedClaim("web-1"), joined, joinedNode("a-other"), joinedNode("web-2"),
		kubeletRequest(t, "first", "web-1"), renewalRequest(t, "renewal", "web-2"))
	a.mustStep()
	a.approved("first", true)
	a.approved("renewal", true)
}

// Whose request stays pending is told when it belongs to a NodeClaim, and its state will not pass: not while its
// instance comes up.
func TestWhoIsToldOfARequestThatIsLeftAlone(t *testing.T) {
	t.Parallel()
	starting, leaving := launchedClaim("web-1"), launchedClaim("web-1")
	starting.Status.Conditions[0].Status = metav1.ConditionFalse
	leaving.Finalizers, leaving.DeletionTimestamp = []string{"karpenter.sh/termination"},
		&metav1.Time{Time: controllertest.Start()}
	wrong := kubeletRequest(t, "wrong", "web-1")
	wrong.Spec.Usages = nil
	for name, c := range map[string]struct {
		claim  *karpenterv1.NodeClaim
		csr    *certificatesv1.CertificateSigningRequest
		reason approver.Reason
		says   string // "" for nothing
	}{
		"its instance comes up": {starting, kubeletRequest(t, "ours", "web-1"), approver.NotLaunched, ""},
		"its NodeClaim goes": {leaving, kubeletRequest(t, "ours", "web-1"), approver.Leaving,
			"ours NotApproved: left alone, for NodeClaim web-1: NodeClaim web-1 is being deleted"},
		"no NodeClaim's":         {launchedClaim("web-1"), kubeletRequest(t, "ours", "web-2"), approver.NoMachine, ""},
		"wrong, whoever's it is": {launchedClaim("web-1"), wrong, approver.WrongUsages, ""},
	} {
		a := newApprovals(t, c.claim, c.csr)
		a.mustStep()
		a.approved(c.csr.Name, false)
		if a.reasons()[string(c.reason)] != 1 {
			t.Errorf("%s: left alone are %v, want one for %s", name, a.reasons(), c.reason)
		}
		if said := strings.Join(a.tape.Said(), "\n"); said != c.says {
			t.Errorf("%s: said %q, want %q", name, said, c.says)
		}
	}
}

// A cloud is asked for the names of expected instances and of those whose nodes have a request, each once and in
// order: not for all of a large cluster.
func TestWhichInstancesACloudIsAskedFor(t *testing.T) {
	t.Parallel()
	joined := func(name string) *karpenterv1.NodeClaim {
		c := launchedClaim(name)
		c.Status.NodeName = name
		return c
	}
	unlaunched, twin := launchedClaim("unlaunched"), launchedClaim("a-twin")
	unlaunched.Status.ProviderID, twin.Status.ProviderID = "", "kwok://waiting"
	decided := decidedRequest(t, "decided", "quiet-2")
	decided.Spec.Username = "system:node:quiet-2"
	a := newApprovals(t, joined("asking"), joined("quiet"), joined("quiet-2"), launchedClaim("waiting"),
		launchedClaim("b-waiting"), unlaunched, twin,
		renewalRequest(t, "r", "asking"), decided)
	var asked []string
	a.names = func(_ context.Context, ids []string) (map[string]string, error) {
		asked = ids
		return nil, nil
	}
	a.mustStep()
	if want := []string{"kwok://asking", "kwok://b-waiting", "kwok://waiting"}; !slices.Equal(asked, want) {
		t.Errorf("asked for %v, want %v", asked, want)
	}
}
