package template_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launch"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/template"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
)

// ask returns the requests of a plain launch, with a change.
func ask(changes ...func(*template.Ask)) template.Ask {
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}
	class.Spec.Tags = map[string]string{"team": "a", "cost": "1", "of": "b"}
	class.Status.InstanceProfile = "profile-1"
	class.Status.SecurityGroups = []awsv1.SecurityGroup{{ID: "sg-1"}, {ID: "sg-2"}}
	a := template.Ask{Class: class, Cluster: "c1", Pool: "general", Family: "AL2023", Image: "ami-1",
		UserData: "#!/bin/sh", CapacityType: catalog.OnDemand}
	for _, change := range changes {
		change(&a)
	}
	return a
}

func content(t *testing.T, a template.Ask) *ec2.CreateLaunchTemplateInput {
	t.Helper()
	in, err := template.Content(a)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// shapes are asks with different templates, by their difference.
func shapes() map[string]func(*template.Ask) {
	size := func(text string) *resource.Quantity { q := resource.MustParse(text); return &q }
	return map[string]func(*template.Ask){
		"nothing":    func(*template.Ask) {},
		"image":      func(a *template.Ask) { a.Image = "ami-2" },
		"user data":  func(a *template.Ask) { a.UserData = "#!/bin/bash" },
		"pool":       func(a *template.Ask) { a.Pool = "other" },
		"class":      func(a *template.Ask) { a.Class.Name = "other" },
		"cluster":    func(a *template.Ask) { a.Cluster = "c2" },
		"tags":       func(a *template.Ask) { a.Class.Spec.Tags["team"] = "b" },
		"profile":    func(a *template.Ask) { a.Class.Status.InstanceProfile = "profile-2" },
		"groups":     func(a *template.Ask) { a.Class.Status.SecurityGroups = a.Class.Status.SecurityGroups[:1] },
		"spot":       func(a *template.Ask) { a.CapacityType = catalog.Spot },
		"family":     func(a *template.Ask) { a.Family = "Bottlerocket" },
		"custom":     func(a *template.Ask) { a.Family = "Custom" },
		"monitoring": func(a *template.Ask) { a.Class.Spec.DetailedMonitoring = aws.Bool(true) },
		"enclaves": func(a *template.Ask) {
			a.Class.Spec.EnclaveOptions = &awsv1.EnclaveOptions{Enabled: true}
		},
		"fabric":   func(a *template.Ask) { a.FabricCards = 4 },
		"ipv6":     func(a *template.Ask) { a.IPv6 = true },
		"public":   func(a *template.Ask) { a.Class.Spec.AssociatePublicIPAddress = aws.Bool(true) },
		"private":  func(a *template.Ask) { a.Class.Spec.AssociatePublicIPAddress = aws.Bool(false) },
		"prefixes": func(a *template.Ask) { a.Class.Spec.IPPrefixCount = aws.Int32(2) },
		"tracking": func(a *template.Ask) {
			a.Class.Spec.ConnectionTracking = &awsv1.ConnectionTracking{TCPEstablishedTimeout: aws.Int32(600)}
		},
		"interfaces": func(a *template.Ask) {
			a.Class.Spec.NetworkInterfaces = []awsv1.NetworkInterface{{InterfaceType: "interface"},
				{NetworkCardIndex: 1, DeviceIndex: 1, InterfaceType: "efa-only"}}
		},
		"metadata": func(a *template.Ask) {
			a.Class.Spec.MetadataOptions = &awsv1.MetadataOptions{HTTPPutResponseHopLimit: aws.Int64(2)}
		},
		"processors": func(a *template.Ask) {
			a.Class.Spec.CPUOptions = &awsv1.CPUOptions{NestedVirtualization: aws.String("enabled")}
		},
		"disk": func(a *template.Ask) {
			a.Class.Spec.BlockDeviceMappings = []awsv1.BlockDeviceMapping{{DeviceName: aws.String("/dev/xvda"),
				EBS: &awsv1.BlockDevice{VolumeSize: size("75Gi"), VolumeType: aws.String("io2"), IOPS: aws.Int64(1000),
					KMSKeyID: aws.String("alias/k"), Encrypted: aws.Bool(true), DeleteOnTermination: aws.Bool(true)}}}
		},
		"tenancy":   func(a *template.Ask) { a.Placement.Tenancy = "dedicated" },
		"group":     func(a *template.Ask) { a.Placement.GroupID = "pg-1" },
		"partition": func(a *template.Ask) { a.Placement = template.Placement{GroupID: "pg-1", Partition: 2} },
		"choosy": func(a *template.Ask) {
			a.Class.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: "cr-9"}}
		},
		"reserved": func(a *template.Ask) {
			a.CapacityType, a.Reservation = catalog.Reserved, launch.Reservation{ID: "cr-1", Kind: launch.Plain}
		},
		"another reserved": func(a *template.Ask) {
			a.CapacityType, a.Reservation = catalog.Reserved, launch.Reservation{ID: "cr-2", Kind: launch.Plain}
		},
		"block": func(a *template.Ask) {
			a.CapacityType, a.Reservation = catalog.Reserved, launch.Reservation{ID: "cr-1", Kind: launch.Block}
		},
		"interruptible": func(a *template.Ask) {
			a.CapacityType, a.Reservation = catalog.Reserved,
				launch.Reservation{ID: "cr-1", Kind: launch.Interruptible}
		},
	}
}

