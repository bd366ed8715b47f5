package ec2test

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// States of an instance, and their codes.
const (
	Pending      = "pending"
	Running      = "running"
	ShuttingDown = "shutting-down"
	Terminated   = "terminated"
)

var stateCodes = map[string]int{Pending: 0, Running: 16, ShuttingDown: 32, Terminated: 48}

// How long an instance takes from one state to the next where Options do not say, and how long a terminated one is
// listed: about as with EC2.
const (
	bootTime      = 15 * time.Second
	shutTime      = 30 * time.Second
	rememberTime  = time.Hour
	interruptTime = 2 * time.Minute
)

// Instance is an instance of the account.
type Instance struct {
	ID, Type, Zone, ZoneID, Subnet, Image string
	CapacityType, SpotRequest             string
	Reservation                           string // the capacity reservation it uses
	Fleet, Template, Token                string
	IP                                    netip.Addr
	Groups                                []string
	Tags, VolumeTags                      map[string]string
	State, Code, Message                  string // Code and Message are the state's reason
	Launched, Ended                       time.Time
	Protected                             bool // from termination

	data           templateData
	addresses      int
	number         int
	visible        time.Time
	ends, warned   time.Time
	told, impaired bool
	impairedSince  time.Time
	endCode        string
	endMessage     string
	events         []ScheduledEvent
}

// UserData returns the user data of the instance's launch template, in base64 as it was sent.
func (i Instance) UserData() string { return i.data.UserData }

// Enclaves reports whether programs on the instance can start enclaves.
func (i Instance) Enclaves() bool { return i.data.enclaves() }

func (i *Instance) runs() bool { return i.State == Pending || i.State == Running }

// settle makes everything happen that is due by now.
func (s *Server) settle() {
	now := s.now()
	s.expireReservations()
	for _, id := range slices.Sorted(maps.Keys(s.machines)) {
		i := s.machines[id]
		if i.State == Pending && !now.Before(i.Launched.Add(s.boot)) {
			s.turn(i, Running, i.Launched.Add(s.boot))
		}
		if i.runs() && !i.ends.IsZero() && !now.Before(i.ends) {
			s.end(i, i.ends, i.endCode, i.endMessage)
		}
		if i.runs() && !i.warned.IsZero() && !now.Before(i.warned) {
			if !i.told {
				i.told = true
				s.warn(i, i.warned)
			}
			if end := i.warned.Add(interruptTime); !now.Before(end) {
				s.end(i, end, "Server.SpotInstanceTermination",
					"Server.SpotInstanceTermination: Spot instance termination")
			}
		}
		if i.State == ShuttingDown && !now.Before(i.Ended.Add(s.shut)) {
			s.turn(i, Terminated, i.Ended.Add(s.shut))
		}
		if i.State == Terminated && !now.Before(i.Ended.Add(rememberTime)) {
			delete(s.machines, id)
		}
	}
}

// end begins an instance's end and returns its addresses and capacity.
func (s *Server) end(i *Instance, at time.Time, code, message string) {
	if !i.runs() {
		return
	}
	i.Ended, i.Code, i.Message = at, code, message
	s.turn(i, ShuttingDown, at)
	if n := s.subnets[i.Subnet]; n != nil {
		n.free += i.addresses
	}
	if r := s.reservations[i.Reservation]; r != nil {
		r.free++
	} else if line := s.faults.pool(i.Type, i.Zone, i.CapacityType); line != nil {
		line.Free++
	}
}

// Interrupt warns a spot instance now; two minutes later it ends.
func (s *Server) Interrupt(id string) {
	s.change(id, func(i *Instance) { i.warned = s.now() })
	s.Advance(0)
}

// End ends an instance as if it had done so by itself, with a state reason.
func (s *Server) End(id, code, message string) {
	s.change(id, func(i *Instance) { s.end(i, s.now(), code, message) })
}

// Impair makes the status checks of an instance fail from now on.
func (s *Server) Impair(id string) {
	s.change(id, func(i *Instance) { i.impaired, i.impairedSince = true, s.now() })
}

