package approver_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/autonode/approver"
)

const (
	bootstrapper = "system:serviceaccount:machines:bootstrapper"
	nodeName     = "ip-10-0-0-1.ec2.internal"
	itself       = "system:node:" + nodeName
)

func now() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// ask is a request before it is made.
type ask struct {
	template x509.CertificateRequest
	key      crypto.Signer
	csr      certificatesv1.CertificateSigningRequest
}

func newKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func newAsk(t testing.TB, name, user, signer string, usage certificatesv1.KeyUsage, groups ...string) *ask {
	t.Helper()
	return &ask{
		template: x509.CertificateRequest{
			Subject: pkix.Name{CommonName: "system:node:" + nodeName, Organization: []string{"system:nodes"}},
		},
		key: newKey(t),
		csr: certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(now().Add(-time.Minute))},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Username: user, Groups: append(groups, "system:authenticated"), SignerName: signer,
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, usage},
			},
		},
	}
}

// first is a first certificate as a kubelet asks for it, serving and renewal what it asks for later.
func first(t testing.TB, name string) *ask {
	return newAsk(t, name, bootstrapper, certificatesv1.KubeAPIServerClientKubeletSignerName,
		certificatesv1.UsageClientAuth)
}

func renewal(t testing.TB, name string) *ask {
	return newAsk(t, name, itself, certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.UsageClientAuth,
		"system:nodes")
}

func serving(t testing.TB, name string) *ask {
	a := newAsk(t, name, itself, certificatesv1.KubeletServingSignerName, certificatesv1.UsageServerAuth,
		"system:nodes")
	a.template.DNSNames, a.template.IPAddresses = []string{nodeName, "ip-10-0-0-1"}, []net.IP{net.IPv4(10, 0, 0, 1)}
	return a
}

// make returns the request, with the PKCS #10 of the template unless there is one.
func (a *ask) make(t testing.TB) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	made := a.csr.DeepCopy()
	if made.Spec.Request == nil {
		der, err := x509.CreateCertificateRequest(rand.Reader, &a.template, a.key)
		if err != nil {
			t.Fatal(err)
		}
		made.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	}
	return made
}

// awaited is a cluster with a NodeClaim whose instance is to join, and joined one where it has.
func awaited() approver.Cluster {
	return approver.Cluster{
		Now: now(), Bootstrapper: bootstrapper,
		Machines: []approver.Machine{{
			Claim: "web-1", Created: now().Add(-2 * time.Minute), Launched: true, ProviderID: "aws:///a/i-1",
			InstanceName: nodeName,
		}},
		Nodes: []approver.Node{
			{Name: "other", ProviderID: "aws:///a/i-0", Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: "10.0.0.9"},
			}},
		},
	}
}

func joined() approver.Cluster {
	c := awaited()
	c.Machines[0].NodeName = nodeName
	c.Nodes = append(c.Nodes, approver.Node{Name: nodeName, ProviderID: "aws:///a/i-1",
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeInternalIP, Address: "fd00:0:0::1"},
			{Type: corev1.NodeInternalDNS, Address: nodeName}, {Type: corev1.NodeHostName, Address: "ip-10-0-0-1"},
			{Type: corev1.NodeExternalDNS, Address: "www.example.com"},
		}})
	return c
}

func decide(t testing.TB, a *ask, c approver.Cluster) approver.Verdict {
	t.Helper()
	made := a.make(t)
	c.Requests = append(slices.Clone(c.Requests), *made)
	return approver.Approve(made, approver.NewFacts(c))
}

