package approver

import (
	"crypto/x509"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// serving decides about the certificate that a kubelet shows to the API server. It may be only for addresses of its
// node. A kubelet writes the addresses of its node itself. So an address counts only if no other node has it, and a
// name only if it is the node's own.
func (f Facts) serving(node string, parsed *x509.CertificateRequest) Verdict {
	if len(parsed.EmailAddresses)+len(parsed.URIs) > 0 {
		return no(WrongNames, "it asks for e-mail addresses %q and URIs %v: want names and IP addresses only",
			parsed.EmailAddresses, parsed.URIs)
	}
	if len(parsed.DNSNames)+len(parsed.IPAddresses) == 0 {
		return no(WrongNames, "it asks for no name and no IP address: want those of its node")
	}
	m, v, found := f.joined(node)
	if !found {
		return v
	}
	existing := f.nodes[node]
	for _, name := range parsed.DNSNames {
		if err := f.ownName(existing, name); err != nil {
			return later(WrongNames, "%v", err).of(m.Claim)
		}
	}
	for _, ip := range parsed.IPAddresses {
		address, fits := netip.AddrFromSlice(ip)
		if !fits {
			return no(WrongNames, "it asks for the IP address %v, which is none", ip).of(m.Claim)
		}
		if err := f.ownIP(existing, address.Unmap()); err != nil {
			return later(WrongNames, "%v", err).of(m.Claim)
		}
	}
	return Verdict{Approve: true, Claim: m.Claim,
		Message: fmt.Sprintf("node %s of NodeClaim %s serves under addresses of its own", node, m.Claim)}
}

// ownName demands that a name is the node's, in full or without its domain, and is among its addresses.
func (f Facts) ownName(node Node, name string) error {
	wanted := spelling(name)
	host, _, _ := strings.Cut(node.Name, ".")
	if wanted != node.Name && wanted != host {
		return fmt.Errorf("it asks for the name %q: want %s or %s", name, node.Name, host)
	}
	stands := slices.ContainsFunc(node.Addresses, func(a corev1.NodeAddress) bool {
		named := a.Type == corev1.NodeHostName || a.Type == corev1.NodeInternalDNS || a.Type == corev1.NodeExternalDNS
		return named && strings.EqualFold(a.Address, name)
	})
	if !stands {
		return fmt.Errorf("it asks for the name %q: want one of the addresses of node %s, which are %s", name,
			node.Name, listed(node.Addresses))
	}
	return f.onlyHolder(node, wanted)
}

// ownIP demands that an address is the node's, and can belong to one node only: loopback addresses, for example, are
// everybody's.
func (f Facts) ownIP(node Node, ip netip.Addr) error {
	if ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() {
		return fmt.Errorf("it asks for the IP address %s: want one by which others reach the node", ip)
	}
	at := slices.IndexFunc(node.Addresses, func(a corev1.NodeAddress) bool {
		own, err := netip.ParseAddr(a.Address)
		return err == nil && own.Unmap() == ip && (a.Type == corev1.NodeInternalIP || a.Type == corev1.NodeExternalIP)
	})
	if at < 0 {
		return fmt.Errorf("it asks for the IP address %s: want one of the addresses of node %s, which are %s", ip,
			node.Name, listed(node.Addresses))
	}
	return f.onlyHolder(node, ip.String())
}

// onlyHolder demands that no other node has an address: the API server would mistake one node for the other.
func (f Facts) onlyHolder(node Node, address string) error {
	for _, holder := range f.holders[address] {
		if holder != node.Name {
			return fmt.Errorf("it asks for %s, which is an address of node %s too", address, holder)
		}
	}
	if other, exists := f.nodes[address]; exists && other.Name != node.Name {
		return fmt.Errorf("it asks for %s, which is the name of another node", address)
	}
	return nil
}

func listed(addresses []corev1.NodeAddress) string {
	texts := make([]string, len(addresses))
	for i, a := range addresses {
		texts[i] = a.Address
	}
	return strings.Join(texts, ", ")
}
