package operator_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/controller/controllertest"
)

const bootstrapper = "system:serviceaccount:machines:bootstrapper"

// approvals is a guest whose API server and cache can be told apart, with the controller over them.
type approvals struct {
	t             *testing.T
	cached, live  client.WithWatch
	tape          *controllertest.Tape
	registry      *prometheus.Registry
	metrics       operator.Metrics
	names         operator.InstanceNames
	approvalFails error
}

func newApprovals(t *testing.T, objects ...client.Object) *approvals {
	t.Helper()
	a := &approvals{t: t, tape: &controllertest.Tape{}, registry: prometheus.NewRegistry(),
		names: operator.SimulatedInstanceNames}
	a.metrics = operator.NewMetrics(a.registry)
	a.live = a.server(objects)
	a.cached = a.live
	return a
}

func (a *approvals) server(objects []client.Object) client.WithWatch {
	a.t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, certificatesv1.AddToScheme,
		karpenterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			a.t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(
		&certificatesv1.CertificateSigningRequest{}, &karpenterv1.NodeClaim{}).Build()
}

// guest reads from the cache and writes to the API server; the fake one calls an approval what it calls a status.
func (a *approvals) guest() operator.GuestClient {
	return operator.GuestClient{Client: interceptor.NewClient(a.cached, interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, _ client.Client, sub string, o client.Object,
			options ...client.SubResourceUpdateOption) error {
			if sub != "approval" {
				a.t.Errorf("the operator wrote %s of %s", sub, o.GetName())
			}
			if a.approvalFails != nil {
				return a.approvalFails
			}
			return a.live.Status().Update(ctx, o, options...)
		},
	})}
}

func (a *approvals) step() (reconcile.Result, error) {
	a.t.Helper()
	return operator.NewApprovalController(operator.ApprovalConfig{
		Guest: a.guest(), Live: a.live, Bootstrapper: bootstrapper, Names: a.names,
		Events: a.tape, Metrics: a.metrics, Now: controllertest.Start, Log: logr.Discard(),
	}).Reconcile(a.t.Context(), reconcile.Request{})
}

func (a *approvals) mustStep() reconcile.Result {
	a.t.Helper()
	result, err := a.step()
	if err != nil {
		a.t.Fatal(err)
	}
	return result
}

// approved demands that a request is approved, or untouched.
func (a *approvals) approved(name string, want bool) {
	a.t.Helper()
	var csr certificatesv1.CertificateSigningRequest
	if err := a.live.Get(a.t.Context(), types.NamespacedName{Name: name}, &csr); err != nil {
		a.t.Fatal(err)
	}
	if want && (len(csr.Status.Conditions) != 1 ||
		csr.Status.Conditions[0].Type != certificatesv1.CertificateApproved ||
		csr.Status.Conditions[0].Status != corev1.ConditionTrue) ||
		!want && len(csr.Status.Conditions) != 0 {
		a.t.Errorf("%s has the conditions %v, want it approved: %t", name, csr.Status.Conditions, want)
	}
}

// metric is the value of a metric for its only label.
func (a *approvals) metric(name, label string) float64 {
	a.t.Helper()
	families, err := a.registry.Gather()
	if err != nil {
		a.t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return 0
}

func kubeletRequest(t *testing.T, name, node string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
	}, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(controllertest.Start())},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName, Username: bootstrapper,
			Groups: []string{"system:authenticated"}, Usages: []certificatesv1.KeyUsage{
				certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth,
			},
		},
	}
}

func launchedClaim(name string) *karpenterv1.NodeClaim {
	return &karpenterv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name),
			CreationTimestamp: metav1.NewTime(controllertest.Start().Add(-time.Minute))},
		Status: karpenterv1.NodeClaimStatus{
			ProviderID: "kwok://" + name, Conditions: []karpenterv1.Condition{
				{Type: karpenterv1.ConditionTypeLaunched, Status: metav1.ConditionTrue},
			},
		},
	}
}

func TestRequestsOfOurNodesAreApprovedAndOthersLeftAlone(t *testing.T) {
	t.Parallel()
	other := kubeletRequest(t, "signer", "web-1")
	other.Spec.SignerName = "example.com/signer"
	a := newApprovals(t, launchedClaim("web-1"), kubeletRequest(t, "ours", "web-1"),
		kubeletRequest(t, "foreign", "worker"), other)
	result := a.mustStep()
	a.approved("ours", true)
	a.approved("foreign", false)
	a.approved("signer", false)
	if result.RequeueAfter == 0 { // its NodeClaim may come
		t.Error("the request that waits is not looked at again")
	}
	if got := a.metric("autonode_certificate_approvals_total",
		certificatesv1.KubeAPIServerClientKubeletSignerName); got != 1 {
		t.Errorf("%v approvals are counted", got)
	}
	if got := a.metric("autonode_certificate_requests_left", "NoMachine"); got != 1 {
		t.Errorf("%v requests without NodeClaim are counted", got)
	}
	if got := a.tape.Said(); len(got) != 0 {
		t.Errorf("events %v: requests of others are not ours to talk about", got)
	}
	if a.mustStep(); a.metric("autonode_certificate_approvals_total",
		certificatesv1.KubeAPIServerClientKubeletSignerName) != 1 {
		t.Error("a second step approved again")
	}
}

