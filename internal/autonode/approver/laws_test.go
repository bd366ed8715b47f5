package approver_test

import (
	"crypto"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/autonode/approver"
)

// drawCluster is a cluster of few names, so that they meet.
func drawCluster(t *rapid.T, keys []crypto.Signer, pems map[string][]byte) approver.Cluster {
	names := rapid.SampledFrom([]string{"", "n1", "n2"})
	ids := rapid.SampledFrom([]string{"", "i-1", "i-2"})
	ago := func(label string) time.Time {
		return now().Add(-time.Duration(rapid.IntRange(0, 90).Draw(t, label)) * time.Minute)
	}
	c := approver.Cluster{Now: now(), Bootstrapper: bootstrapper}
	for i := range rapid.IntRange(0, 3).Draw(t, "machines") {
		c.Machines = append(c.Machines, approver.Machine{
			Claim: fmt.Sprint("claim-", i), Created: ago("made"), Launched: rapid.Bool().Draw(t, "launched"),
			Leaving:    rapid.Bool().Draw(t, "leaving"),
			ProviderID: ids.Draw(t, "id"), NodeName: names.Draw(t, "node"), InstanceName: names.Draw(t, "instance"),
		})
	}
	for _, name := range []string{"n1", "n2"} {
		if rapid.Bool().Draw(t, "exists") {
			c.Nodes = append(c.Nodes, approver.Node{Name: name, ProviderID: ids.Draw(t, "id of node")})
		}
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "requests") {
		key := rapid.IntRange(0, len(keys)-1).Draw(t, "key")
		name := rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "for")
		csr := certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("csr-", i),
				CreationTimestamp: metav1.NewTime(ago("asked"))},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
				Groups:     []string{"system:nodes", "system:authenticated"}, Request: pems[fmt.Sprint(key, name)],
				Username: rapid.SampledFrom([]string{bootstrapper, "system:node:n1", "eve"}).Draw(t, "user"),
				Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature,
					certificatesv1.UsageClientAuth},
			},
		}
		if rapid.Bool().Draw(t, "decided") {
			csr.Status.Conditions =
				condition(rapid.SampledFrom([]certificatesv1.RequestConditionType{certificatesv1.CertificateApproved,
					certificatesv1.CertificateDenied}).Draw(t, "how"))
		}
		c.Requests = append(c.Requests, csr)
	}
	return c
}

func keysAndRequests(t *testing.T) ([]crypto.Signer, map[string][]byte) {
	keys, pems := []crypto.Signer{newKey(t), newKey(t), newKey(t)}, map[string][]byte{}
	for i, key := range keys {
		for _, name := range []string{"n1", "n2"} {
			a := first(t, "a")
			a.key, a.template.Subject.CommonName = key, "system:node:"+name
			pems[fmt.Sprint(i, name)] = a.make(t).Spec.Request
		}
	}
	return keys, pems
}

// For any requests, judged in any order: at most one key gets the first certificate of a NodeClaim. The NodeClaim's
// instance has that name and is expected. Nobody except the bootstrapper gets one.
func TestLawOneKeyForEachNodeClaim(t *testing.T) {
	t.Parallel()
	keys, pems := keysAndRequests(t)
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t, keys, pems)
		got := map[string]string{} // request by claim
		for {
			facts, approved := approver.NewFacts(c), false
			for i := range c.Requests {
				csr := &c.Requests[i]
				v := approver.Approve(csr, facts)
				if !slices.Contains(approver.Reasons(), v.Reason) || v.Approve != (v.Reason == approver.Approved) ||
					v.Approve && v.Wait || !v.Approve && v.Message == "" {
					t.Fatalf("%+v", v)
				}
				if !v.Approve {
					continue
				}
				approved = true
				csr.Status.Conditions = condition(certificatesv1.CertificateApproved)
				at := slices.IndexFunc(c.Machines, func(m approver.Machine) bool { return m.Claim == v.Claim })
				m := c.Machines[at]
				if csr.Spec.Username != bootstrapper {
					if csr.Spec.Username != "system:node:"+v.Node || m.NodeName != v.Node || m.ProviderID == "" {
						t.Fatalf("%+v for %s", v, csr.Spec.Username)
					}
					continue
				}
				if m.InstanceName != v.Node || !m.Launched || m.Leaving || m.ProviderID == "" || m.NodeName != "" ||
					now().Sub(m.Created) > 30*time.Minute {
					t.Fatalf("%+v for %+v", v, m)
				}
				if before, given := got[v.Claim]; given && before != string(csr.Spec.Request) {
					t.Fatalf("%s went to two keys", v.Claim)
				}
				got[v.Claim] = string(csr.Spec.Request)
			}
			if !approved {
				return
			}
		}
	})
}

// The order in which things are listed does not matter.
func TestLawOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	keys, pems := keysAndRequests(t)
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t, keys, pems)
		mixed := approver.Cluster{Now: c.Now, Bootstrapper: c.Bootstrapper, Machines: slices.Clone(c.Machines),
			Nodes: slices.Clone(c.Nodes), Requests: slices.Clone(c.Requests)}
		order := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 0))
		order.Shuffle(len(mixed.Machines), func(i, j int) {
			mixed.Machines[i], mixed.Machines[j] = mixed.Machines[j],
				mixed.Machines[i]
		})
		order.Shuffle(len(mixed.Nodes), func(i, j int) {
			mixed.Nodes[i], mixed.Nodes[j] = mixed.Nodes[j],
				mixed.Nodes[i]
		})
		order.Shuffle(len(mixed.Requests), func(i, j int) {
			mixed.Requests[i], mixed.Requests[j] = mixed.Requests[j],
				mixed.Requests[i]
		})
		one, other := approver.NewFacts(c), approver.NewFacts(mixed)
		for i := range c.Requests {
			a, b := approver.Approve(&c.Requests[i], one), approver.Approve(&c.Requests[i], other)
			if a.Approve != b.Approve {
				t.Fatalf("%+v or %+v", a, b)
			}
		}
	})
}
