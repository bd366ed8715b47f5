package approver_test

import (
	"crypto/x509"
	"encoding/pem"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/autonode/approver"
)

// FuzzApprove sends arbitrary bytes as a first request and as one for serving. Nothing panics, and an approved request
// is for the node alone, by a naive reading.
func FuzzApprove(f *testing.F) {
	for _, a := range []*ask{first(f, "a"), serving(f, "a")} {
		f.Add(a.make(f).Spec.Request)
	}
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, c := range []struct {
			ask     *ask
			cluster approver.Cluster
		}{{first(t, "a"), awaited()}, {serving(t, "a"), joined()}} {
			c.ask.csr.Spec.Request = data
			v := decide(t, c.ask, c.cluster)
			if !v.Approve {
				if v.Message == "" || v.Reason == approver.Approved {
					t.Fatalf("%+v", v)
				}
				continue
			}
			block, _ := pem.Decode(data)
			parsed, err := x509.ParseCertificateRequest(block.Bytes)
			if err != nil || parsed.CheckSignature() != nil || parsed.Subject.String() != "CN="+itself+
				",O=system:nodes" {
				t.Fatalf("approved: %v, %v", parsed.Subject, err)
			}
			for _, name := range parsed.DNSNames {
				if name != nodeName && name != "ip-10-0-0-1" {
					t.Fatalf("approved for the name %q", name)
				}
			}
		}
	})
}
