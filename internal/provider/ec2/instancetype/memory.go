package instancetype

import (
	"strings"
	"sync"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// caution is the share of memory that is subtracted when a type is estimated from a smaller one.
const caution = 0.01

// Memory remembers the memory of nodes (E-21). EC2 advertises more than a machine shows; the difference depends on
// type and image. All of it comes from Node objects, and a process fills it from them at its start. Safe for
// concurrent use.
type Memory struct {
	mu      sync.Mutex
	seen    map[string]map[Image]int64 // by type: the least, in bytes
	version int64
}

// Image is what a machine runs.
type Image struct {
	Family string // as in spec.amiFamily: AL2023, Bottlerocket, Custom
	ID     string
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory { return &Memory{seen: map[string]map[Image]int64{}} }

// Saw stores the memory of a registered node, in bytes, and reports whether planning should now expect another amount.
// The lowest counts: a node with less than planned corrects its type at once.
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
	m.version++
	return true
}

// Version returns a number that is another one once planning should expect another amount.
func (m *Memory) Version() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.version
}

// Of returns the expected memory of a node of a type with an image, in bytes. It is what such nodes had, or what nodes
// of the type had with another image of the family. Otherwise it is estimated from the next smaller type of the
// instance family, and a little less. It is 0 when none of these was seen. types are all types of EC2.
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
			continue // checked before the look-up, which copies a large struct
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

// of returns the memory of nodes of one type: with the image, or otherwise with others of its family.
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

// nearer reports whether a is the larger of two smaller types. Among equals the first name wins.
func nearer(a, b *ec2types.InstanceTypeInfo) bool {
	if advertised(a) != advertised(b) {
		return advertised(a) > advertised(b)
	}
	return a.InstanceType < b.InstanceType
}