// E-30: different asks have different templates, and equivalent ones the same, in any order.
func TestANameIsItsContent(t *testing.T) {
	t.Parallel()
	names := map[string]string{}
	for what, change := range shapes() {
		name := *content(t, ask(change)).LaunchTemplateName
		if !strings.HasPrefix(name, "karpenter.k8s.aws/") || len(name) > 128 {
			t.Errorf("%s: the name is %s", what, name)
		}
		if other, known := names[name]; known {
			t.Errorf("%s and %s have the same template", what, other)
		}
		names[name] = what
	}
	want := *content(t, ask()).LaunchTemplateName
	for what, change := range map[string]func(*template.Ask){
		"groups in another order": func(a *template.Ask) { slices.Reverse(a.Class.Status.SecurityGroups) },
		"a group twice": func(a *template.Ask) {
			a.Class.Status.SecurityGroups = append(a.Class.Status.SecurityGroups,
				awsv1.SecurityGroup{ID: "sg-1", Name: "x"})
		},
		"tags made in another order": func(a *template.Ask) {
			a.Class.Spec.Tags = map[string]string{"of": "b", "cost": "1", "team": "a"}
		},
		"the default tenancy": func(a *template.Ask) { a.Placement.Tenancy = "default" },
		"defaults in words": func(a *template.Ask) {
			a.Class.Spec.MetadataOptions = &awsv1.MetadataOptions{HTTPEndpoint: aws.String("enabled"),
				HTTPProtocolIPv6: aws.String("disabled"), HTTPPutResponseHopLimit: aws.Int64(1),
				HTTPTokens: aws.String("required")}
		},
		"a pod limit, which is in user data": func(a *template.Ask) {
			a.Class.Spec.Kubelet = &awsv1.KubeletConfiguration{MaxPods: aws.Int32(5)}
		},
	} {
		for range 20 {
			if got := *content(t, ask(change)).LaunchTemplateName; got != want {
				t.Errorf("%s: %s, want %s", what, got, want)
			}
		}
	}
}

// text returns content as JSON, without unset fields.
func text(t *testing.T, of any) string {
	t.Helper()
	raw, err := json.Marshal(of)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		t.Fatal(err)
	}
	raw, err = json.Marshal(pruned(value))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func pruned(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, each := range v {
			if each = pruned(each); each == nil || each == "" {
				delete(v, key)
			} else {
				v[key] = each
			}
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
		for i := range v {
			v[i] = pruned(v[i])
		}
	}
	return value
}

// E-31: disks, by family and by class.
func TestDisks(t *testing.T) {
	t.Parallel()
	mapping := func(name, size string, change func(*awsv1.BlockDevice)) awsv1.BlockDeviceMapping {
		q := resource.MustParse(size)
		b := &awsv1.BlockDevice{VolumeSize: &q}
		change(b)
		return awsv1.BlockDeviceMapping{DeviceName: aws.String(name), EBS: b}
	}
	none := func(*awsv1.BlockDevice) {}
	for name, c := range map[string]struct {
		family string
		own    []awsv1.BlockDeviceMapping
		want   string
	}{
		"AL2023":       {"AL2023", nil, "/dev/xvda 20 gp3 encrypted goes"},
		"Bottlerocket": {"Bottlerocket", nil, "/dev/xvda 4 gp3 encrypted goes, /dev/xvdb 20 gp3 encrypted goes"},
		"Custom":       {"Custom", nil, ""},
		"a class's own are all": {"Bottlerocket", []awsv1.BlockDeviceMapping{mapping("/dev/xvda", "75Gi", none)},
			"/dev/xvda 75"},
		"G is rounded up": {"AL2023", []awsv1.BlockDeviceMapping{mapping("/dev/xvda", "100G", none)}, "/dev/xvda 94"},
		"Ti":              {"AL2023", []awsv1.BlockDeviceMapping{mapping("/dev/xvda", "2Ti", none)}, "/dev/xvda 2048"},
		"less than a GiB": {"AL2023", []awsv1.BlockDeviceMapping{mapping("/dev/xvda", "1", none)}, "/dev/xvda 1"},
		"from a snapshot": {"AL2023",
			[]awsv1.BlockDeviceMapping{mapping("/dev/sdb", "1Gi", func(b *awsv1.BlockDevice) {
				b.SnapshotID, b.VolumeSize = aws.String("snap-1"), nil
			})}, "/dev/sdb snap-1"},
		"all that is said": {"AL2023",
			[]awsv1.BlockDeviceMapping{mapping("/dev/sdb", "1Gi", func(b *awsv1.BlockDevice) {
				b.IOPS, b.Throughput, b.VolumeType = aws.Int64(3000), aws.Int64(125), aws.String("gp3")
			})}, "/dev/sdb 1 gp3 3000 iops 125 MiB/s"},
	} {
		in := content(t, ask(func(a *template.Ask) { a.Family, a.Class.Spec.BlockDeviceMappings = c.family, c.own }))
		var got []string
		for _, m := range in.LaunchTemplateData.BlockDeviceMappings {
			got = append(got, disk(m))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %s, want %s", name, strings.Join(got, ", "), c.want)
		}
	}
}

