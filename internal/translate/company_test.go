package translate

import (
	"strings"
	"testing"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// E-29, E-35: equal claims of one plan are a company. The annotation is read back from a claim; what others have
// written there is ignored.
func TestCompanies(t *testing.T) {
	t.Parallel()
	of := func(name, team string) *karpenterv1.NodeClaim {
		c := &karpenterv1.NodeClaim{}
		c.Name, c.Labels = name, map[string]string{"team": team}
		return c
	}
	claims := []*karpenterv1.NodeClaim{of("1", "a"), of("2", "b"), nil, of("3", "a")}
	first, err := Companies(claims, "plan 1")
	if err != nil {
		t.Fatal(err)
	}
	if first[0] != first[3] || first[0].Size != 2 || first[1].Size != 1 || first[1].Group == first[0].Group ||
		first[2] != (Company{}) {
		t.Errorf("companies %+v", first)
	}
	if other, err := Companies(claims, "plan 2"); err != nil || other[0].Group == first[0].Group {
		t.Errorf("companies %+v of another plan, error %v", other, err)
	}
	for i, claim := range claims {
		if claim == nil {
			continue
		}
		if SetCompany(claim, first[i]); CompanyOf(claim) != first[i] {
			t.Errorf("%s: %+v is read, want %+v", claim.Name, CompanyOf(claim), first[i])
		}
	}
	for _, text := range []string{"", "g", "/1", "g/", "g/0", "g/-1", "g/x", "g/1/2", "g/100001",
		"g/" + strings.Repeat("9", 30)} {
		claims[0].Annotations[karpenterv1.LaunchedWithAnnotationKey] = text
		if c := CompanyOf(claims[0]); c != (Company{}) {
			t.Errorf("%q is read as %+v, want nothing", text, c)
		}
	}
	SetCompany(claims[1], Company{})
	if c := CompanyOf(claims[1]); c != first[1] {
		t.Errorf("%+v after nothing was to be said, want %+v", c, first[1])
	}
}
