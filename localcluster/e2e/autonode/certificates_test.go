package autonode

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/charts"
)

const (
	machineBootstrapper = "system:serviceaccount:machines:bootstrapper"
	machine             = "machine-1"
	machineUser         = "system:node:" + machine
	machineID           = "kwok://" + machine
)

// mayApprove gives the operator the rights that its chart grants with the option, until the test ends.
func (w *world) mayApprove() {
	w.t.Helper()
	rules, err := charts.ApprovalRules()
	if err != nil {
		w.t.Fatal(err)
	}
	manifest := strings.NewReplacer("USER", operatorUser, "RULES", string(rules)).Replace(`---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: kubelet-csrs}
rules:
RULES
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kubelet-csrs}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: kubelet-csrs}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "USER"}]
`)
	if err := w.guest.Apply(w.ctx, manifest); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if _, err := w.guest.Kubectl(w.ctx, "", "delete", "clusterrole,clusterrolebinding",
			"kubelet-csrs"); err != nil {
			w.t.Error(err)
		}
	})
}

// launched makes a NodeClaim with an instance, as Karpenter does.
func (w *world) launched(name string) {
	w.t.Helper()
	claim := newObject(nodeClaimKind, "", name,
		parse(`{nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}, requirements: []}`))
	// The operator of an earlier test may have protected NodeClaims.
	w.eventually("NodeClaims to be open", func() (bool, string) {
		err := w.cadmin.Create(w.ctx, claim.DeepCopy(), client.DryRunAll)
		return err == nil, fmt.Sprint(err)
	})
	claim = w.put(w.cadmin, claim)
	w.t.Cleanup(func() { w.remove(w.cadmin, claim) })
	w.claimStatus(name, object{"providerID": machineID, "conditions": []any{object{
		"type": "Launched", "status": "True", "reason": "Launched", "message": "",
		"lastTransitionTime": "2026-01-01T00:00:00Z"}}})
}

func (w *world) claimStatus(name string, status object) {
	w.t.Helper()
	if err := w.status(w.cadmin, w.get(nodeClaimKind, name), status); err != nil {
		w.t.Fatal(err)
	}
}

// joins makes the node of a NodeClaim.
func (w *world) joins(name string, addresses ...corev1.NodeAddress) {
	w.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: machineID}}
	if err := w.cadmin.Create(w.ctx, node); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := w.cadmin.Delete(w.ctx, node); err != nil {
			w.t.Error(err)
		}
	})
	if err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if err := w.cadmin.Get(w.ctx, client.ObjectKeyFromObject(node), node); err != nil {
			return err
		}
		node.Status.Addresses = addresses
		return w.cadmin.Status().Update(w.ctx, node)
	}); err != nil {
		w.t.Fatal(err)
	}
	claim := w.get(nodeClaimKind, name)
	status := claim.Object["status"].(object)
	status["nodeName"] = name
	w.claimStatus(name, status)
}

// asks makes a user's certificate request with a key of its own. With addresses it is one for serving.
func (w *world) asks(name, user, node string, addresses ...net.IP) {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject:     pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
		IPAddresses: addresses,
	}, key)
	if err != nil {
		w.t.Fatal(err)
	}
	signer, usage := certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth
	if len(addresses) > 0 {
		signer, usage = certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth
	}
	csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: signer,
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
		}}
	if err := w.as(user, "system:nodes", "system:masters").Create(w.ctx, csr); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := w.cadmin.Delete(w.ctx, csr); err != nil {
			w.t.Error(err)
		}
	})
}

// conditionsOf returns what was decided about a request.
func (w *world) conditionsOf(name string) []certificatesv1.CertificateSigningRequestCondition {
	w.t.Helper()
	var csr certificatesv1.CertificateSigningRequest
	if err := w.cadmin.Get(w.ctx, client.ObjectKey{Name: name}, &csr); err != nil {
		w.t.Fatal(err)
	}
	return csr.Status.Conditions
}

func (w *world) approves(name string) {
	w.t.Helper()
	w.eventually("the approval of "+name, func() (bool, string) {
		conditions := w.conditionsOf(name)
		return len(conditions) == 1 && conditions[0].Type == certificatesv1.CertificateApproved, show(conditions)
	})
}

// untouched demands that nothing is decided about requests.
func (w *world) untouched(names ...string) {
	w.t.Helper()
	w.stays("what was decided about "+strings.Join(names, ", "), func() any {
		for _, name := range names {
			if conditions := w.conditionsOf(name); len(conditions) > 0 {
				w.t.Fatalf("%s: %s", name, show(conditions))
			}
		}
		return nil
	})
}

// With the option and just the rights of the chart, the certificates of a NodeClaim's node are approved: the first,
// and one for serving under its own address. Requests for other nodes, by others, with another key or for another
// address stay untouched. Without the option all do.
func TestCertificateRequestsOfOurNodesAreApprovedAsAnOption(t *testing.T) {
	w := begin(t)
	w.run("--protect-nodeclaims=Open") // the claims of this test are made by hand
	w.launched(machine)
	w.asks("csr-early", machineBootstrapper, machine)
	w.untouched("csr-early")
	if _, err := w.guest.Kubectl(w.ctx, "", "certificate", "deny", "csr-early"); err != nil {
		t.Fatal(err)
	}
	w.mayApprove()
	w.run("--platform=AWS,KWOK", "--protect-nodeclaims=Open", "--approve-kubelet-csrs",
		"--node-bootstrapper-user-name="+machineBootstrapper)
	w.asks("csr-first", machineBootstrapper, machine)
	w.approves("csr-first")

	own, others := net.IPv4(10, 0, 0, 1), net.IPv4(10, 0, 0, 2)
	w.asks("csr-foreign", machineBootstrapper, "worker")
	w.asks("csr-other-key", machineBootstrapper, machine)
	w.asks("csr-by-somebody", "eve", machine)
	w.asks("csr-unknown-node", machineUser, machine, own)
	w.untouched("csr-foreign", "csr-other-key", "csr-by-somebody", "csr-unknown-node")
	w.told("CertificateSigningRequest", "csr-other-key", "NotApproved")

	w.joins(machine, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: own.String()})
	w.approves("csr-unknown-node")
	w.asks("csr-other-address", machineUser, machine, others)
	w.asks("csr-renewal", machineUser, machine)
	w.approves("csr-renewal")
	w.untouched("csr-foreign", "csr-other-key", "csr-by-somebody", "csr-other-address")
	if approvals := w.metric("autonode_certificate_approvals_total"); len(approvals) != 2 {
		t.Errorf("the metrics say %q, want approvals for both signers", approvals)
	}
}
