package ec2test

import (
	"encoding/base64"

	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/iampolicy"
)

// tagSpecification are the tags that a new resource of a kind gets.
type tagSpecification struct {
	Kind string `query:"ResourceType" xml:"resourceType"`
	Tags []tag  `query:"Tag" xml:"tagSet>item"`
}

// templateData is the content of a launch template, on the wire in both directions.
type templateData struct {
	ImageID          string             `query:"ImageId" xml:"imageId,omitempty"`
	InstanceType     string             `query:"InstanceType" xml:"instanceType,omitempty"`
	KeyName          string             `query:"KeyName" xml:"keyName,omitempty"`
	UserData         string             `query:"UserData" xml:"userData,omitempty"`
	EBSOptimized     *bool              `query:"EbsOptimized" xml:"ebsOptimized"`
	NoTermination    *bool              `query:"DisableApiTermination" xml:"disableApiTermination"`
	Profile          *profileName       `query:"IamInstanceProfile" xml:"iamInstanceProfile"`
	Devices          []device           `query:"BlockDeviceMapping" xml:"blockDeviceMappingSet>item"`
	Interfaces       []interfaceSpec    `query:"NetworkInterface" xml:"networkInterfaceSet>item"`
	GroupIDs         []string           `query:"SecurityGroupId" xml:"securityGroupIdSet>item"`
	Metadata         *metadataOptions   `query:"MetadataOptions" xml:"metadataOptions"`
	Monitoring       *enabled           `query:"Monitoring" xml:"monitoring"`
	Enclave          *enabled           `query:"EnclaveOptions" xml:"enclaveOptions"`
	CPU              *cpuOptions        `query:"CpuOptions" xml:"cpuOptions"`
	Market           *marketOptions     `query:"InstanceMarketOptions" xml:"instanceMarketOptions"`
	Reservation      *reservationSpec   `query:"CapacityReservationSpecification" xml:"capacityReservationSpecification"`
	Placement        *placementSpec     `query:"Placement" xml:"placement"`
	PrivateDNS       *privateDNS        `query:"PrivateDnsNameOptions" xml:"privateDnsNameOptions"`
	TagSpecification []tagSpecification `query:"TagSpecification" xml:"tagSpecificationSet>item"`
}

type profileName struct {
	ARN  string `query:"Arn" xml:"arn,omitempty"`
	Name string `query:"Name" xml:"name,omitempty"`
}

type device struct {
	Name     string `query:"DeviceName" xml:"deviceName,omitempty"`
	Virtual  string `query:"VirtualName" xml:"virtualName,omitempty"`
	NoDevice string `query:"NoDevice" xml:"noDevice,omitempty"`
	EBS      *ebs   `query:"Ebs" xml:"ebs"`
}

type ebs struct {
	Delete     *bool  `query:"DeleteOnTermination" xml:"deleteOnTermination"`
	Encrypted  *bool  `query:"Encrypted" xml:"encrypted"`
	IOPS       *int64 `query:"Iops" xml:"iops"`
	Key        string `query:"KmsKeyId" xml:"kmsKeyId,omitempty"`
	Snapshot   string `query:"SnapshotId" xml:"snapshotId,omitempty"`
	Throughput *int64 `query:"Throughput" xml:"throughput"`
	InitRate   *int64 `query:"VolumeInitializationRate" xml:"volumeInitializationRate"`
	Size       *int64 `query:"VolumeSize" xml:"volumeSize"`
	Type       string `query:"VolumeType" xml:"volumeType,omitempty"`
}

