package approver_test

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/autonode/approver"
)

// Each row changes one thing about a cluster in which a first certificate would be approved.
func TestAFirstCertificateTakesANodeClaimThatIsAwaited(t *testing.T) {
	t.Parallel()
	machine := func(change func(m *approver.Machine)) func(c *approver.Cluster) {
		return func(c *approver.Cluster) { change(&c.Machines[0]) }
	}
	for _, c := range []struct {
		name   string
		change func(c *approver.Cluster)
		want   approver.Reason
		wait   bool
	}{
		{"none", func(c *approver.Cluster) { c.Machines = nil }, approver.NoMachine, true},
		{"unknown to the cloud", machine(func(m *approver.Machine) { m.InstanceName = "" }), approver.NoMachine, true},
		{"of another name", machine(func(m *approver.Machine) { m.InstanceName = "x" + nodeName }), approver.NoMachine,
			true},
		{"two", func(c *approver.Cluster) { c.Machines = append(c.Machines, c.Machines[0]) }, approver.Ambiguous,
			true},
		{"not launched", machine(func(m *approver.Machine) { m.Launched = false }), approver.NotLaunched, true},
		{"without instance", machine(func(m *approver.Machine) { m.ProviderID = "" }), approver.NotLaunched, true},
		{"going", machine(func(m *approver.Machine) { m.Leaving = true }), approver.Leaving, false},
		{"registered", machine(func(m *approver.Machine) { m.NodeName = nodeName }), approver.Joined, false},
		{"with its node", func(c *approver.Cluster) {
			c.Nodes = append(c.Nodes, approver.Node{Name: nodeName, ProviderID: "aws:///a/i-1"})
		}, approver.Joined, false},
		{"with a node of another instance", func(c *approver.Cluster) {
			c.Nodes = append(c.Nodes, approver.Node{Name: nodeName, ProviderID: "aws:///a/i-2"})
		}, approver.OtherInstance, false},
		{"younger than the request", machine(func(m *approver.Machine) { m.Created = now().Add(-49 * time.Second) }),
			approver.OutOfTime, false},
		{"that should have joined long ago",
			machine(func(m *approver.Machine) { m.Created = now().Add(-31 * time.Minute) }), approver.OutOfTime,
			false},
		{"and no bootstrapper", func(c *approver.Cluster) { c.Bootstrapper = "" }, approver.WrongRequestor, false},
	} {
		cluster := awaited()
		c.change(&cluster)
		if v := decide(t, first(t, "a"), cluster); v.Approve || v.Reason != c.want || v.Wait != c.wait {
			t.Errorf("a NodeClaim %s: %+v, want %s, wait %t", c.name, v, c.want, c.wait)
		}
	}
}

// NodeClaim, node and cloud have to agree before a node gets more certificates.
func TestFurtherCertificatesTakeTheNodeOfANodeClaim(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(c *approver.Cluster)
		want   approver.Reason
		wait   bool
	}{
		{"no node", func(c *approver.Cluster) { c.Nodes = c.Nodes[:1] }, approver.NoNode, true},
		{"no NodeClaim", func(c *approver.Cluster) { c.Machines = nil }, approver.NoMachine, true},
		{"not registered", func(c *approver.Cluster) { c.Machines[0].NodeName = "" }, approver.NoMachine, true},
		{"two NodeClaims", func(c *approver.Cluster) { c.Machines = append(c.Machines, c.Machines[0]) },
			approver.Ambiguous, true},
		{"another instance", func(c *approver.Cluster) { c.Nodes[1].ProviderID = "aws:///a/i-2" },
			approver.OtherInstance, true},
		{"no provider IDs", func(c *approver.Cluster) { c.Nodes[1].ProviderID, c.Machines[0].ProviderID = "", "" },
			approver.OtherInstance, true},
		{"another name in the cloud", func(c *approver.Cluster) { c.Machines[0].InstanceName = "other" },
			approver.OtherInstance, false},
	} {
		for kind, of := range map[string]func(testing.TB, string) *ask{"renewal": renewal, "serving": serving} {
			cluster := joined()
			c.change(&cluster)
			if v := decide(t, of(t, "a"), cluster); v.Approve || v.Reason != c.want || v.Wait != c.wait {
				t.Errorf("%s, %s: %+v, want %s, wait %t", kind, c.name, v, c.want, c.wait)
			}
		}
	}
}