// SetGroups gives an instance other security groups, as a firewall manager does.
func (s *Server) SetGroups(id string, groups ...string) {
	s.change(id, func(i *Instance) { i.Groups = groups })
}

// Protect protects an instance from termination.
func (s *Server) Protect(id string) { s.change(id, func(i *Instance) { i.Protected = true }) }

func (s *Server) change(id string, by func(*Instance)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := s.machines[id]; i != nil {
		by(i)
	}
}

// Instances returns every instance that EC2 knows, in order of launch, visible in listings or not.
func (s *Server) Instances() []Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settle()
	var all []Instance
	for _, i := range s.machines {
		shown := *i
		shown.Tags, shown.VolumeTags = maps.Clone(i.Tags), maps.Clone(i.VolumeTags)
		all = append(all, shown)
	}
	slices.SortFunc(all, func(a, b Instance) int { return cmp.Compare(a.number, b.number) })
	return all
}

type describeInstancesIn struct {
	checked
	paging
	Filters []filter `query:"Filter"`
	IDs     []string `query:"InstanceId"`
}

type describeInstancesOut struct {
	Reservations []reservationXML `xml:"reservationSet>item"`
	Next         *string          `xml:"nextToken"`
}

type reservationXML struct {
	ID        string        `xml:"reservationId"`
	Owner     string        `xml:"ownerId"`
	Instances []instanceXML `xml:"instancesSet>item"`
}

type stateXML struct {
	Code int    `xml:"code"`
	Name string `xml:"name"`
}

type reasonXML struct {
	Code    string `xml:"code"`
	Message string `xml:"message"`
}

type groupRef struct {
	ID   string `xml:"groupId"`
	Name string `xml:"groupName"`
}

type instanceXML struct {
	ID           string         `xml:"instanceId"`
	Image        string         `xml:"imageId"`
	State        stateXML       `xml:"instanceState"`
	PrivateName  string         `xml:"privateDnsName"`
	Reason       *reasonXML     `xml:"stateReason"`
	Type         string         `xml:"instanceType"`
	Launched     string         `xml:"launchTime"`
	Zone         string         `xml:"placement>availabilityZone"`
	ZoneID       string         `xml:"placement>availabilityZoneId,omitempty"`
	Tenancy      string         `xml:"placement>tenancy"`
	Group        string         `xml:"placement>groupName,omitempty"`
	GroupID      string         `xml:"placement>groupId,omitempty"`
	Partition    *int64         `xml:"placement>partitionNumber"`
	Subnet       string         `xml:"subnetId,omitempty"`
	VPC          string         `xml:"vpcId,omitempty"`
	IP           string         `xml:"privateIpAddress,omitempty"`
	Architecture string         `xml:"architecture"`
	RootName     string         `xml:"rootDeviceName"`
	RootType     string         `xml:"rootDeviceType"`
	Lifecycle    string         `xml:"instanceLifecycle,omitempty"`
	SpotRequest  string         `xml:"spotInstanceRequestId,omitempty"`
	Token        string         `xml:"clientToken,omitempty"`
	Tags         []tag          `xml:"tagSet>item"`
	Groups       []groupRef     `xml:"groupSet>item"`
	Interfaces   []interfaceXML `xml:"networkInterfaceSet>item"`
	Devices      []volumeXML    `xml:"blockDeviceMapping>item"`
	Profile      *profileXML    `xml:"iamInstanceProfile"`
	Enclave      *enabled       `xml:"enclaveOptions"`
	Reservation  string         `xml:"capacityReservationId,omitempty"`
	// Reserves is what the instance asked of capacity reservations; open ones, if it asked for nothing.
	Reserves reservationSpec `xml:"capacityReservationSpecification"`
}

type interfaceXML struct {
	ID     string     `xml:"networkInterfaceId"`
	Subnet string     `xml:"subnetId"`
	IP     string     `xml:"privateIpAddress"`
	Kind   string     `xml:"interfaceType"`
	Groups []groupRef `xml:"groupSet>item"`
}

