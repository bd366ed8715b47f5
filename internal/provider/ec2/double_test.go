package ec2_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
)

// E-38: of two machines for one claim, the one that is not the claim's own is an orphan. Both have the claim's name,
// which must not keep it alive.
func TestADoubleIsNobodys(t *testing.T) {
	t.Parallel()
	s := whatIsSold(t)
	late := ec2test.Visibility{Share: 1, Least: metav1.Duration{Duration: time.Minute},
		Most: metav1.Duration{Duration: time.Minute}}
	a := newAccount(t, s, ec2test.Faults{Tokens: ec2test.TokenIgnore, Visibility: late,
		LostAfter: []ec2test.Loss{{Action: "ec2:CreateFleet", Share: 1, Times: 1}}})
	c := claim("n0")
	if _, err := a.Launch(t.Context(), c, time.Time{}); err == nil {
		t.Fatal("no answer was lost")
	}
	own, err := a.Launch(t.Context(), a.kube.Of(c.UID), time.Time{})
	if err != nil || a.Machines() != 2 {
		t.Fatalf("%d machines, error %v; want two: the first is not shown, and EC2 does not know the token",
			a.Machines(), err)
	}
	a.kube.bind(a.kube.Of(c.UID), own.ProviderID)
	a.Settle(t)
	list, err := a.List(t.Context())
	if err != nil || len(list) != 2 {
		t.Fatalf("listed %+v, error %v", list, err)
	}
	for _, i := range list {
		if i.ProviderID == own.ProviderID && (i.ClaimUID != string(c.UID) || i.ClaimName != c.Name) {
			t.Errorf("the claim's own machine is listed as that of claim %q, UID %q", i.ClaimName, i.ClaimUID)
		}
		if i.ProviderID != own.ProviderID && (i.ClaimUID != "" || i.ClaimName != "") {
			t.Errorf("the double is listed as that of claim %q, UID %q", i.ClaimName, i.ClaimUID)
		}
	}
}