// What the cache does not show yet is seen before anything is given out.
func TestTheAPIServerIsAskedBeforeAnApproval(t *testing.T) {
	t.Parallel()
	registered := launchedClaim("web-1")
	registered.Status.NodeName = "web-1"
	reborn := launchedClaim("web-1")
	reborn.UID = "uid-2"
	decided := kubeletRequest(t, "earlier", "web-1")
	decided.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue},
	}
	for name, live := range map[string][]client.Object{
		"another key got it":     {launchedClaim("web-1"), decided},
		"the NodeClaim is gone":  {},
		"it is another one":      {reborn},
		"its node is registered": {registered},
		"its node is there": {launchedClaim("web-1"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "web-1"},
			Spec: corev1.NodeSpec{ProviderID: "kwok://web-1"}}},
	} {
		csr := kubeletRequest(t, "ours", "web-1")
		a := newApprovals(t, append(live, csr)...)
		a.cached = a.server([]client.Object{launchedClaim("web-1"), csr.DeepCopy()})
		a.mustStep()
		if a.approved("ours", false); t.Failed() {
			t.Fatal(name)
		}
	}
}

// A renewal rests on the node too, and on all that it says.
func TestTheAPIServerIsAskedAboutTheNode(t *testing.T) {
	t.Parallel()
	claim := launchedClaim("web-1")
	claim.Status.NodeName = "web-1"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "web-1"},
		Spec: corev1.NodeSpec{ProviderID: "kwok://web-1"}}
	moved := node.DeepCopy()
	moved.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	other := node.DeepCopy()
	other.Spec.ProviderID = "kwok://web-2"
	for name, c := range map[string]struct {
		live []client.Object
		want bool
	}{
		"as it was":   {[]client.Object{claim, node}, true},
		"gone":        {[]client.Object{claim}, false},
		"moved":       {[]client.Object{claim, moved}, false},
		"another one": {[]client.Object{claim, other}, false},
	} {
		csr := kubeletRequest(t, "ours", "web-1")
		csr.Spec.Username, csr.Spec.Groups = "system:node:web-1", []string{"system:nodes", "system:authenticated"}
		a := newApprovals(t, append(c.live, csr)...)
		a.cached = a.server([]client.Object{claim, node, csr.DeepCopy()})
		result := a.mustStep()
		if a.approved("ours", c.want); t.Failed() || (result.RequeueAfter == 0) != c.want {
			t.Fatalf("%s: looked at again after %s", name, result.RequeueAfter)
		}
	}
}

// What fails is not taken for a yes, and is tried again.
func TestFailuresApproveNothing(t *testing.T) {
	t.Parallel()
	a := newApprovals(t, launchedClaim("web-1"), kubeletRequest(t, "ours", "web-1"))
	a.names = func(context.Context, []string) (map[string]string, error) { return nil, errors.New("throttled") }
	if _, err := a.step(); err == nil || !strings.Contains(err.Error(), "throttled") {
		t.Errorf("error %v", err)
	}
	a.approved("ours", false)
	a.names = operator.NoInstanceNames
	if result := a.mustStep(); result.RequeueAfter == 0 {
		t.Error("a name that is not known yet is not asked for again")
	}
	a.approved("ours", false)
	a.names, a.approvalFails = operator.SimulatedInstanceNames, errors.New("refused")
	if _, err := a.step(); err == nil ||
		!strings.Contains(err.Error(), "approving certificate request ours of node web-1: refused") {
		t.Errorf("error %v", err)
	}
	a.approvalFails = nil
	a.mustStep()
	a.approved("ours", true)
}

// A renewal needs no name of the cloud's, and does not wait for one that cannot be asked.
func TestRenewalsDoNotWaitForTheCloud(t *testing.T) {
	t.Parallel()
	claim := launchedClaim("web-1")
	claim.Status.NodeName = "web-1"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "web-1"},
		Spec: corev1.NodeSpec{ProviderID: "kwok://web-1"}}
	a := newApprovals(t, claim, node, renewalRequest(t, "ours", "web-1"))
	a.names = func(context.Context, []string) (map[string]string, error) { return nil, errors.New("no credentials") }
	if _, err := a.step(); err == nil || !strings.Contains(err.Error(), "no credentials") {
		t.Errorf("error %v, want that of the cloud", err)
	}
	a.approved("ours", true)
}

// Two keys that ask for one NodeClaim's certificate are told of, and neither gets it.
func TestContestedRequestsAreToldOf(t *testing.T) {
	t.Parallel()
	a := newApprovals(t, launchedClaim("web-1"), kubeletRequest(t, "one", "web-1"), kubeletRequest(t, "two", "web-1"))
	a.mustStep()
	a.approved("one", false)
	a.approved("two", false)
	if got := a.tape.Said(); len(got) != 2 || !strings.HasPrefix(got[0], "one "+operator.ReasonNotApproved) ||
		!strings.Contains(got[0], "another key") {
		t.Errorf("events %v", got)
	}
}

func TestNamesOfSimulatedInstances(t *testing.T) {
	t.Parallel()
	names, err := operator.SimulatedInstanceNames(t.Context(),
		[]string{"kwok://web-1", "kwok://", "aws:///us-east-1a/i-1"})
	if err != nil || len(names) != 1 || names["kwok://web-1"] != "web-1" {
		t.Errorf("names %v, error %v", names, err)
	}
}
