package ec2test

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/iampolicy"
)

func splitName(name string) iter.Seq[string] { return strings.SplitSeq(name, ".") }

// launch is a fleet that is being filled.
type launch struct {
	*call
	fleet, token string
	capacityType string
	left         int
	tags         []tagSpecification
	pools        []pool
}

// pool is a source of a fleet's machines.
type pool struct {
	template                  *template
	override                  fleetOverride
	kind, zone, subnet, image string
	price                     float64
}

func (l *launch) pool(t *template, o fleetOverride) pool {
	p := pool{
		template: t, override: o, kind: cmp.Or(o.Type, t.data.InstanceType), image: cmp.Or(o.Image, t.data.ImageID),
		zone: o.Zone, subnet: o.Subnet,
	}
	for _, n := range t.data.Interfaces {
		p.subnet = cmp.Or(p.subnet, n.Subnet)
	}
	if n := l.subnets[p.subnet]; n != nil {
		p.zone = n.Zone
	}
	p.price = l.price(p.kind, p.zone, l.capacityType)
	return p
}

// sort puts the pools in the order in which the strategy uses them. EC2 does not say how it weighs price and capacity;
// here, pools with enough for the whole fleet go before others, and among equals the cheapest is first.
func (l *launch) sort(strategy string) {
	room := func(p pool) int {
		free := math.MaxInt
		if line := l.faults.pool(p.kind, p.zone, l.capacityType); line != nil {
			free = line.Free
		}
		return free
	}
	rank := func(p pool) float64 {
		if p.override.Priority == nil || !strings.HasSuffix(strategy, "prioritized") {
			return math.MaxFloat64
		}
		return *p.override.Priority
	}
	slices.SortStableFunc(l.pools, func(a, b pool) int {
		byRoom := 0
		switch strategy {
		case "price-capacity-optimized", "capacity-optimized-prioritized":
			byRoom = cmp.Compare(min(room(b), l.left), min(room(a), l.left))
		case "capacity-optimized":
			byRoom = cmp.Compare(room(b), room(a))
		}
		return cmp.Or(byRoom, cmp.Compare(rank(a), rank(b)), cmp.Compare(a.price, b.price),
			cmp.Compare(a.kind, b.kind), cmp.Compare(a.zone, b.zone))
	})
}

// fill launches from one pool after the other until there are enough machines, and notes why a pool gave none or too
// few.
func (l *launch) fill(out *fleetOut) {
	for _, p := range l.pools {
		if l.left == 0 {
			return
		}
		lifecycle := l.capacityType
		spec := fleetTemplate{ID: p.template.id, Name: p.template.name, Version: "1"}
		override := p.override
		override.Zone = p.zone
		group := fleetInstances{Launch: fleetLaunch{spec, override}, Lifecycle: lifecycle, Type: p.kind, Zone: p.zone,
			Subnet: p.subnet}
		var no *refused
		for l.left > 0 && no == nil {
			var i *Instance
			if i, no = l.one(p); no == nil {
				group.IDs = append(group.IDs, i.ID)
				l.left--
			}
		}
		if len(group.IDs) > 0 {
			out.Instances = append(out.Instances, group)
		}
		if no != nil {
			out.Errors = append(out.Errors, fleetError{Launch: &group.Launch, Lifecycle: lifecycle, Code: no.code,
				Message: no.message})
		}
	}
}

// one launches a machine from a pool, or says why not.
func (l *launch) one(p pool) (*Instance, *refused) {
	for _, check := range []func(pool) error{l.mayRun, l.fits, l.hasVolumes, l.hasPlacement, l.hasReservation,
		l.hasCapacity, l.hasQuota, l.hasAddresses} {
		if err := check(p); err != nil {
			return nil, err.(*refused)
		}
	}
	return l.start(p), nil
}