type interfaceSpec struct {
	Public      *bool     `query:"AssociatePublicIpAddress" xml:"associatePublicIpAddress"`
	Tracking    *tracking `query:"ConnectionTrackingSpecification" xml:"connectionTrackingSpecification"`
	Delete      *bool     `query:"DeleteOnTermination" xml:"deleteOnTermination"`
	Description string    `query:"Description" xml:"description,omitempty"`
	Device      *int64    `query:"DeviceIndex" xml:"deviceIndex"`
	GroupIDs    []string  `query:"SecurityGroupId" xml:"groupSet>groupId"`
	Kind        string    `query:"InterfaceType" xml:"interfaceType,omitempty"`
	Prefixes    *int64    `query:"Ipv4PrefixCount" xml:"ipv4PrefixCount"`
	Prefixes6   *int64    `query:"Ipv6PrefixCount" xml:"ipv6PrefixCount"`
	Addresses6  *int64    `query:"Ipv6AddressCount" xml:"ipv6AddressCount"`
	Card        *int64    `query:"NetworkCardIndex" xml:"networkCardIndex"`
	Primary6    *bool     `query:"PrimaryIpv6" xml:"primaryIpv6"`
	Secondary   *int64    `query:"SecondaryPrivateIpAddressCount" xml:"secondaryPrivateIpAddressCount"`
	Subnet      string    `query:"SubnetId" xml:"subnetId,omitempty"`
}

type tracking struct {
	TCP       *int64 `query:"TcpEstablishedTimeout" xml:"tcpEstablishedTimeout"`
	UDPStream *int64 `query:"UdpStreamTimeout" xml:"udpStreamTimeout"`
	UDP       *int64 `query:"UdpTimeout" xml:"udpTimeout"`
}

type metadataOptions struct {
	Endpoint string `query:"HttpEndpoint" xml:"httpEndpoint,omitempty"`
	IPv6     string `query:"HttpProtocolIpv6" xml:"httpProtocolIpv6,omitempty"`
	HopLimit *int64 `query:"HttpPutResponseHopLimit" xml:"httpPutResponseHopLimit"`
	Tokens   string `query:"HttpTokens" xml:"httpTokens,omitempty"`
	Tags     string `query:"InstanceMetadataTags" xml:"instanceMetadataTags,omitempty"`
}

type enabled struct {
	Enabled *bool `query:"Enabled" xml:"enabled"`
}

type cpuOptions struct {
	SNP     string `query:"AmdSevSnp" xml:"amdSevSnp,omitempty"`
	Cores   *int64 `query:"CoreCount" xml:"coreCount"`
	Nested  string `query:"NestedVirtualization" xml:"nestedVirtualization,omitempty"`
	Threads *int64 `query:"ThreadsPerCore" xml:"threadsPerCore"`
}

type marketOptions struct {
	Kind string       `query:"MarketType" xml:"marketType,omitempty"`
	Spot *spotOptions `query:"SpotOptions" xml:"spotOptions"`
}

type spotOptions struct {
	MaxPrice     string `query:"MaxPrice" xml:"maxPrice,omitempty"`
	Kind         string `query:"SpotInstanceType" xml:"spotInstanceType,omitempty"`
	Interruption string `query:"InstanceInterruptionBehavior" xml:"instanceInterruptionBehavior,omitempty"`
}

type reservationSpec struct {
	Preference string             `query:"CapacityReservationPreference" xml:"capacityReservationPreference,omitempty"`
	Target     *reservationTarget `query:"CapacityReservationTarget" xml:"capacityReservationTarget"`
}

type reservationTarget struct {
	ID    string `query:"CapacityReservationId" xml:"capacityReservationId,omitempty"`
	Group string `query:"CapacityReservationResourceGroupArn" xml:"capacityReservationResourceGroupArn,omitempty"`
}

type placementSpec struct {
	GroupID   string `query:"GroupId" xml:"groupId,omitempty"`
	Group     string `query:"GroupName" xml:"groupName,omitempty"`
	Partition *int64 `query:"PartitionNumber" xml:"partitionNumber"`
	Tenancy   string `query:"Tenancy" xml:"tenancy,omitempty"`
	Zone      string `query:"AvailabilityZone" xml:"availabilityZone,omitempty"`
	HostID    string `query:"HostId" xml:"hostId,omitempty"`
	Hosts     string `query:"HostResourceGroupArn" xml:"hostResourceGroupArn,omitempty"`
	Affinity  string `query:"Affinity" xml:"affinity,omitempty"`
}