// disk prints a template's settings of a disk.
func disk(m ec2types.LaunchTemplateBlockDeviceMappingRequest) string {
	words := []string{*m.DeviceName}
	add := func(is bool, word func() string) {
		if is {
			words = append(words, word())
		}
	}
	v := m.Ebs
	add(v.SnapshotId != nil, func() string { return *v.SnapshotId })
	add(v.VolumeSize != nil, func() string { return fmt.Sprint(*v.VolumeSize) })
	add(v.VolumeType != "", func() string { return string(v.VolumeType) })
	add(v.Iops != nil, func() string { return fmt.Sprint(*v.Iops, " iops") })
	add(v.Throughput != nil, func() string { return fmt.Sprint(*v.Throughput, " MiB/s") })
	add(aws.ToBool(v.Encrypted), func() string { return "encrypted" })
	add(aws.ToBool(v.DeleteOnTermination), func() string { return "goes" })
	return strings.Join(words, " ")
}

// E-31, E-14: interfaces, reservations and tags in the request to EC2.
func TestWhatATemplateSays(t *testing.T) {
	t.Parallel()
	both := func(changes ...string) func(*template.Ask) {
		return func(a *template.Ask) {
			for _, change := range changes {
				shapes()[change](a)
			}
		}
	}
	const groups = `"Groups":["sg-1","sg-2"]`
	first := `{"DeleteOnTermination":true,"DeviceIndex":0,` + groups
	for name, c := range map[string]struct {
		change    func(*template.Ask)
		has, lack []string
	}{
		"plain": {both("nothing"), []string{`"SecurityGroupIds":["sg-1","sg-2"]`, `"Name":"profile-1"`,
			`"HttpTokens":"required"`, `"InstanceMetadataTags":"disabled"`, `"UserData":"IyEvYmluL3No"`,
			`"ResourceType":"network-interface"`}, []string{"NetworkInterfaces", "spot-instances-request", "Placement",
			"CapacityReservation", "Market", "Enclave", "Monitoring", "CpuOptions"}},
		"spot": {both("spot", "choosy"), []string{`"ResourceType":"spot-instances-request"`},
			[]string{"Market", "CapacityReservation"}},
		"choosy": {both("choosy"), []string{`"CapacityReservationPreference":"none"`}, []string{"Target"}},
		"reserved": {both("choosy", "reserved"),
			[]string{`"CapacityReservationTarget":{"CapacityReservationId":"cr-1"}`},
			[]string{"Preference", "Market"}},
		"block": {both("block"), []string{`"MarketType":"capacity-block"`, `"CapacityReservationId":"cr-1"`},
			nil},
		"interruptible": {both("interruptible"), []string{`"MarketType":"interruptible-capacity-reservation"`}, nil},
		"public": {both("public"), []string{`"NetworkInterfaces":[{"AssociatePublicIpAddress":true,`, groups},
			[]string{"SecurityGroupIds"}},
		"ipv6 with prefixes": {both("ipv6", "prefixes"),
			[]string{first + `,"Ipv6AddressCount":1,"Ipv6PrefixCount":2,` +
				`"NetworkCardIndex":0,"PrimaryIpv6":true}`}, []string{"Ipv4"}},
		"prefixes": {both("prefixes"), []string{first + `,"Ipv4PrefixCount":2,"NetworkCardIndex":0}`},
			[]string{"Ipv6P"}},
		"fabric": {both("fabric", "prefixes"), []string{first + `,"InterfaceType":"efa","Ipv4PrefixCount":2,` +
			`"NetworkCardIndex":0}`, `"DeviceIndex":1,` + groups + `,"InterfaceType":"efa","NetworkCardIndex":3}`},
			nil},
		"the class's interfaces": {both("interfaces", "fabric", "tracking", "private"), []string{
			`"NetworkInterfaces":[{"ConnectionTrackingSpecification":{"TcpEstablishedTimeout":600},"DeleteOnTermination":true`,
			`{"DeleteOnTermination":true,"DeviceIndex":1,` + groups +
				`,"InterfaceType":"efa-only","NetworkCardIndex":1}]`},
			[]string{`"efa"`, "AssociatePublic"}},
		"placement": {both("partition", "tenancy"), []string{`"Placement":{"Tenancy":"dedicated"}`}, nil},
		"partition": {both("tenancy", "partition"), []string{`"Placement":{"GroupId":"pg-1","PartitionNumber":2}`},
			nil},
		"the rest": {both("monitoring", "enclaves", "processors"), []string{`"Monitoring":{"Enabled":true}`,
			`"EnclaveOptions":{"Enabled":true}`, `"NestedVirtualization":"enabled"`}, nil},
	} {
		if name == "placement" {
			c.change = func(a *template.Ask) { a.Placement = template.Placement{Tenancy: "dedicated"} }
		}
		in := content(t, ask(c.change))
		got := text(t, in.LaunchTemplateData)
		for _, part := range c.has {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %s is not in %s", name, part, got)
			}
		}
		for _, part := range c.lack {
			if strings.Contains(got, part) {
				t.Errorf("%s: %s is in %s", name, part, got)
			}
		}
		tags := text(t, in.TagSpecifications)
		if !strings.Contains(tags, `"ResourceType":"launch-template"`) ||
			!strings.Contains(tags, `"Value":"general"`) {
			t.Errorf("%s: the template's tags are %s", name, tags)
		}
	}
}

