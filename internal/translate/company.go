package translate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// Company is how many equal claims are created together. A cloud that launches many machines in one call knows by it
// which claims to wait for (E-29, E-35).
type Company struct {
	Group string // equal for claims of one company
	Size  int    // this claim among them
}

// mostCompany bounds the size that we believe: anybody may write the annotation.
const mostCompany = 100_000

// SetCompany writes the company of a claim into its annotations, before the claim is created.
func SetCompany(claim *karpenterv1.NodeClaim, c Company) {
	if c.Size < 1 {
		return
	}
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	claim.Annotations[karpenterv1.LaunchedWithAnnotationKey] = c.Group + "/" + strconv.Itoa(c.Size)
}

// CompanyOf returns the company of a claim. The zero value means unknown: the claim is another program's, or somebody
// has changed it.
func CompanyOf(claim *karpenterv1.NodeClaim) Company {
	group, size, found := strings.Cut(claim.Annotations[karpenterv1.LaunchedWithAnnotationKey], "/")
	n, err := strconv.Atoi(size)
	if !found || group == "" || err != nil || n < 1 || n > mostCompany {
		return Company{}
	}
	return Company{Group: group, Size: n}
}

// Companies returns the company of each claim, in their order. seed makes the groups of different plans differ. A nil
// claim has none.
func Companies(claims []*karpenterv1.NodeClaim, seed string) ([]Company, error) {
	groups := make([]string, len(claims))
	sizes := map[string]int{}
	for i, claim := range claims {
		if claim == nil {
			continue
		}
		text, err := json.Marshal(struct {
			Seed   string
			Labels map[string]string
			Spec   karpenterv1.NodeClaimSpec
		}{seed, claim.Labels, claim.Spec})
		if err != nil {
			return nil, fmt.Errorf("comparing NodeClaim %s with others: %w", claim.Name, err)
		}
		sum := sha256.Sum256(text)
		groups[i] = hex.EncodeToString(sum[:8])
		sizes[groups[i]]++
	}
	companies := make([]Company, len(claims))
	for i, group := range groups {
		if group != "" {
			companies[i] = Company{group, sizes[group]}
		}
	}
	return companies, nil
}
