package instancetype_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/instancetype"
)

// E-21: memory is learned: the minimum of the nodes seen, nearest first; a smaller type tells how much a larger one
// loses.
func TestMemoryIsLearned(t *testing.T) {
	t.Parallel()
	types := ec2test.Types(t)
	old, fresh := instancetype.Image{Family: "AL2023", ID: "ami-1"}, instancetype.Image{Family: "AL2023", ID: "ami-2"}
	rocket := instancetype.Image{Family: "Bottlerocket", ID: "ami-9"}
	m := instancetype.NewMemory()
	want := func(kind string, image instancetype.Image, mib int64) {
		t.Helper()
		info := types[kind]
		if got := m.Of(&info, image, types); got != mib*mi {
			t.Errorf("%s with %s: %d MiB, want %d", kind, image.ID, got/mi, mib)
		}
	}
	saw := func(kind string, image instancetype.Image, mib int64, changes bool) {
		t.Helper()
		if got := m.Saw(kind, image, mib*mi); got != changes {
			t.Errorf("%s with %s has %d MiB: changes %t", kind, image.ID, mib, got)
		}
	}
	want("m5.large", old, 0) // nothing was seen
	saw("m5.large", old, 7900, true)
	saw("m5.large", old, 7950, false) // the least counts
	saw("m5.large", old, 7800, true)
	want("m5.large", old, 7800)
	want("m5.large", fresh, 7800) // another image of the family
	want("m5.large", rocket, 0)   // of another one
	saw("m5.large", fresh, 7850, true)
	want("m5.large", fresh, 7850)
	want("m5.large", old, 7800)
	want("m5.xlarge", old, 15436)    // 7800 of 8192 is 95.2 %: 94.2 % of 16384
	want("m5a.xlarge", old, 0)       // another instance family
	want("m5.2xlarge", fresh, 31072) // 7850 of 8192
	saw("m5.xlarge", old, 15800, true)
	want("m5.2xlarge", old, 31272) // the next smaller one: 15800 of 16384
	want("m5.large", old, 7800)    // never by a larger one
	saw("", old, 1, false)
	saw("m5.metal", old, 0, false)
}

// E-21: whatever was seen in whatever order, no promise exceeds the minimum of such nodes.
func TestMemoryPromisesNoMoreThanWasSeen(t *testing.T) {
	t.Parallel()
	types := ec2test.Types(t)
	rapid.Check(t, func(t *rapid.T) {
		m := instancetype.NewMemory()
		least := map[string]int64{}
		image := instancetype.Image{Family: "AL2023", ID: "ami-1"}
		for range rapid.IntRange(1, 8).Draw(t, "nodes") {
			kind := rapid.SampledFrom([]string{"m5.large", "m5.xlarge", "m5.2xlarge", "c5.large"}).Draw(t, "type")
			bytes := rapid.Int64Range(1, 8*gi).Draw(t, "memory")
			m.Saw(kind, image, bytes)
			if before, known := least[kind]; !known || bytes < before {
				least[kind] = bytes
			}
		}
		for kind, bytes := range least {
			info := types[kind]
			if got := m.Of(&info, image, types); got != bytes {
				t.Fatalf("%s: %d, want %d", kind, got, bytes)
			}
		}
	})
}
