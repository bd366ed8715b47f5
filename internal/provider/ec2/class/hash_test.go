package class_test

import (
	"testing"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/class"
)

// E-01, E-05: the hash of a class that does not use a field is the one that earlier releases wrote, or each update
// would roll every node. Enclaves count as Karpenter 1.15.1 counts them: false is another spec than nothing.
func TestTheHashOfAFieldThatIsNotSet(t *testing.T) {
	t.Parallel()
	hash := func(change ...func(*awsv1.EC2NodeClassSpec)) string {
		text, err := class.Hash(ofFamily("al2023@latest", change...))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	enclaves := func(enabled bool) string {
		return hash(func(s *awsv1.EC2NodeClassSpec) { s.EnclaveOptions = &awsv1.EnclaveOptions{Enabled: enabled} })
	}
	if got := hash(); got != hashBefore {
		t.Errorf("hash %s, want %s as before there was enclaveOptions", got, hashBefore)
	}
	if on, off := enclaves(true), enclaves(false); on == off || on == hash() || off == hash() {
		t.Errorf("hashes %s with enclaves, %s with false, %s without: want three", on, off, hash())
	}
}

// hashBefore is the hash of the test's class in the release before spec.enclaveOptions.
const hashBefore = "12e78ad4b531ccc7"