type volumeXML struct {
	Name   string `xml:"deviceName"`
	Volume string `xml:"ebs>volumeId"`
	Status string `xml:"ebs>status"`
	Delete bool   `xml:"ebs>deleteOnTermination"`
}

type profileXML struct {
	ARN string `xml:"arn"`
	ID  string `xml:"id"`
}

var instanceFilters = fields[*Instance]{
	"instance-id":         one(func(i *Instance) string { return i.ID }),
	"instance-state-name": one(func(i *Instance) string { return i.State }),
	"instance-state-code": one(func(i *Instance) string { return fmt.Sprint(stateCodes[i.State]) }),
	"instance-type":       one(func(i *Instance) string { return i.Type }),
	"image-id":            one(func(i *Instance) string { return i.Image }),
	"subnet-id":           one(func(i *Instance) string { return i.Subnet }),
	"availability-zone":   one(func(i *Instance) string { return i.Zone }),
	"client-token":        one(func(i *Instance) string { return i.Token }),
	"private-ip-address":  one(func(i *Instance) string { return i.IP.String() }),
	"instance-lifecycle":  one(func(i *Instance) string { return i.lifecycle() }),
	"instance.group-id":   func(i *Instance) []string { return i.Groups },
}

func (i *Instance) lifecycle() string {
	if i.CapacityType == spot {
		return spot
	}
	if m := i.data.Market; m != nil { // capacity blocks and interruptible reservations
		return m.Kind
	}
	return ""
}

// seen finds instances by id as a caller sees them: one that is late is not there yet.
func (c *call) seen(ids []string) ([]*Instance, error) {
	var list []*Instance
	if len(ids) == 0 {
		for _, i := range c.machines {
			if !i.visible.After(c.now()) {
				list = append(list, i)
			}
		}
		return list, nil
	}
	var missing []string
	for _, id := range ids {
		if err := checkID("i", id); err != nil {
			return nil, err
		}
		if i := c.machines[id]; i != nil && !i.visible.After(c.now()) {
			list = append(list, i)
		} else {
			missing = append(missing, id)
		}
	}
	switch len(missing) {
	case 0:
		return list, nil
	case 1:
		return nil, refuse(400, "InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", missing[0])
	}
	return nil, refuse(400, "InvalidInstanceID.NotFound", "The instance IDs '%s' do not exist",
		strings.Join(missing, ", "))
}

// checkID refuses an invalid id.
func checkID(prefix, id string) error {
	rest, ok := strings.CutPrefix(id, prefix+"-")
	hex := strings.Trim(rest, "0123456789abcdef") == ""
	if ok && hex && (len(rest) == 8 || len(rest) == 17) {
		return nil
	}
	return refuse(400, "InvalidInstanceID.Malformed", "Invalid id: \"%s\"", id)
}

func describeInstances(c *call, in *describeInstancesIn) (any, error) {
	if err := c.listing(in.DryRun); err != nil {
		return nil, err
	}
	if err := wholeOrPaged(in.paging, in.IDs, "instancesSet"); err != nil {
		return nil, err
	}
	list, err := c.seen(in.IDs)
	if err != nil {
		return nil, err
	}
	known := maps.Clone(instanceFilters)
	known["vpc-id"] = func(i *Instance) []string { return []string{c.subnets[i.Subnet].VPC} }
	known["private-dns-name"] = func(i *Instance) []string { return []string{c.hostname(i)} }
	list, err = filtered(list, in.Filters, known, func(i *Instance) map[string]string { return i.Tags })
	if err != nil {
		return nil, err
	}
	list, next, err := page(c, list, func(i *Instance) string { return i.ID }, in.paging, bounds{5, 1000})
	out := describeInstancesOut{Next: next}
	for _, i := range list {
		shown := c.instance(i)
		for _, what := range c.faults.Omit {
			omissions[what](&shown)
		}
		r := reservationXML{ID: strings.Replace(i.ID, "i-", "r-", 1), Owner: Account,
			Instances: []instanceXML{shown}}
		out.Reservations = append(out.Reservations, r)
	}
	return out, err
}