type privateDNS struct {
	Kind string `query:"HostnameType" xml:"hostnameType,omitempty"`
	A    *bool  `query:"EnableResourceNameDnsARecord" xml:"enableResourceNameDnsARecord"`
	AAAA *bool  `query:"EnableResourceNameDnsAAAARecord" xml:"enableResourceNameDnsAAAARecord"`
}

// template is a launch template. The endpoint knows one version of each, since the provider makes no more.
type template struct {
	id, name, token string
	created         time.Time
	tags            map[string]string
	data            templateData
}

type templateXML struct {
	ID      string `xml:"launchTemplateId"`
	Name    string `xml:"launchTemplateName"`
	Created string `xml:"createTime"`
	By      string `xml:"createdBy"`
	Default int    `xml:"defaultVersionNumber"`
	Latest  int    `xml:"latestVersionNumber"`
	Tags    []tag  `xml:"tagSet>item"`
}

func (t *template) xml() templateXML {
	by := "arn:aws:sts::" + Account + ":assumed-role/joiner/session"
	return templateXML{t.id, t.name, stamp(t.created), by, 1, 1, tagList(t.tags)}
}

type createTemplateIn struct {
	checked
	Token string             `query:"ClientToken"`
	Name  string             `query:"LaunchTemplateName"`
	About string             `query:"VersionDescription"`
	Data  *templateData      `query:"LaunchTemplateData"`
	Tags  []tagSpecification `query:"TagSpecification"`
}

type templateOut struct {
	Template templateXML `xml:"launchTemplate"`
}

// EC2's documented bounds.
const (
	maxTemplates = 5000
	maxUserData  = 16 << 10
	maxTags      = 50
)

func createLaunchTemplate(c *call, in *createTemplateIn) (any, error) {
	tags, err := tagsOf(in.Tags, "launch-template")
	if err != nil {
		return nil, err
	}
	if err := c.authorize(c.creating("launch-template", tags)...); err != nil {
		return nil, err
	}
	if in.Data == nil {
		return nil, refuse(400, codeMissing, "The request must contain the parameter LaunchTemplateData")
	}
	if err := in.Data.check(); err != nil {
		return nil, err
	}
	if len(in.Name) < 3 || len(in.Name) > 128 {
		return nil, refuse(400, "InvalidLaunchTemplateName.MalformedException",
			"A launch template name has 3 to 128 characters: '%s'", in.Name)
	}
	if t := c.templateNamed(in.Name); t != nil {
		return nil, refuse(400, "InvalidLaunchTemplateName.AlreadyExistsException",
			"Launch template name already in use.")
	}
	limit := maxTemplates
	if c.faults.MaxTemplates > 0 {
		limit = c.faults.MaxTemplates
	}
	if len(c.template) >= limit {
		return nil, refuse(400, "MaxTemplateLimitExceeded",
			"You have reached the maximum number of launch templates: %d", limit)
	}
	if err := c.dry(in.DryRun); err != nil {
		return nil, err
	}
	t := &template{id: c.newID("lt"), name: in.Name, token: in.Token, created: c.now(), tags: tags, data: *in.Data}
	c.template[t.id] = t
	return templateOut{t.xml()}, nil
}

// creating asks for the right to create a resource, with its tags.
func (c *call) creating(kind string, tags map[string]string) []Ask {
	asks := []Ask{{Action: c.name(), Resource: c.arn(kind, "*"), RequestTags: tags}}
	if len(tags) > 0 {
		asks = append(asks, Ask{
			Action: "ec2:CreateTags", Resource: c.arn(kind, "*"), RequestTags: tags,
			Context: map[string]string{iampolicy.CreateAction: c.Action},
		})
	}
	return asks
}

