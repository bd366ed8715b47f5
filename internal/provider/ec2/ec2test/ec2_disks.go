package ec2test

import (
	"maps"
	"slices"
	"strings"
)

type attributeIn struct {
	checked
	Attribute string `query:"Attribute"`
	ID        string `query:"InstanceId"`
}

type attributeOut struct {
	ID       string   `xml:"instanceId"`
	UserData valueXML `xml:"userData"`
}

type valueXML struct {
	Value *string `xml:"value"`
}

// describeInstanceAttribute returns an instance's user data, in base64 as it was sent. It knows no other attribute.
func describeInstanceAttribute(c *call, in *attributeIn) (any, error) {
	ask := Ask{Action: c.name(), Resource: c.arn("instance", in.ID)}
	if i := c.machines[in.ID]; i != nil {
		ask.ResourceTags = maps.Clone(i.Tags)
	}
	if err := c.authorize(ask); err != nil {
		return nil, err
	}
	if in.Attribute != "userData" {
		return nil, refuse(400, codeBadValue,
			"Value (%s) for parameter attribute is invalid. The endpoint knows userData only.", in.Attribute)
	}
	list, err := c.seen([]string{in.ID})
	if err != nil {
		return nil, err
	}
	if err := c.dry(in.DryRun); err != nil {
		return nil, err
	}
	out := attributeOut{ID: in.ID}
	if data := list[0].data.UserData; data != "" {
		out.UserData.Value = &data
	}
	return out, nil
}

type describeVolumesIn struct {
	checked
	paging
	Filters []filter `query:"Filter"`
	IDs     []string `query:"VolumeId"`
}

type describeVolumesOut struct {
	Volumes []diskXML `xml:"volumeSet>item"`
	Next    *string   `xml:"nextToken"`
}

type diskXML struct {
	ID          string       `xml:"volumeId"`
	Size        int64        `xml:"size"` // GiB
	Type        string       `xml:"volumeType"`
	Zone        string       `xml:"availabilityZone"`
	Status      string       `xml:"status"`
	Encrypted   bool         `xml:"encrypted"`
	Key         string       `xml:"kmsKeyId,omitempty"`
	IOPS        *int64       `xml:"iops"`
	Throughput  *int64       `xml:"throughput"`
	Created     string       `xml:"createTime"`
	Attachments []attachment `xml:"attachmentSet>item"`
	Tags        []tag        `xml:"tagSet>item"`
}

type attachment struct {
	Volume   string `xml:"volumeId"`
	Instance string `xml:"instanceId"`
	Device   string `xml:"device"`
	Status   string `xml:"status"`
	Delete   bool   `xml:"deleteOnTermination"`
}

var volumeFilters = fields[diskXML]{
	"volume-id":              one(func(d diskXML) string { return d.ID }),
	"attachment.instance-id": one(func(d diskXML) string { return d.Attachments[0].Instance }),
	"attachment.device":      one(func(d diskXML) string { return d.Attachments[0].Device }),
}

// describeVolumes lists the volumes of instances: there are no others. They go with their instance, whatever its
// template says.
func describeVolumes(c *call, in *describeVolumesIn) (any, error) {
	if err := c.listing(in.DryRun); err != nil {
		return nil, err
	}
	if err := wholeOrPaged(in.paging, in.IDs, "volumesSet"); err != nil {
		return nil, err
	}
	seen, err := c.seen(nil)
	if err != nil {
		return nil, err
	}
	var disks []diskXML
	for _, i := range seen {
		if i.State != Terminated {
			disks = append(disks, c.disks(i)...)
		}
	}
	for _, id := range in.IDs {
		if !slices.ContainsFunc(disks, func(d diskXML) bool { return d.ID == id }) {
			return nil, refuse(400, "InvalidVolume.NotFound", "The volume '%s' does not exist.", id)
		}
	}
	if len(in.IDs) > 0 {
		disks = slices.DeleteFunc(disks, func(d diskXML) bool { return !slices.Contains(in.IDs, d.ID) })
	}
	disks, err = filtered(disks, in.Filters, volumeFilters, func(d diskXML) map[string]string {
		return tagMap(d.Tags)
	})
	if err != nil {
		return nil, err
	}
	disks, next, err := page(c, disks, func(d diskXML) string { return d.ID }, in.paging, bounds{5, 1000})
	return describeVolumesOut{Volumes: disks, Next: next}, err
}

// disks returns the volumes of an instance. What the template leaves out of the root volume comes from the image.
func (s *Server) disks(i *Instance) []diskXML {
	image := s.images[i.Image]
	var disks []diskXML
	for at, name := range i.data.deviceNames(image.RootDevice) {
		d := diskXML{
			ID: volumeID(i, at), Zone: i.Zone, Status: "in-use", Created: stamp(i.Launched),
			Tags: tagList(i.VolumeTags), Type: "gp3",
		}
		if name == image.RootDevice {
			d.Size = int64(image.SnapshotGiB)
		}
		for _, dev := range i.data.Devices {
			if dev.Name == name && dev.EBS != nil {
				d.fill(dev.EBS)
			}
		}
		d.Attachments = []attachment{{d.ID, i.ID, name, "attached", true}}
		disks = append(disks, d)
	}
	return disks
}

func (d *diskXML) fill(from *ebs) {
	if from.Size != nil {
		d.Size = *from.Size
	}
	if from.Type != "" {
		d.Type = from.Type
	}
	d.Encrypted = from.Encrypted != nil && *from.Encrypted
	d.Key, d.IOPS, d.Throughput = from.Key, from.IOPS, from.Throughput
}

// volumeID returns the id of the volume at a position in its instance's list.
func volumeID(i *Instance, at int) string {
	const length = len("vol-") + 17
	return strings.Replace(i.ID, "i-", "vol-"+string("0123456789abcdef"[at%16]), 1)[:length]
}
