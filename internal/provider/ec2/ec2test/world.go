package ec2test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"net/netip"
	"strings"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// Capacity types, with the values of Karpenter's label. EC2 uses the first as a lifecycle.
const (
	spot     = "spot"
	onDemand = "on-demand"
)

// VPC is the default network of everything.
const VPC = "vpc-0a1b2c3d4e5f60718"

// Subnet is a subnet of the account.
type Subnet struct {
	ID, Zone, ZoneID, VPC string
	CIDR                  string
	Tags                  map[string]string
}

// SecurityGroup is a security group of the account.
type SecurityGroup struct {
	ID, Name, Description, VPC string
	Tags                       map[string]string
}

// Image is an AMI.
type Image struct {
	ID, Name, Description string
	Architecture          string // x86_64 or arm64
	Owner, Alias          string // the account; amazon, or "" for none
	Created, Deprecated   time.Time
	RootDevice            string
	SnapshotGiB           int // of the root device
	State                 string
	Tags                  map[string]string
}

// world is the state of an account.
type world struct {
	types        map[string]ec2types.InstanceTypeInfo
	zonesOf      map[string][]string // zones that sell a type
	prices       map[string]float64  // on-demand, dollars an hour, where a test set one
	spots        map[[2]string]float64
	networks     map[string]bool         // by cluster
	vpcs         map[string]netip.Prefix // that were made through the API
	subnets      map[string]*subnet
	groups       map[string]SecurityGroup
	images       map[string]Image
	template     map[string]*template // by id
	tokens       map[string]*fleet    // by client token
	fleets       int
	machines     map[string]*Instance
	launched     int
	reservations map[string]*CapacityReservation
	placements   map[string]PlacementGroup // by name
	others
}

// subnet is a Subnet with its free addresses.
type subnet struct {
	Subnet
	prefix netip.Prefix
	free   int
	next   netip.Addr
}

func newWorld() world {
	return world{
		types: map[string]ec2types.InstanceTypeInfo{}, zonesOf: map[string][]string{}, prices: map[string]float64{},
		spots: map[[2]string]float64{}, networks: map[string]bool{}, vpcs: map[string]netip.Prefix{},
		subnets: map[string]*subnet{}, groups: map[string]SecurityGroup{}, images: map[string]Image{},
		template: map[string]*template{}, tokens: map[string]*fleet{}, machines: map[string]*Instance{},
		reservations: map[string]*CapacityReservation{}, placements: map[string]PlacementGroup{}, others: newOthers(),
	}
}

// newID returns an id such as i-0f3a…. The n-th id is the same in every run.
func (s *Server) newID(prefix string) string {
	s.ids++
	sum := sha256.Sum256(fmt.Append(nil, s.region, s.ids, prefix))
	return prefix + "-" + hex.EncodeToString(sum[:])[:17]
}

// AddSubnet adds a subnet, and fills in empty fields. It has the addresses of its CIDR, without the five that AWS
// keeps.
func (s *Server) AddSubnet(n Subnet) Subnet {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addSubnet(n)
}

func (s *Server) addSubnet(n Subnet) Subnet {
	if n.ID == "" {
		n.ID = s.newID("subnet")
	}
	if n.CIDR == "" {
		n.CIDR = fmt.Sprintf("10.%d.0.0/16", len(s.subnets))
	}
	if n.VPC == "" {
		n.VPC = VPC
	}
	if n.ZoneID == "" {
		n.ZoneID = zoneID(n.Zone)
	}
	added := &subnet{Subnet: n, prefix: netip.MustParsePrefix(n.CIDR)}
	const kept = 5
	added.free = 1<<(32-added.prefix.Bits()) - kept
	added.next = added.prefix.Addr()
	for range kept - 1 {
		added.next = added.next.Next()
	}
	if free, set := s.faults.FreeAddresses[n.ID]; set {
		added.free = free
	}
	s.subnets[n.ID] = added
	return n
}

