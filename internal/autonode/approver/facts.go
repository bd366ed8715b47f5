package approver

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

const (
	// clockSkew is how much the clocks of API servers and the operator may differ.
	clockSkew = 10 * time.Second
	// maxAge is up to which age a request may be approved. A kubelet gives up after 15 minutes and asks again.
	maxAge = time.Hour
	// joinWithin is how long after the creation of a NodeClaim its first certificate may be requested and approved.
	// NodeClaims that do not register are given up after 15 minutes. It must stay well below the hour for which the
	// cluster keeps approved requests: they show that a certificate was issued.
	joinWithin = 30 * time.Minute
	// morePending is how many requests may wait beyond one for each NodeClaim.
	morePending = 100
)

// Machine is a NodeClaim, with what is known about its instance.
type Machine struct {
	Claim      string
	Created    time.Time
	Launched   bool
	Leaving    bool // the NodeClaim is being deleted
	ProviderID string
	// NodeName is the name of the node, once it has registered.
	NodeName string
	// InstanceName is the name by which the instance joins, according to its cloud; "" if that is not known.
	InstanceName string
}

// Node is what is known about a node.
type Node struct {
	Name, ProviderID string
	Addresses        []corev1.NodeAddress
}

// Cluster is the observed state of the hosted cluster.
type Cluster struct {
	Now time.Time
	// Bootstrapper is the user name by which instances ask for their first certificate.
	Bootstrapper string
	Machines     []Machine
	Nodes        []Node
	// Requests are all certificate requests of the cluster, read from the API server after the request to judge was
	// made.
	Requests []certificatesv1.CertificateSigningRequest
}

// Facts is what is known about a cluster, indexed for lookups. It is immutable.
type Facts struct {
	now          time.Time
	bootstrapper string
	machines     []Machine
	byInstance   map[string][]int // machines by the name by which they join
	byNode       map[string][]int // and by the node that has registered
	nodes        map[string]Node
	holders      map[string][]string  // nodes by the spelling of their addresses
	asked        map[string][]request // requests for the identity of a node, by its name
	pending      int
}

// request is a request for the identity of a node.
type request struct {
	name    string
	key     string // the public key
	created time.Time
	issued  bool
	contest bool // pending, and by the bootstrapper
}

// NewFacts returns the facts of a cluster. The slices must not be changed afterwards.
func NewFacts(cluster Cluster) Facts {
	f := Facts{
		now: cluster.Now, bootstrapper: cluster.Bootstrapper, machines: cluster.Machines,
		byInstance: map[string][]int{}, byNode: map[string][]int{}, nodes: map[string]Node{},
		holders: map[string][]string{}, asked: map[string][]request{},
	}
	for i, machine := range cluster.Machines {
		if machine.InstanceName != "" {
			f.byInstance[machine.InstanceName] = append(f.byInstance[machine.InstanceName], i)
		}
		if machine.NodeName != "" {
			f.byNode[machine.NodeName] = append(f.byNode[machine.NodeName], i)
		}
	}
	for _, node := range cluster.Nodes {
		f.nodes[node.Name] = node
		for _, address := range node.Addresses {
			if key := spelling(address.Address); !slices.Contains(f.holders[key], node.Name) {
				f.holders[key] = append(f.holders[key], node.Name)
			}
		}
	}
	for i := range cluster.Requests {
		f.note(&cluster.Requests[i])
	}
	return f
}

// spelling returns an address in the form used for comparison: the same address can be written in several ways.
func spelling(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil {
		return ip.Unmap().String()
	}
	return strings.ToLower(address)
}

// note records what matters about a request when others are judged.
func (f *Facts) note(csr *certificatesv1.CertificateSigningRequest) {
	if !Kubelets(csr) {
		return
	}
	recent := f.now.Sub(csr.CreationTimestamp.Time) <= maxAge
	if Pending(csr) && recent {
		f.pending++
	}
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName {
		return
	}
	parsed, err := parse(csr.Spec.Request)
	if err != nil {
		return // no signer issues a certificate for it
	}
	name, _ := strings.CutPrefix(parsed.Subject.CommonName, nodeUserPrefix) // whatever else the subject says
	f.asked[name] = append(f.asked[name], request{
		name: csr.Name, key: string(parsed.RawSubjectPublicKeyInfo), created: csr.CreationTimestamp.Time,
		issued: issued(csr), contest: Pending(csr) && recent && csr.Spec.Username == f.bootstrapper,
	})
}

// Kubelets reports whether a request is for a kubelet's certificate of either kind.
func Kubelets(csr *certificatesv1.CertificateSigningRequest) bool {
	return csr.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName ||
		csr.Spec.SignerName == certificatesv1.KubeletServingSignerName
}

// Pending reports whether nobody has decided about a request.
func Pending(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Conditions) == 0 && len(csr.Status.Certificate) == 0
}

// issued reports whether a request has led to a certificate, or will.
func issued(csr *certificatesv1.CertificateSigningRequest) bool {
	has := func(kind certificatesv1.RequestConditionType) bool {
		return slices.ContainsFunc(csr.Status.Conditions,
			func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == kind })
	}
	return len(csr.Status.Certificate) > 0 || has(certificatesv1.CertificateApproved) &&
		!has(certificatesv1.CertificateDenied) && !has(certificatesv1.CertificateFailed)
}