// hostname is the name by address, or by resource when the template asks for it.
func (s *Server) hostname(i *Instance) string {
	domain := s.region + ".compute.internal"
	if s.region == "us-east-1" {
		domain = "ec2.internal"
	}
	if d := i.data.PrivateDNS; d != nil && d.Kind == "resource-name" {
		return i.ID + "." + domain
	}
	return "ip-" + strings.ReplaceAll(i.IP.String(), ".", "-") + "." + domain
}

// instance shows an instance. One that is terminated has lost its network and its volumes.
func (s *Server) instance(i *Instance) instanceXML {
	image := s.images[i.Image]
	x := instanceXML{
		ID: i.ID, Image: i.Image, State: stateXML{stateCodes[i.State], i.State}, Type: i.Type,
		Launched: stamp(i.Launched), Zone: i.Zone,
		ZoneID: i.ZoneID, Tenancy: "default", Architecture: image.Architecture, RootName: image.RootDevice,
		RootType:  "ebs",
		Lifecycle: i.lifecycle(), SpotRequest: i.SpotRequest, Token: i.Token, Tags: tagList(i.Tags),
		Enclave: i.data.Enclave, Reservation: i.Reservation, Reserves: reservationSpec{Preference: "open"},
	}
	if asked := i.data.Reservation; asked != nil {
		x.Reserves = *asked
	}
	if i.Code != "" {
		x.Reason = &reasonXML{i.Code, i.Message}
	}
	if p := i.data.Placement; p != nil {
		x.Tenancy, x.Partition = cmp.Or(p.Tenancy, x.Tenancy), p.Partition
		if g, in := s.placement(&i.data); in {
			x.Group, x.GroupID = g.Name, g.ID
		}
	}
	if p := i.data.Profile; p != nil {
		name := cmp.Or(p.Name, p.ARN[strings.LastIndex(p.ARN, "/")+1:])
		x.Profile = &profileXML{cmp.Or(p.ARN, "arn:aws:iam::"+Account+":instance-profile/"+name),
			"AIPA" + strings.ToUpper(i.ID[2:])}
	}
	if i.State == Terminated {
		return x
	}
	x.Subnet, x.VPC, x.IP, x.PrivateName = i.Subnet, s.subnets[i.Subnet].VPC, i.IP.String(), s.hostname(i)
	for _, id := range i.Groups {
		x.Groups = append(x.Groups, groupRef{id, s.groups[id].Name})
	}
	for at, kind := range i.data.interfaceKinds() {
		ip := ""
		if at == 0 {
			ip = x.IP
		}
		id := strings.Replace(i.ID, "i-", fmt.Sprintf("eni-%x", at), 1)[:21]
		x.Interfaces = append(x.Interfaces, interfaceXML{id, i.Subnet, ip, kind, x.Groups})
	}
	for at, name := range i.data.deviceNames(image.RootDevice) {
		x.Devices = append(x.Devices, volumeXML{name, volumeID(i, at), "attached", true})
	}
	return x
}

// omissions are the fields that can be left out of an instance, by name.
var omissions = map[string]func(*instanceXML){
	"spot-request": func(x *instanceXML) { x.SpotRequest = "" },
	"zone-id":      func(x *instanceXML) { x.ZoneID = "" },
	"token":        func(x *instanceXML) { x.Token = "" },
	"groups": func(x *instanceXML) {
		x.Groups = nil
		for at := range x.Interfaces {
			x.Interfaces[at].Groups = nil
		}
	},
}

func (d *templateData) interfaceKinds() []string {
	if len(d.Interfaces) == 0 {
		return []string{"interface"}
	}
	var kinds []string
	for _, n := range d.Interfaces {
		kinds = append(kinds, cmp.Or(n.Kind, "interface"))
	}
	return kinds
}

// deviceNames returns the devices of an instance: those of the template, and the root's.
func (d *templateData) deviceNames(root string) []string {
	names := []string{root}
	for _, dev := range d.Devices {
		if dev.Name != root && dev.EBS != nil {
			names = append(names, dev.Name)
		}
	}
	return names
}