// mayRun asks for the rights that a launch needs of everything it uses and makes: the resources of RunInstances in
// AWS's service authorization reference, as far as a template names them, and the role that is passed.
func (l *launch) mayRun(p pool) error {
	const run = "ec2:RunInstances"
	asks := []Ask{
		{Action: run, Resource: l.arn("image", p.image)},
		{Action: run, Resource: l.arn("subnet", p.subnet)},
	}
	if p.template.id != "" {
		asks = append(asks, Ask{Action: run, Resource: l.arn("launch-template", p.template.id),
			ResourceTags: p.template.tags})
	}
	for _, id := range p.template.data.groups() {
		asks = append(asks, Ask{Action: run, Resource: l.arn("security-group", id)})
	}
	if r := p.template.data.Reservation; r != nil && r.Target != nil && r.Target.ID != "" {
		asks = append(asks, Ask{Action: run, Resource: l.arn("capacity-reservation", r.Target.ID)})
	}
	if g, wanted := l.placement(&p.template.data); wanted { // its ARN has the name
		asks = append(asks, Ask{Action: run, Resource: l.arn("placement-group", cmp.Or(g.Name, g.ID))})
	}
	for _, d := range p.template.data.Devices {
		if d.EBS != nil && d.EBS.Snapshot != "" {
			asks = append(asks, Ask{Action: run, Resource: l.arn("snapshot", d.EBS.Snapshot)})
		}
	}
	if of := p.template.data.Profile; of != nil {
		if profile := l.profiles[of.id()]; profile != nil && profile.role != "" {
			asks = append(asks, l.passing(profile.role))
		}
	}
	kinds := []string{"instance", "volume", "network-interface"}
	if l.capacityType == spot {
		kinds = append(kinds, "spot-instances-request")
	}
	for _, kind := range kinds {
		tags := l.tagsFor(p, kind)
		asks = append(asks, Ask{Action: run, Resource: l.arn(kind, "*"), RequestTags: tags})
		if len(tags) > 0 {
			create := map[string]string{iampolicy.CreateAction: "RunInstances"}
			asks = append(asks, Ask{Action: "ec2:CreateTags", Resource: l.arn(kind, "*"), RequestTags: tags,
				Context: create})
		}
	}
	asks = slices.DeleteFunc(asks, func(ask Ask) bool { // asked before, for another machine
		return slices.ContainsFunc(l.Asks, func(a Ask) bool {
			return a.Action == ask.Action && a.Resource == ask.Resource &&
				maps.Equal(a.RequestTags, ask.RequestTags) &&
				a.Context[iampolicy.CreateAction] == ask.Context[iampolicy.CreateAction] && l.faults.denied(ask) == ""
		})
	})
	return l.authorize(asks...)
}

// tagsFor are the tags of the template for a kind of resource, with those of the request.
func (l *launch) tagsFor(p pool, kind string) map[string]string {
	tags := map[string]string{}
	for _, list := range [][]tagSpecification{p.template.data.TagSpecification, l.tags} {
		for _, spec := range list {
			if spec.Kind == kind {
				maps.Copy(tags, tagMap(spec.Tags))
			}
		}
	}
	return tags
}

func (d *templateData) enclaves() bool {
	return d.Enclave != nil && d.Enclave.Enabled != nil && *d.Enclave.Enabled
}

