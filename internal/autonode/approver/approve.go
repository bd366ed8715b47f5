package approver

import (
	"crypto/x509"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
)

// Approve returns whether a request may be approved, and why or why not.
func Approve(csr *certificatesv1.CertificateSigningRequest, facts Facts) Verdict {
	switch {
	case !Pending(csr) || csr.DeletionTimestamp != nil:
		return no(NotPending, "it has been decided already")
	case !Kubelets(csr):
		return no(OtherSigner, "its signer is %q: want %s or %s", csr.Spec.SignerName,
			certificatesv1.KubeAPIServerClientKubeletSignerName, certificatesv1.KubeletServingSignerName)
	}
	if v, fits := inTime(csr, facts); !fits {
		return v
	}
	if limit := len(facts.machines) + morePending; facts.pending > limit {
		return later(TooManyPending,
			"%d requests of kubelets are pending: want at most %d, which is one for each NodeClaim and %d more",
			facts.pending, limit, morePending)
	}
	parsed, err := parse(csr.Spec.Request)
	if err == nil {
		err = onlyNames(parsed)
	}
	if err != nil {
		return no(Malformed, "%v", err)
	}
	if !slices.Contains(csr.Spec.Groups, authenticatedGroup) {
		return no(WrongRequestor, "the requestor %q is in %q: want %s among them", csr.Spec.Username, csr.Spec.Groups,
			authenticatedGroup)
	}
	v := forNode(csr, parsed, facts)
	if v.Approve {
		v.Reason = Approved
	}
	return v
}

// forNode judges a well-formed request by its purpose.
func forNode(csr *certificatesv1.CertificateSigningRequest, parsed *x509.CertificateRequest, facts Facts) Verdict {
	purpose := certificatesv1.UsageClientAuth
	serving := csr.Spec.SignerName == certificatesv1.KubeletServingSignerName
	if serving {
		purpose = certificatesv1.UsageServerAuth
	}
	if !sameUsages(csr.Spec.Usages, certificatesv1.UsageDigitalSignature, purpose) {
		return no(WrongUsages, "its usages are %q: want %q and %q, and %q at most", csr.Spec.Usages,
			certificatesv1.UsageDigitalSignature, purpose, certificatesv1.UsageKeyEncipherment)
	}
	node, err := nodeOf(parsed)
	if err != nil {
		return no(WrongSubject, "%v", err)
	}
	var v Verdict
	switch itself := nodeUserPrefix + node; {
	case (serving || csr.Spec.Username == itself) &&
		(csr.Spec.Username != itself || !slices.Contains(csr.Spec.Groups, nodeGroup)):
		v = no(WrongRequestor, "the requestor is %q in %q: want %q in %s", csr.Spec.Username, csr.Spec.Groups, itself,
			nodeGroup)
	case serving:
		v = facts.serving(node, parsed)
	case csr.Spec.Username == itself:
		v = facts.renewal(node, parsed)
	case csr.Spec.Username == facts.bootstrapper && facts.bootstrapper != "":
		v = facts.first(csr, node, parsed)
	default:
		v = no(WrongRequestor, "the requestor is %q: want %q for a first certificate, or the node itself",
			csr.Spec.Username, facts.bootstrapper)
	}
	v.Node = node
	return v
}

// inTime bounds the age of a request: no kubelet waits for an old one.
func inTime(csr *certificatesv1.CertificateSigningRequest, facts Facts) (Verdict, bool) {
	switch age := facts.now.Sub(csr.CreationTimestamp.Time); {
	case age > maxAge:
		return no(OutOfTime, "it is %s old: want at most %s", age.Round(time.Second), maxAge), false
	case age < -clockSkew:
		return later(OutOfTime, "it was made %s after now: want at most %s, since clocks differ",
			(-age).Round(time.Second), clockSkew), false
	}
	return Verdict{}, true
}