// tagsOf returns the tags for a kind of resource.
func tagsOf(list []tagSpecification, kind string) (map[string]string, error) {
	for _, spec := range list {
		if spec.Kind == kind {
			return tagMap(spec.Tags), checkTags(spec.Tags)
		}
	}
	return nil, nil
}

func checkTags(tags []tag) error {
	seen := map[string]bool{}
	for _, t := range tags {
		switch {
		case strings.HasPrefix(strings.ToLower(t.Key), "aws:"):
			return refuse(400, codeBadValue, "Tag keys starting with 'aws:' are reserved for internal use")
		case t.Key == "" || len(t.Key) > 128:
			return refuse(400, codeBadValue, "Tag key has to have 1 to 128 characters: '%s'", t.Key)
		case len(t.Value) > 256:
			return refuse(400, codeBadValue, "Tag value exceeds the maximum length of 256 characters: '%s'", t.Value)
		case seen[t.Key]:
			return refuse(400, codeBadValue, "Duplicate tag key '%s' specified.", t.Key)
		}
		seen[t.Key] = true
	}
	if len(tags) > maxTags {
		return refuse(400, "TagLimitExceeded", "More than %d tags specified", maxTags)
	}
	return nil
}

// check finds what EC2 refuses in any template.
func (d *templateData) check() error {
	decoded, err := base64.StdEncoding.DecodeString(d.UserData)
	if err != nil {
		return refuse(400, "InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.")
	}
	if len(decoded) > maxUserData {
		return refuse(400, codeBadValue, "User data is limited to %d bytes", maxUserData)
	}
	if len(d.Interfaces) > 0 && len(d.GroupIDs) > 0 {
		return refuse(400, codeBadTogether,
			"Network interfaces and an instance-level security groups may not be specified on the same request")
	}
	for _, spec := range d.TagSpecification {
		if err := checkTags(spec.Tags); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) templateNamed(name string) *template {
	for _, t := range s.template {
		if t.name == name {
			return t
		}
	}
	return nil
}

// findTemplate finds a template by id or name; one of them has to be given.
func (s *Server) findTemplate(id, name string) (*template, error) {
	switch {
	case id != "" && name != "":
		return nil, refuse(400, codeBadTogether, "Either a launch template id or name may be given, not both")
	case id != "":
		if t := s.template[id]; t != nil {
			return t, nil
		}
		return nil, refuse(400, "InvalidLaunchTemplateId.NotFound",
			"The specified launch template, with template ID %s, does not exist.", id)
	case name != "":
		if t := s.templateNamed(name); t != nil {
			return t, nil
		}
		return nil, refuse(400, "InvalidLaunchTemplateName.NotFoundException",
			"The specified launch template, with template name %s, does not exist.", name)
	}
	return nil, refuse(400, codeMissing, "A launch template id or name is required")
}

type describeTemplatesIn struct {
	checked
	paging
	Filters []filter `query:"Filter"`
	IDs     []string `query:"LaunchTemplateId"`
	Names   []string `query:"LaunchTemplateName"`
}

type describeTemplatesOut struct {
	Templates []templateXML `xml:"launchTemplates>item"`
	Next      *string       `xml:"nextToken"`
}

var templateFilters = fields[*template]{
	"launch-template-name": one(func(t *template) string { return t.name }),
	"create-time":          one(func(t *template) string { return stamp(t.created) }),
}

func describeLaunchTemplates(c *call, in *describeTemplatesIn) (any, error) {
	if err := c.listing(in.DryRun); err != nil {
		return nil, err
	}
	list := slices.Collect(maps.Values(c.template))
	if len(in.IDs)+len(in.Names) > 0 {
		list = nil
	}
	for _, id := range in.IDs {
		t, err := c.findTemplate(id, "")
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	for _, name := range in.Names {
		t, err := c.findTemplate("", name)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	}
	list, err := filtered(list, in.Filters, templateFilters, func(t *template) map[string]string { return t.tags })
	if err != nil {
		return nil, err
	}
	list, next, err := page(c, list, func(t *template) string { return t.id }, in.paging, bounds{1, 200})
	out := describeTemplatesOut{Next: next}
	for _, t := range list {
		out.Templates = append(out.Templates, t.xml())
	}
	return out, err
}

type describeVersionsIn struct {
	checked
	paging
	Filters  []filter `query:"Filter"`
	ID       string   `query:"LaunchTemplateId"`
	Name     string   `query:"LaunchTemplateName"`
	Versions []string `query:"LaunchTemplateVersion"`
}

type versionXML struct {
	ID      string       `xml:"launchTemplateId"`
	Name    string       `xml:"launchTemplateName"`
	Number  int          `xml:"versionNumber"`
	Created string       `xml:"createTime"`
	Default bool         `xml:"defaultVersion"`
	Data    templateData `xml:"launchTemplateData"`
}

type describeVersionsOut struct {
	Versions []versionXML `xml:"launchTemplateVersionSet>item"`
	Next     *string      `xml:"nextToken"`
}

func describeLaunchTemplateVersions(c *call, in *describeVersionsIn) (any, error) {
	if err := c.listing(in.DryRun); err != nil {
		return nil, err
	}
	var list []*template
	if in.ID != "" || in.Name != "" {
		t, err := c.findTemplate(in.ID, in.Name)
		if err != nil {
			return nil, err
		}
		list = append(list, t)
	} else {
		list = slices.Collect(maps.Values(c.template))
	}
	for _, version := range in.Versions {
		if err := checkVersion(version); err != nil {
			return nil, err
		}
	}
	list, err := filtered(list, in.Filters, fields[*template]{
		"image-id":           one(func(t *template) string { return t.data.ImageID }),
		"instance-type":      one(func(t *template) string { return t.data.InstanceType }),
		"is-default-version": one(func(*template) string { return "true" }),
	}, nil)
	if err != nil {
		return nil, err
	}
	list, next, err := page(c, list, func(t *template) string { return t.id }, in.paging, bounds{1, 200})
	out := describeVersionsOut{Next: next}
	for _, t := range list {
		out.Versions = append(out.Versions, versionXML{t.id, t.name, 1, stamp(t.created), true, t.data})
	}
	return out, err
}

// checkVersion refuses a version that no template of the endpoint has: all have exactly one.
func checkVersion(version string) error {
	if version == "$Latest" || version == "$Default" || version == "1" || version == "" {
		return nil
	}
	if _, err := strconv.Atoi(version); err != nil {
		return refuse(400, codeBadValue,
			"Invalid launch template version: either '$Default', '$Latest', or a numeric version are allowed.")
	}
	return refuse(400, "InvalidLaunchTemplateId.VersionNotFound", "Could not find launch template version %s", version)
}

type deleteTemplateIn struct {
	checked
	ID   string `query:"LaunchTemplateId"`
	Name string `query:"LaunchTemplateName"`
}

func deleteLaunchTemplate(c *call, in *deleteTemplateIn) (any, error) {
	t, missing := c.findTemplate(in.ID, in.Name)
	ask := Ask{Action: c.name(), Resource: c.arn("launch-template", "*"), Missing: t == nil}
	if t != nil {
		ask.Resource, ask.ResourceTags = c.arn("launch-template", t.id), t.tags
	}
	if err := c.authorize(ask); err != nil {
		return nil, err
	}
	if missing != nil {
		return nil, missing
	}
	if err := c.dry(in.DryRun); err != nil {
		return nil, err
	}
	delete(c.template, t.id)
	return templateOut{t.xml()}, nil
}

// LaunchTemplates returns the names of the existing launch templates, sorted.
func (s *Server) LaunchTemplates() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, t := range s.template {
		names = append(names, t.name)
	}
	slices.Sort(names)
	return names
}
