// Package kubereserved computes what an EKS node keeps for itself by default: the kubelet's reservations by cores and
// pods, and its eviction threshold (E-22; the rule of EKS' own images).
package kubereserved

// In bytes.
const (
	memory       = 255 << 20
	memoryPerPod = 11 << 20

	// EvictionMemory is the memory below which the kubelet evicts.
	EvictionMemory = 100 << 20
)

// CPU returns what the kubelet reserves on a node with this number of cores, in millicores: 6 % of the first, 1 % of
// the second, 0.5 % of the third and fourth and 0.25 % of the others, rounded down.
func CPU(cores int64) int64 {
	quarters := int64(0) // of a millicore
	for core := range cores {
		switch {
		case core == 0:
			quarters += 240
		case core == 1:
			quarters += 40
		case core < 4:
			quarters += 20
		default:
			quarters += 10
		}
	}
	return quarters / 4
}

// Memory returns the memory that the kubelet reserves on a node with room for this number of pods, in bytes.
func Memory(pods int64) int64 { return memory + memoryPerPod*pods }
