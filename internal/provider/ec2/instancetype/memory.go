package instancetype

import (
	"strings"
	"sync"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// caution is the share of the memory that is left out when a type is judged by a smaller one.
const caution = 0.01

// Memory remembers how much memory nodes had (E-21). EC2 advertises more than a machine shows, by a part that depends
// on type and image. It holds nothing that the Node objects do not say: a process fills it from them when it starts.
// Safe for concurrent use.
type Memory struct {
	mu   sync.Mutex
	seen map[string]map[Image]int64 // by type: the least, in bytes
}

// Image is what a machine runs.
type Image struct {
	Family string // as in spec.amiFamily: AL2023, Bottlerocket, Custom
	ID     string
}

// NewMemory returns one that has seen nothing.
func NewMemory() *Memory { return &Memory{seen: map[string]map[Image]int64{}} }

// Saw takes in the memory of a registered node, in bytes, and reports whether that changes what planning should count
// on. The least counts: a node with less than was promised corrects its type at once.
func (m *Memory) Saw(kind string, image Image, bytes int64) bool {
	if kind == "" || bytes <= 0 {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, known := m.seen[kind][image]; known && before <= bytes {
		return false
	}
	if m.seen[kind] == nil {
		m.seen[kind] = map[Image]int64{}
	}
	m.seen[kind][image] = bytes
	return true
}

// Of returns what a node of a type will have with an image, in bytes: what such nodes had; else what nodes of the type
// had with another image of the family; else by the share that the next smaller type of its instance family lost, and
// a little less. 0 when nothing of the kind was seen. types are all that EC2 names.
func (m *Memory) Of(info *ec2types.InstanceTypeInfo, image Image, types map[string]ec2types.InstanceTypeInfo) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if bytes := m.of(string(info.InstanceType), image); bytes > 0 {
		return bytes
	}
	family, _, _ := strings.Cut(string(info.InstanceType), ".")
	var nearest *ec2types.InstanceTypeInfo
	var had int64
	for kind := range m.seen {
		if its, _, _ := strings.Cut(kind, "."); its != family {
			continue // before the look-up, which copies a large struct
		}
		other, known := types[kind]
		if !known || advertised(&other) <= 0 || advertised(&other) >= advertised(info) ||
			nearest != nil && !nearer(&other, nearest) {
			continue
		}
		if bytes := m.of(kind, image); bytes > 0 {
			nearest, had = &other, bytes
		}
	}
	if nearest == nil {
		return 0
	}
	share := float64(had)/float64(advertised(nearest)*mebibyte) - caution
	return int64(float64(advertised(info))*max(0, share)) * mebibyte
}

// of returns what nodes of one type had: with the image, or else with others of its family.
func (m *Memory) of(kind string, image Image) int64 {
	if bytes := m.seen[kind][image]; bytes > 0 {
		return bytes
	}
	least := int64(0)
	for other, bytes := range m.seen[kind] {
		if other.Family == image.Family && (least == 0 || bytes < least) {
			least = bytes
		}
	}
	return least
}

// nearer reports whether a is the larger one of two smaller types; of two of one size that with the first name.
func nearer(a, b *ec2types.InstanceTypeInfo) bool {
	if advertised(a) != advertised(b) {
		return advertised(a) > advertised(b)
	}
	return a.InstanceType < b.InstanceType
}