// The three requests that a kubelet makes in its life are approved.
func TestTheRequestsOfAKubeletAreApproved(t *testing.T) {
	t.Parallel()
	rsaLike := first(t, "rsa")
	rsaLike.csr.Spec.Usages = append(rsaLike.csr.Spec.Usages, certificatesv1.UsageKeyEncipherment)
	v6 := serving(t, "v6")
	v6.template.IPAddresses = []net.IP{net.ParseIP("fd00::1")}
	early := first(t, "early") // clocks differ
	early.csr.CreationTimestamp = metav1.NewTime(now().Add(5 * time.Second))
	unknown := joined() // the cloud does not say how its instances join
	unknown.Machines[0].InstanceName = ""
	leaving := joined() // a node that drains is still to be reached
	leaving.Machines[0].Leaving = true
	for name, c := range map[string]struct {
		ask     *ask
		cluster approver.Cluster
	}{
		"first": {first(t, "a"), awaited()}, "with the usage of RSA keys": {rsaLike, awaited()},
		"by another clock": {early, awaited()},
		"renewal":          {renewal(t, "a"), joined()}, "serving": {serving(t, "a"), joined()},
		"serving by IPv6":               {v6, joined()},
		"serving, unknown to the cloud": {serving(t, "a"), unknown},
		"renewal while draining":        {renewal(t, "a"), leaving},
	} {
		if v := decide(t, c.ask, c.cluster); !v.Approve || v.Reason != approver.Approved || v.Claim != "web-1" ||
			v.Node != nodeName {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// wrongAsk is a change that makes a request wrong, and what is said of it.
type wrongAsk struct {
	name   string
	of     func(testing.TB, string) *ask
	change func(a *ask)
	want   approver.Reason
	says   string
}

// wrongForms are requests that are not what any of ours looks like.
func wrongForms() []wrongAsk {
	return []wrongAsk{
		{"approved", first, func(a *ask) { a.csr.Status.Conditions = condition(certificatesv1.CertificateApproved) },
			approver.NotPending, ""},
		{"denied", first, func(a *ask) { a.csr.Status.Conditions = condition(certificatesv1.CertificateDenied) },
			approver.NotPending, ""},
		{"has a certificate", first, func(a *ask) { a.csr.Status.Certificate = []byte("x") }, approver.NotPending, ""},
		{"going", first, func(a *ask) { a.csr.DeletionTimestamp = &metav1.Time{Time: now()} }, approver.NotPending,
			""},
		{"another signer", first,
			func(a *ask) { a.csr.Spec.SignerName = certificatesv1.KubeAPIServerClientSignerName },
			approver.OtherSigner, "kube-apiserver-client-kubelet"},
		{"old", first, func(a *ask) { a.csr.CreationTimestamp = metav1.NewTime(now().Add(-61 * time.Minute)) },
			approver.OutOfTime, "1h1m0s"},
		{"from the future", serving, func(a *ask) { a.csr.CreationTimestamp = metav1.NewTime(now().Add(time.Minute)) },
			approver.OutOfTime, "clocks"},
		{"no PEM", first, func(a *ask) { a.csr.Spec.Request = []byte("x") }, approver.Malformed, "no PEM"},
		{"another PEM", first, func(a *ask) {
			a.csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE"})
		}, approver.Malformed, "CERTIFICATE"},
		{"headers", first, func(a *ask) {
			a.csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST",
				Headers: map[string]string{"a": "b"}})
		}, approver.Malformed, "headers"},
		{"names twice", serving, func(a *ask) {
			twice := pkix.Extension{Id: []int{2, 5, 29, 17}, Value: []byte{0x30, 3, 0x82, 1, 'a'}}
			a.template.ExtraExtensions = []pkix.Extension{twice, twice}
		}, approver.Malformed, "duplicate"},
		{"no PKCS #10", first, func(a *ask) {
			a.csr.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")})
		}, approver.Malformed, "no certificate request"},
		{"too long", first, func(a *ask) { a.csr.Spec.Request = make([]byte, 17<<10) }, approver.Malformed,
			"17408 bytes"},
		{"an extension", first, func(a *ask) {
			a.template.ExtraExtensions = []pkix.Extension{{Id: []int{2, 5, 29, 19}, Value: []byte{0x30, 0}}}
		}, approver.Malformed, "2.5.29.19"},
		{"usages of a server", first, func(a *ask) { a.csr.Spec.Usages[1] = certificatesv1.UsageServerAuth },
			approver.WrongUsages, "client auth"},
		{"a usage more", serving,
			func(a *ask) { a.csr.Spec.Usages = append(a.csr.Spec.Usages, certificatesv1.UsageCertSign) },
			approver.WrongUsages, "cert sign"},
		{"a usage twice", first,
			func(a *ask) { a.csr.Spec.Usages = append(a.csr.Spec.Usages, certificatesv1.UsageClientAuth) },
			approver.WrongUsages, ""},
		{"no usages", first, func(a *ask) { a.csr.Spec.Usages = nil }, approver.WrongUsages, ""},
	}
}

// wrongNames are requests that somebody else's name or group is in, or that somebody else has made.
func wrongNames() []wrongAsk {
	return []wrongAsk{
		{"a group more", first, func(a *ask) {
			a.template.Subject.Organization = append(a.template.Subject.Organization, "system:masters")
		}, approver.WrongSubject, "system:masters"},
		{"no group", serving, func(a *ask) { a.template.Subject.Organization = nil }, approver.WrongSubject,
			"system:nodes"},
		{"no node", first, func(a *ask) { a.template.Subject.CommonName = "system:admin" }, approver.WrongSubject,
			"system:admin"},
		{"an empty name", first, func(a *ask) { a.template.Subject.CommonName = "system:node:" },
			approver.WrongSubject, "no name of a node"},
		{"a name that none can have", first, func(a *ask) { a.template.Subject.CommonName = "system:node:A B" },
			approver.WrongSubject, "A B"},
		{"more in its subject", first, func(a *ask) { a.template.Subject.OrganizationalUnit = []string{"x"} },
			approver.WrongSubject, "3 parts"},
		{"two common names", first, func(a *ask) {
			a.template.Subject.ExtraNames = []pkix.AttributeTypeAndValue{
				{Type: []int{2, 5, 4, 3}, Value: "system:admin"}, {Type: []int{2, 5, 4, 3}, Value: itself},
			}
		}, approver.WrongSubject, ""},
		{"names for a client", first, func(a *ask) { a.template.DNSNames = []string{nodeName} }, approver.WrongNames,
			"want none"},
		{"names in a renewal", renewal, func(a *ask) { a.template.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} },
			approver.WrongNames, "want none"},
		{"by anybody", first, func(a *ask) { a.csr.Spec.Username = "eve" }, approver.WrongRequestor, bootstrapper},
		{"by nobody known", first, func(a *ask) { a.csr.Spec.Groups = nil }, approver.WrongRequestor,
			"system:authenticated"},
		{"by another node", renewal, func(a *ask) { a.csr.Spec.Username = "system:node:other" },
			approver.WrongRequestor, "system:node:other"},
		{"by somebody of a node's name", renewal,
			func(a *ask) { a.csr.Spec.Groups = []string{"system:authenticated"} }, approver.WrongRequestor,
			"system:nodes"},
		{"serving by the bootstrapper", serving, func(a *ask) { a.csr.Spec.Username = bootstrapper },
			approver.WrongRequestor, itself},
		{"serving for another node", serving, func(a *ask) { a.template.Subject.CommonName = "system:node:other" },
			approver.WrongRequestor, "other"},
		{"serving without names", serving, func(a *ask) { a.template.DNSNames, a.template.IPAddresses = nil, nil },
			approver.WrongNames, "no name"},
		{"an e-mail address", serving, func(a *ask) { a.template.EmailAddresses = []string{"a@b"} },
			approver.WrongNames, "a@b"},
		{"a URI", serving, func(a *ask) { a.template.URIs = []*url.URL{{Scheme: "spiffe", Host: "a"}} },
			approver.WrongNames, "spiffe"},
		{"a name of something else", serving,
			func(a *ask) { a.template.DNSNames = []string{"kubernetes.default.svc"} }, approver.WrongNames,
			"kubernetes.default.svc"},
		{"a name that the node claims to have", serving,
			func(a *ask) { a.template.DNSNames = []string{"www.example.com"} }, approver.WrongNames,
			"www.example.com"},
		{"an address of nobody", serving, func(a *ask) { a.template.IPAddresses[0] = net.IPv4(10, 0, 0, 2) },
			approver.WrongNames, "10.0.0.2"},
		{"an address of another node", serving, func(a *ask) { a.template.IPAddresses[0] = net.IPv4(10, 0, 0, 9) },
			approver.WrongNames, "10.0.0.9"},
		{"everybody's own address", serving, func(a *ask) { a.template.IPAddresses[0] = net.IPv4(127, 0, 0, 1) },
			approver.WrongNames, "127.0.0.1"},
	}
}

