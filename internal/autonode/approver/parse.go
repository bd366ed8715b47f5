package approver

import (
	"bytes"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	nodeUserPrefix     = "system:node:"
	nodeGroup          = "system:nodes"
	authenticatedGroup = "system:authenticated"
	pemType            = "CERTIFICATE REQUEST"

	// maxRequestBytes bounds what is parsed. A kubelet's request has about 500 bytes, with a large RSA key 2,000.
	maxRequestBytes = 16 << 10
)

// parse parses one PKCS #10 request in PEM. Its signature proves that the requestor has the key.
func parse(data []byte) (*x509.CertificateRequest, error) {
	if len(data) > maxRequestBytes {
		return nil, fmt.Errorf("it has %d bytes: want at most %d", len(data), maxRequestBytes)
	}
	block, rest := pem.Decode(data)
	switch {
	case block == nil:
		return nil, errors.New("it is no PEM")
	case block.Type != pemType:
		return nil, fmt.Errorf("its PEM block is a %q: want a %q", block.Type, pemType)
	case len(block.Headers) > 0:
		return nil, errors.New("its PEM block has headers: want none")
	case len(bytes.TrimSpace(rest)) > 0:
		return nil, errors.New("something follows its PEM block: want one block")
	case !bytes.HasPrefix(bytes.TrimSpace(data), []byte("-----BEGIN "+pemType)):
		return nil, errors.New("something stands before its PEM block: want one block")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("it is no certificate request: %w", err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("it is not signed by its own key: %w", err)
	}
	return request, nil
}

// nodeOf returns the name of the node whose identity is asked for. The subject must have nothing more.
func nodeOf(request *x509.CertificateRequest) (string, error) {
	subject := request.Subject
	if !slices.Equal(subject.Organization, []string{nodeGroup}) {
		return "", fmt.Errorf("its organizations are %q: want %s alone", subject.Organization, nodeGroup)
	}
	name, found := strings.CutPrefix(subject.CommonName, nodeUserPrefix)
	if !found {
		return "", fmt.Errorf("its common name is %q: want %s and the name of a node", subject.CommonName,
			nodeUserPrefix)
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return "", fmt.Errorf("its common name is %q, and %q is no name of a node: %s", subject.CommonName, name,
			strings.Join(problems, "; "))
	}
	if len(subject.Names) != 2 { // of several common names, some programs use the first and some the last
		return "", fmt.Errorf("its subject has %d parts: want one organization and one common name",
			len(subject.Names))
	}
	return name, nil
}

// oidSubjectAltName is the extension for subject alternative names (RFC 5280).
func oidSubjectAltName() asn1.ObjectIdentifier { return asn1.ObjectIdentifier{2, 5, 29, 17} }

// onlyNames returns an error if the request asks for extensions other than subject alternative names.
func onlyNames(request *x509.CertificateRequest) error {
	for _, extension := range request.Extensions {
		if !extension.Id.Equal(oidSubjectAltName()) {
			return fmt.Errorf("it asks for the extension %s: want subject alternative names at most", extension.Id)
		}
	}
	return nil
}

// sameUsages reports whether the usages are the wanted ones, each once. Key encipherment, which RSA keys use, is
// optional.
func sameUsages(usages []certificatesv1.KeyUsage, wanted ...certificatesv1.KeyUsage) bool {
	got := slices.Sorted(slices.Values(usages))
	for _, allowed := range [][]certificatesv1.KeyUsage{
		wanted, append(slices.Clone(wanted), certificatesv1.UsageKeyEncipherment),
	} {
		if slices.Equal(got, slices.Sorted(slices.Values(allowed))) {
			return true
		}
	}
	return false
}