// E-31, E-01: impossible settings are named, and errors never contain user data.
func TestWhatATemplateCannotHave(t *testing.T) {
	t.Parallel()
	disks := func(list ...awsv1.BlockDeviceMapping) func(*template.Ask) {
		return func(a *template.Ask) { a.Class.Spec.BlockDeviceMappings = list }
	}
	sized := func(name, size string) awsv1.BlockDeviceMapping {
		q := resource.MustParse(size)
		return awsv1.BlockDeviceMapping{DeviceName: aws.String(name), EBS: &awsv1.BlockDevice{VolumeSize: &q}}
	}
	root := sized("/dev/xvda", "1Gi")
	fast := sized("/dev/xvda", "1Gi")
	fast.EBS.IOPS = aws.Int64(1 << 40)
	for name, c := range map[string]struct {
		change func(*template.Ask)
		want   []string
	}{
		"no profile": {func(a *template.Ask) { a.Class.Status.InstanceProfile = "" },
			[]string{"status.instanceProfile", "plain"}},
		"no group": {func(a *template.Ask) { a.Class.Status.SecurityGroups = nil },
			[]string{"status.securityGroups", "plain"}},
		"no device": {disks(awsv1.BlockDeviceMapping{EBS: root.EBS}),
			[]string{"spec.blockDeviceMappings[0].deviceName"}},
		"no volume": {disks(root, awsv1.BlockDeviceMapping{DeviceName: aws.String("/dev/sdb")}),
			[]string{"spec.blockDeviceMappings[1].ebs", "/dev/sdb"}},
		"a disk twice": {disks(root, root), []string{"spec.blockDeviceMappings[1].deviceName", "/dev/xvda", "[0]"}},
		"no size":      {disks(sized("x", "0")), []string{"[0].ebs.volumeSize is 0"}},
		"a huge size":  {disks(sized("x", "4Ei")), []string{"[0].ebs.volumeSize is 4Ei"}},
		"huge iops":    {disks(fast), []string{"[0].ebs.iops is 1099511627776"}},
		"public fabric": {func(a *template.Ask) {
			a.Class.Spec.AssociatePublicIPAddress,
				a.FabricCards = aws.Bool(true), 4
		},
			[]string{"spec.associatePublicIPAddress", "4 network interfaces"}},
		"too much": {func(a *template.Ask) { a.UserData = strings.Repeat("s", userdata.Limit+1) }, []string{"16385"}},
	} {
		in, err := template.Content(ask(c.change))
		if err == nil || in != nil {
			t.Errorf("%s: %v, %v, want an error", name, in, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v does not say %s", name, err, part)
			}
		}
		var large *userdata.TooLargeError
		if strings.Contains(err.Error(), "ssss") || errors.As(err, &large) != (name == "too much") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
