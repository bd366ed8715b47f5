package approver

import (
	"crypto/x509"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// first decides about the first certificate of an instance. Whoever has the user data of a node may ask for any name.
// So the name must be that of an expected instance, and only one key gets the certificate.
func (f Facts) first(csr *certificatesv1.CertificateSigningRequest, node string,
	parsed *x509.CertificateRequest) Verdict {
	if v, fits := withoutNames(parsed); !fits {
		return v
	}
	found := f.byInstance[node]
	switch {
	case len(found) == 0:
		return later(NoMachine, "no NodeClaim has an instance that joins as %s", node)
	case len(found) > 1:
		return later(Ambiguous, "the instances of %d NodeClaims join as %s: want one", len(found), node)
	}
	m := f.machines[found[0]]
	since := f.now.Sub(m.Created)
	switch existing, exists := f.nodes[node]; {
	case m.Leaving:
		return no(Leaving, "NodeClaim %s is being deleted", m.Claim).of(m.Claim)
	case !m.Launched || m.ProviderID == "":
		return later(NotLaunched, "NodeClaim %s has no instance yet", m.Claim).of(m.Claim)
	case m.NodeName != "":
		return no(Joined, "NodeClaim %s has node %s: its certificate was given out", m.Claim, m.NodeName).of(m.Claim)
	case exists && existing.ProviderID != m.ProviderID:
		return no(OtherInstance, "node %s has provider ID %q: want %q of NodeClaim %s", node, existing.ProviderID,
			m.ProviderID, m.Claim).of(m.Claim)
	case exists:
		return no(Joined, "node %s is there: its certificate was given out", node).of(m.Claim)
	case csr.CreationTimestamp.Time.Before(m.Created.Add(-clockSkew)):
		return no(OutOfTime, "it is older than NodeClaim %s", m.Claim).of(m.Claim)
	case since > joinWithin || csr.CreationTimestamp.Sub(m.Created) > joinWithin:
		return no(OutOfTime, "NodeClaim %s is %s old: want its instance to join within %s", m.Claim,
			since.Round(time.Second), joinWithin).of(m.Claim)
	}
	return f.onlyOne(csr, m, node, string(parsed.RawSubjectPublicKeyInfo))
}

// onlyOne gives the certificate of a NodeClaim to one key only. The same key may ask again, as a kubelet does that
// missed its answer: nobody gains anything new. If two keys ask, neither is chosen. Every replica sees all earlier
// requests. So the later of two requests is never approved while the other exists, whichever replica decides.
func (f Facts) onlyOne(csr *certificatesv1.CertificateSigningRequest, m Machine, node, key string) Verdict {
	for _, other := range f.asked[node] {
		switch {
		case other.key == key || other.created.Before(m.Created.Add(-clockSkew)):
			// the name may have belonged to another instance before
		case other.issued:
			return no(Issued, "request %s, with another key, got the certificate of NodeClaim %s", other.name,
				m.Claim).of(m.Claim)
		case other.contest:
			return later(Contested, "request %s asks for the same with another key: approve or deny one of them",
				other.name).of(m.Claim)
		}
	}
	return Verdict{Approve: true, Claim: m.Claim, Message: "the instance of NodeClaim " + m.Claim + " joins as " +
		node}
}

// renewal decides about a node that asks for another certificate for itself.
func (f Facts) renewal(node string, parsed *x509.CertificateRequest) Verdict {
	if v, fits := withoutNames(parsed); !fits {
		return v
	}
	m, v, found := f.joined(node)
	if !found {
		return v
	}
	return Verdict{Approve: true, Claim: m.Claim, Message: "node " + node + " of NodeClaim " + m.Claim +
		" renews its certificate"}
}

func withoutNames(parsed *x509.CertificateRequest) (Verdict, bool) {
	if len(parsed.Extensions) > 0 {
		return no(WrongNames,
			"it asks for subject alternative names (%q, %v): want none, the certificate is by name of user",
			parsed.DNSNames, parsed.IPAddresses), false
	}
	return Verdict{}, true
}

// joined returns the machine whose node has that name, if NodeClaim and node, and the cloud if known, agree on it.
func (f Facts) joined(node string) (Machine, Verdict, bool) {
	existing, exists := f.nodes[node]
	if !exists {
		return Machine{}, later(NoNode, "there is no node %s", node), false
	}
	found := f.byNode[node]
	switch {
	case len(found) == 0:
		return Machine{}, later(NoMachine, "no NodeClaim has node %s", node), false
	case len(found) > 1:
		return Machine{}, later(Ambiguous, "%d NodeClaims have node %s: want one", len(found), node), false
	}
	m := f.machines[found[0]]
	switch {
	case m.ProviderID == "" || existing.ProviderID != m.ProviderID:
		return m, later(OtherInstance, "node %s has provider ID %q: want %q of NodeClaim %s", node,
			existing.ProviderID, m.ProviderID, m.Claim).of(m.Claim), false
	case m.InstanceName != "" && m.InstanceName != node:
		return m, no(OtherInstance, "the instance of NodeClaim %s joins as %s, not as %s", m.Claim, m.InstanceName,
			node).of(m.Claim), false
	}
	return m, Verdict{}, true
}