// zoneID returns the account-independent name of a zone: use1-az1 for us-east-1a.
func zoneID(zone string) string {
	parts := strings.Split(zone, "-")
	if len(parts) < 3 || len(parts[2]) < 2 {
		return zone
	}
	return parts[0] + parts[1][:1] + parts[2][:1] + "-az" + fmt.Sprint(int(parts[2][1]-'a')+1)
}

// AddSecurityGroup adds a security group, and fills in empty fields.
func (s *Server) AddSecurityGroup(g SecurityGroup) SecurityGroup {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g.ID == "" {
		g.ID = s.newID("sg")
	}
	if g.VPC == "" {
		g.VPC = VPC
	}
	s.groups[g.ID] = g
	return g
}

// AddImage adds an image, or replaces the one with its id. It fills in empty fields.
func (s *Server) AddImage(i Image) Image {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addImage(i)
}

func (s *Server) addImage(i Image) Image {
	if i.ID == "" {
		i.ID = s.newID("ami")
	}
	if i.Owner == "" {
		i.Owner, i.Alias = "602401143452", "amazon"
	}
	if i.Created.IsZero() {
		i.Created = s.now()
	}
	if i.RootDevice == "" {
		i.RootDevice = "/dev/xvda"
	}
	if i.SnapshotGiB == 0 {
		i.SnapshotGiB = 20
	}
	if i.State == "" {
		i.State = "available"
	}
	if i.Architecture == "" {
		i.Architecture = "x86_64"
	}
	s.images[i.ID] = i
	return i
}

// AddNetwork adds what most tests need: a subnet in each zone and a security group, with the tag
// karpenter.sh/discovery.
func (s *Server) AddNetwork(cluster string, zones ...string) ([]Subnet, SecurityGroup) {
	s.mu.Lock()
	s.networks[cluster] = true
	s.mu.Unlock()
	var subnets []Subnet
	for _, zone := range zones {
		subnets = append(subnets, s.AddSubnet(Subnet{Zone: zone,
			Tags: map[string]string{"karpenter.sh/discovery": cluster}}))
	}
	group := s.AddSecurityGroup(SecurityGroup{
		Name: "eks-cluster-sg-" + cluster, Tags: map[string]string{"karpenter.sh/discovery": cluster},
	})
	return subnets, group
}

// SetPrice sets the on-demand price of a type, in dollars an hour.
func (s *Server) SetPrice(kind string, dollars float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prices[kind] = dollars
}

// SetSpotPrice sets the spot price of a type in a zone.
func (s *Server) SetSpotPrice(kind, zone string, dollars float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spots[[2]string{kind, zone}] = dollars
}

// onDemandPrice returns the price that was set, or one computed from the type's resources: only a plausible order
// matters.
func (s *Server) onDemandPrice(kind string) float64 {
	if price, set := s.prices[kind]; set {
		return price
	}
	info := s.types[kind]
	price := 0.0
	if info.VCpuInfo != nil && info.VCpuInfo.DefaultVCpus != nil {
		price += 0.032 * float64(*info.VCpuInfo.DefaultVCpus)
	}
	if info.MemoryInfo != nil && info.MemoryInfo.SizeInMiB != nil {
		price += 0.004 * float64(*info.MemoryInfo.SizeInMiB) / 1024
	}
	if info.GpuInfo != nil {
		for _, gpu := range info.GpuInfo.Gpus {
			if gpu.Count != nil {
				price += 0.5 * float64(*gpu.Count)
			}
		}
	}
	return price
}

// spotPrice returns the price that was set, or 30 to 60 % of on-demand, by type and zone.
func (s *Server) spotPrice(kind, zone string) float64 {
	if price, set := s.spots[[2]string{kind, zone}]; set {
		return price
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(kind + "/" + zone))
	return s.onDemandPrice(kind) * (0.3 + float64(sum.Sum32()%300)/1000)
}

func (s *Server) price(kind, zone, capacityType string) float64 {
	if capacityType == spot {
		return s.spotPrice(kind, zone)
	}
	return s.onDemandPrice(kind)
}

// FreeAddresses returns how many addresses a subnet has left.
func (s *Server) FreeAddresses(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.subnets[id]; n != nil {
		return n.free
	}
	return 0
}