// Each row changes one thing about a request that would be approved.
func TestWhatIsWrongWithARequestByItselfIsNamed(t *testing.T) {
	t.Parallel()
	for _, c := range slices.Concat(wrongForms(), wrongNames()) {
		a, cluster := c.of(t, "a"), joined()
		if slices.Contains(a.csr.Spec.Groups, "system:nodes") {
			if v := decide(t, a, cluster); !v.Approve {
				t.Fatalf("%s: without the change: %+v", c.name, v)
			}
		} else {
			cluster = awaited()
		}
		c.change(a)
		if v := decide(t, a, cluster); v.Approve || v.Reason != c.want || !strings.Contains(v.Message, c.says) {
			t.Errorf("%s: %+v, want %s: ...%s...", c.name, v, c.want, c.says)
		}
	}
}

func condition(
	kinds ...certificatesv1.RequestConditionType) (list []certificatesv1.CertificateSigningRequestCondition) {
	for _, kind := range kinds {
		list = append(list, certificatesv1.CertificateSigningRequestCondition{
			Type: kind, Status: corev1.ConditionTrue,
		})
	}
	return list
}

// A request whose key did not sign it proves nothing: its last bytes are the signature.
func TestARequestHasToBeSignedByItsKey(t *testing.T) {
	t.Parallel()
	made := first(t, "a").make(t)
	block, _ := pem.Decode(made.Spec.Request)
	other, _ := pem.Decode(first(t, "b").make(t).Spec.Request)
	parsed, err := x509.ParseCertificateRequest(other.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	forged := slices.Clone(mine.Raw)
	at := strings.Index(string(forged), string(mine.RawSubjectPublicKeyInfo))
	copy(forged[at:], parsed.RawSubjectPublicKeyInfo)
	made.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: forged})
	c := awaited()
	c.Requests = append(c.Requests, *made)
	if v := approver.Approve(made, approver.NewFacts(c)); v.Reason != approver.Malformed ||
		!strings.Contains(v.Message, "signed") {
		t.Errorf("%+v", v)
	}
	whole := first(t, "a").make(t)
	for name, data := range map[string][]byte{
		"before": append([]byte("x\n"), whole.Spec.Request...),
		"after":  append(slices.Clone(whole.Spec.Request), "x"...),
		"twice":  append(slices.Clone(whole.Spec.Request), whole.Spec.Request...),
	} {
		with := whole.DeepCopy()
		with.Spec.Request = data
		if v := approver.Approve(with, approver.NewFacts(awaited())); v.Reason != approver.Malformed {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