func (d *templateData) groups() []string {
	ids := slices.Clone(d.GroupIDs)
	for _, n := range d.Interfaces {
		ids = append(ids, n.GroupIDs...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// fits returns an error if something does not exist or is contradictory.
func (l *launch) fits(p pool) error {
	info, known := l.types[p.kind]
	image, exists := l.images[p.image]
	switch {
	case !known:
		return refuse(400, codeBadValue, "Invalid value '%s' for InstanceType.", p.kind)
	case !exists:
		return refuse(400, "InvalidAMIID.NotFound", "The image id '[%s]' does not exist", p.image)
	case image.State != "available":
		return refuse(400, "InvalidAMIID.Unavailable", "The image ID '%s' is not available", p.image)
	case p.subnet == "":
		return refuse(400, "MissingInput", "No subnets found for the default VPC. Please specify a subnet.")
	case l.subnets[p.subnet] == nil:
		return refuse(400, "InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", p.subnet)
	case p.override.Zone != "" && p.override.Zone != p.zone:
		return refuse(400, "InvalidFleetConfig", "Subnet %s is in %s, not in %s", p.subnet, p.zone, p.override.Zone)
	case !slices.Contains(l.zonesOf[p.kind], p.zone):
		return refuse(400, "Unsupported",
			"Your requested instance type (%s) is not supported in your requested Availability Zone (%s).",
			p.kind, p.zone)
	case !slices.Contains(texts(info.SupportedUsageClasses), l.capacityType):
		return refuse(400, "Unsupported", "The requested configuration is currently not supported: %s as %s.", p.kind,
			l.capacityType)
	case p.template.data.enclaves() && info.NitroEnclavesSupport != "supported":
		return refuse(400, "Unsupported", "The instance type '%s' does not support enclaves.", p.kind)
	case info.ProcessorInfo != nil && !slices.Contains(texts(info.ProcessorInfo.SupportedArchitectures),
		image.Architecture):
		return refuse(400, codeBadValue,
			"The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI.",
			strings.Join(texts(info.ProcessorInfo.SupportedArchitectures), ","), image.Architecture)
	}
	for _, id := range p.template.data.groups() {
		if g, exists := l.groups[id]; !exists {
			return refuse(400, "InvalidGroup.NotFound", "The security group '%s' does not exist", id)
		} else if g.VPC != l.subnets[p.subnet].VPC {
			return refuse(400, "InvalidParameter", "Security group %s and subnet %s belong to different networks.", id,
				p.subnet)
		}
	}
	if max, err := strconv.ParseFloat(p.override.MaxPrice, 64); err == nil && l.capacityType == spot && p.price > max {
		return refuse(400, "SpotMaxPriceTooLow",
			"Your Spot request price of %s is lower than the minimum required price of %.6f.",
			p.override.MaxPrice, p.price)
	}
	return l.hasProfile(p.template.data.Profile)
}

// hasVolumes refuses a root volume that is smaller than what it is made from.
func (l *launch) hasVolumes(p pool) error {
	image := l.images[p.image]
	for _, d := range p.template.data.Devices {
		if d.Name == image.RootDevice && d.EBS != nil && d.EBS.Size != nil && *d.EBS.Size < int64(image.SnapshotGiB) {
			return refuse(400, "InvalidBlockDeviceMapping",
				"Volume of size %dGB is smaller than snapshot '%s', expect size>= %dGB",
				*d.EBS.Size, strings.Replace(image.ID, "ami-", "snap-", 1), image.SnapshotGiB)
		}
	}
	return nil
}

// hasCapacity takes a machine from the pool's line.
func (l *launch) hasCapacity(p pool) error {
	line := l.faults.pool(p.kind, p.zone, l.capacityType)
	if line == nil || line.Free > 0 {
		return nil
	}
	if r, _ := l.reservation(p); r != nil {
		return nil // it has been kept
	}
	code := cmp.Or(line.Code, "InsufficientInstanceCapacity")
	if code == "UnfulfillableCapacity" {
		return refuse(500, code,
			"Unable to fulfill capacity due to your request configuration. Please adjust your request and try again.")
	}
	return refuse(500, code,
		"We currently do not have sufficient %s capacity in the Availability Zone you requested (%s).", p.kind, p.zone)
}

// hasAddresses refuses when the subnet has too few addresses left.
func (l *launch) hasAddresses(p pool) error {
	n := l.subnets[p.subnet]
	if n.free >= p.template.data.addresses() {
		return nil
	}
	return refuse(400, "InsufficientFreeAddressesInSubnet",
		"There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.",
		p.subnet)
}

// addresses returns how many addresses an instance takes at its start.
func (d *templateData) addresses() int {
	const prefix = 16
	count := 0
	for _, n := range d.Interfaces {
		if n.Kind != "efa-only" {
			count += 1 + number(n.Secondary) + prefix*number(n.Prefixes)
		}
	}
	return max(1, count)
}

func number(n *int64) int {
	if n == nil {
		return 0
	}
	return int(*n)
}

// quotaGroups are the groups of types that share a quota of vCPUs.
var quotaGroups = []string{"standard", "g", "p", "f", "x", "inf", "trn", "dl", "hpc", "high-memory"}

// quotaGroup returns the group by the leading letters of a type's name.
func quotaGroup(kind string) string {
	letters := strings.ToLower(kind[:strings.IndexFunc(kind+"0", func(r rune) bool {
		return r >= '0' && r <= '9' ||
			r == '-' || r == '.'
	})])
	switch {
	case letters == "vt" || strings.HasPrefix(letters, "g"):
		return "g"
	case letters == "u":
		return "high-memory"
	case slices.Contains([]string{"inf", "trn", "dl", "hpc", "p", "f", "x"}, letters):
		return letters
	}
	return "standard"
}

func (s *Server) vcpus(kind string) int {
	if info := s.types[kind]; info.VCpuInfo != nil && info.VCpuInfo.DefaultVCpus != nil {
		return int(*info.VCpuInfo.DefaultVCpus)
	}
	return 0
}

// hasQuota refuses what would exceed the account's vCPUs of the type's group.
func (l *launch) hasQuota(p pool) error {
	for _, q := range l.faults.Quotas {
		if q.Group != quotaGroup(p.kind) || q.CapacityType != l.capacityType {
			continue
		}
		used := l.vcpus(p.kind)
		for _, i := range l.machines {
			if i.runs() && i.CapacityType == l.capacityType && quotaGroup(i.Type) == q.Group {
				used += l.vcpus(i.Type)
			}
		}
		if used <= q.VCPUs {
			continue
		}
		if l.capacityType == spot {
			return refuse(400, "MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
		}
		return refuse(400, "VcpuLimitExceeded",
			"You have requested more vCPU capacity than your current vCPU limit of %d allows for the instance "+
				"bucket that the specified instance type belongs to.", q.VCPUs)
	}
	return nil
}

// start creates the machine. Its later fate is decided now, by seed.
func (l *launch) start(p pool) *Instance {
	r, _ := l.reservation(p)
	if line := l.faults.pool(p.kind, p.zone, l.capacityType); line != nil && r == nil {
		line.Free--
	}
	n := l.subnets[p.subnet]
	l.launched++
	i := &Instance{
		ID: l.newID("i"), Type: p.kind, Zone: p.zone, ZoneID: n.ZoneID, Subnet: p.subnet, Image: p.image,
		CapacityType: l.capacityType, Fleet: l.fleet,
		Template: p.template.name, Token: l.token, Tags: l.tagsFor(p, "instance"), VolumeTags: l.tagsFor(p, "volume"),
		State:    Pending,
		Launched: l.now(), Groups: p.template.data.groups(), data: p.template.data,
		addresses: p.template.data.addresses(), number: l.launched,
	}
	if l.capacityType == spot {
		i.SpotRequest = "sir-" + l.newID("")[1:9]
	}
	i.IP = n.take(i.addresses)
	f := &l.faults
	i.visible = i.Launched
	if v := f.Visibility; f.chance("visible", l.launched) < v.Share {
		span := float64(v.Most.Duration - v.Least.Duration)
		i.visible = i.Launched.Add(v.Least.Duration + time.Duration(span*f.chance("late", l.launched)))
	}
	if end := f.pick("ends", f.Ends, i); end != nil {
		i.ends = i.Launched.Add(end.After.Duration)
		i.endCode, i.endMessage = cmp.Or(end.Code, "Server.InternalError"), cmp.Or(end.Message,
			"Server.InternalError: Internal error on launch")
	}
	if end := f.pick("interruptions", f.Interruptions, i); end != nil && i.CapacityType == spot {
		i.warned = i.Launched.Add(end.After.Duration)
	}
	if r != nil {
		r.free--
		i.Reservation = r.ID
	}
	l.machines[i.ID] = i
	return i
}

// pick returns the first rule that hits the instance, at random.
func (f *faults) pick(kind string, rules []End, i *Instance) *End {
	for at := range rules {
		if r := &rules[at]; like(r.Type, i.Type) && like(r.Zone, i.Zone) && f.chance(kind, at, i.number) < r.Share {
			return r
		}
	}
	return nil
}

// take takes addresses from the subnet and returns the first.
func (n *subnet) take(count int) netip.Addr {
	at := n.next
	for range count {
		n.next = n.next.Next()
	}
	n.free -= count
	if !n.prefix.Contains(n.next) {
		n.next = n.prefix.Addr().Next() // addresses that were given back are used again
	}
	return at
}

func (i *Instance) String() string {
	return fmt.Sprintf("%s (%s in %s, %s)", i.ID, i.Type, i.Zone, i.State)
}
