package template

import (
	"fmt"
	"math"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// Default disks of the families, in GiB.
const (
	diskGiB        = 20 // with the pods' data
	bottlerocketOS = 4
)

// devices returns the disks of a class, or otherwise those of its family. Other families have none; then the instance
// gets the disks of its image.
func devices(own []awsv1.BlockDeviceMapping,
	family string) ([]ec2types.LaunchTemplateBlockDeviceMappingRequest, error) {
	if len(own) == 0 {
		switch family {
		case "AL2023", "AL2":
			return []ec2types.LaunchTemplateBlockDeviceMappingRequest{disk("/dev/xvda", diskGiB)}, nil
		case "Bottlerocket":
			return []ec2types.LaunchTemplateBlockDeviceMappingRequest{
				disk("/dev/xvda", bottlerocketOS), disk("/dev/xvdb", diskGiB)}, nil
		}
		return nil, nil
	}
	var list []ec2types.LaunchTemplateBlockDeviceMappingRequest
	first := map[string]int{} // by device: the mapping that has it
	for i, mapping := range own {
		field := fmt.Sprintf("spec.blockDeviceMappings[%d]", i)
		name := aws.ToString(mapping.DeviceName)
		other, double := first[name]
		switch {
		case name == "":
			return nil, fmt.Errorf("%s.deviceName is empty: EC2 needs one, for example /dev/xvda", field)
		case double:
			return nil,
				fmt.Errorf("%s.deviceName is %s, as is that of spec.blockDeviceMappings[%d]: a device has one volume",
					field, name, other)
		case mapping.EBS == nil:
			return nil, fmt.Errorf("%s.ebs is missing: it says which volume %s is", field, name)
		}
		first[name] = i
		volume, err := volume(field+".ebs", *mapping.EBS)
		if err != nil {
			return nil, err
		}
		list = append(list, ec2types.LaunchTemplateBlockDeviceMappingRequest{DeviceName: aws.String(name),
			Ebs: volume})
	}
	return list, nil
}

// disk returns a default volume of a family.
func disk(name string, sizeGiB int32) ec2types.LaunchTemplateBlockDeviceMappingRequest {
	return ec2types.LaunchTemplateBlockDeviceMappingRequest{DeviceName: aws.String(name),
		Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(sizeGiB),
			VolumeType: ec2types.VolumeTypeGp3, Encrypted: aws.Bool(true), DeleteOnTermination: aws.Bool(true)}}
}

// volume converts a volume of the class, without defaults.
func volume(field string, own awsv1.BlockDevice) (*ec2types.LaunchTemplateEbsBlockDeviceRequest, error) {
	v := &ec2types.LaunchTemplateEbsBlockDeviceRequest{
		DeleteOnTermination: own.DeleteOnTermination, Encrypted: own.Encrypted, KmsKeyId: own.KMSKeyID,
		SnapshotId: own.SnapshotID, VolumeInitializationRate: own.VolumeInitializationRate,
		VolumeType: ec2types.VolumeType(aws.ToString(own.VolumeType)),
	}
	for _, number := range []struct {
		name string
		from *int64
		to   **int32
	}{{"iops", own.IOPS, &v.Iops}, {"throughput", own.Throughput, &v.Throughput}} {
		if number.from == nil {
			continue
		}
		if *number.from < 0 || *number.from > math.MaxInt32 {
			return nil, fmt.Errorf("%s.%s is %d: EC2 takes 0 to %d", field, number.name, *number.from, math.MaxInt32)
		}
		*number.to = aws.Int32(int32(*number.from))
	}
	if own.VolumeSize == nil {
		return v, nil
	}
	const gibibyte = 1 << 30
	bytes := own.VolumeSize.Value()
	gib := bytes / gibibyte
	if bytes%gibibyte > 0 {
		gib++
	}
	if gib < 1 || gib > math.MaxInt32 {
		return nil, fmt.Errorf("%s.volumeSize is %s: EC2 takes whole GiB from 1Gi", field, own.VolumeSize.String())
	}
	v.VolumeSize = aws.Int32(int32(gib))
	return v, nil
}
