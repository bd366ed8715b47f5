// Package kubereserved says what an EKS node keeps for itself where nobody says otherwise: the kubelet's reservations
// by cores and pods, and its eviction threshold (E-22; the rule of EKS' own images).
package kubereserved

// In bytes.
const (
	memory       = 255 << 20
	memoryPerPod = 11 << 20

	// EvictionMemory is the memory below which the kubelet evicts.
	EvictionMemory = 100 << 20
)

// CPU returns what the kubelet keeps of so many cores, in millicores: 6 % of the first, 1 % of the second, 0.5 % of
// the third and fourth and 0.25 % of the others, rounded down.
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

// Memory returns what the kubelet keeps of the memory of a node with room for so many pods, in bytes.
func Memory(pods int64) int64 { return memory + memoryPerPod*pods }