// A kubelet writes its node's addresses itself: what another node has too is nobody's.
func TestAnAddressOfTwoNodesIsNobodys(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]approver.Node{
		"by address": {
			Name: "thief", Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}},
		},
		"by another spelling": {
			Name: "thief", Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "::ffff:10.0.0.1"}},
		},
		"by name": {Name: "ip-10-0-0-1"},
		"by its host's name": {
			Name: "thief", Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "IP-10-0-0-1"}},
		},
	} {
		cluster := joined()
		cluster.Nodes = append(cluster.Nodes, other)
		if v := decide(t, serving(t, "a"), cluster); v.Reason != approver.WrongNames ||
			!strings.Contains(v.Message, "other node") && !strings.Contains(v.Message, "another node") &&
				!strings.Contains(v.Message, "node thief too") {
			t.Errorf("%s: %+v", name, v)
		}
	}
	silent := joined() // the node does not list its own names, or lists them as something else
	silent.Nodes[1].Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"},
		{Type: corev1.NodeInternalIP, Address: nodeName}}
	if v := decide(t, serving(t, "a"), silent); v.Reason != approver.WrongNames || !v.Wait {
		t.Errorf("a name that the node does not list: %+v", v)
	}
	cluster := joined()
	cluster.Nodes[1].Addresses = append(cluster.Nodes[1].Addresses,
		corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: "127.0.0.1"})
	a := serving(t, "a")
	a.template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	if v := decide(t, a, cluster); v.Reason != approver.WrongNames {
		t.Errorf("a loopback address that the node lists: %+v", v)
	}
}

// One key gets a NodeClaim's certificate, and may ask for it again.
func TestANodeClaimsCertificateGoesToOneKey(t *testing.T) {
	t.Parallel()
	a := first(t, "a")
	for _, c := range []struct {
		name   string
		change func(other *ask)
		want   approver.Reason
	}{
		{"pending", func(*ask) {}, approver.Contested},
		{"approved", func(o *ask) { o.csr.Status.Conditions = condition(certificatesv1.CertificateApproved) },
			approver.Issued},
		{"approved for anybody", func(o *ask) {
			o.csr.Status.Conditions, o.csr.Spec.Username = condition(certificatesv1.CertificateApproved), "eve"
		}, approver.Issued},
		{"signed", func(o *ask) { o.csr.Status.Certificate = []byte("x") }, approver.Issued},
		{"with the same key", func(o *ask) { o.key = a.key }, approver.Approved},
		{"approved, with the same key", func(o *ask) {
			o.key, o.csr.Status.Conditions = a.key, condition(certificatesv1.CertificateApproved)
		}, approver.Approved},
		{"denied", func(o *ask) { o.csr.Status.Conditions = condition(certificatesv1.CertificateDenied) },
			approver.Approved},
		{"failed", func(o *ask) {
			o.csr.Status.Conditions = condition(certificatesv1.CertificateApproved, certificatesv1.CertificateFailed)
		}, approver.Approved},
		{"by somebody who gets none", func(o *ask) { o.csr.Spec.Username = "eve" }, approver.Approved},
		{"for another node", func(o *ask) { o.template.Subject.CommonName = "system:node:other" }, approver.Approved},
		{"of the instance that had the name before", func(o *ask) {
			o.csr.Status.Conditions, o.csr.CreationTimestamp = condition(certificatesv1.CertificateApproved),
				metav1.NewTime(now().Add(-3*time.Minute))
		}, approver.Approved},
	} {
		other := first(t, "other")
		c.change(other)
		cluster := awaited()
		cluster.Requests = append(cluster.Requests, *other.make(t))
		if v := decide(t, a, cluster); v.Reason != c.want {
			t.Errorf("another request, %s: %+v, want %s", c.name, v, c.want)
		}
	}
}

// More requests than the cluster can have asked for are a sign that something is wrong: none is approved.
func TestTooManyPendingRequestsStopAll(t *testing.T) {
	t.Parallel()
	cluster := awaited()
	for i := range 100 {
		flood := first(t, fmt.Sprint("flood-", i))
		flood.csr.Spec.Request = []byte("x")
		cluster.Requests = append(cluster.Requests, *flood.make(t))
	}
	if v := decide(t, first(t, "a"), cluster); !v.Approve { // one NodeClaim and 100 more
		t.Errorf("at the limit: %+v", v)
	}
	cluster.Requests = append(cluster.Requests, *serving(t, "one-more").make(t))
	if v := decide(t, first(t, "a"), cluster); v.Reason != approver.TooManyPending || !v.Wait {
		t.Errorf("beyond it: %+v", v)
	}
	old := first(t, "old")
	old.csr.CreationTimestamp = metav1.NewTime(now().Add(-2 * time.Hour))
	cluster.Requests[100] = *old.make(t)
	if v := decide(t, first(t, "a"), cluster); !v.Approve {
		t.Errorf("what is old does not count: %+v", v)
	}
}
