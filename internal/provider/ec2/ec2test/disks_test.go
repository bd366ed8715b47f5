package ec2test_test

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
)

// E-63: a machine's user data and volumes can be read as in EC2, and disappear with it.
func TestUserDataAndVolumes(t *testing.T) {
	t.Parallel()
	const boot, shut = 2 * time.Second, 3 * time.Second
	a := accountOf(t, ec2test.Options{Boot: boot, Shut: shut})
	out, err := a.client.CreateFleet(t.Context(), a.fleet(1, ec2types.DefaultTargetCapacityTypeOnDemand, "m5.large"))
	wantCode(t, err, "")
	id := out.Instances[0].InstanceIds[0]
	attribute := &ec2.DescribeInstanceAttributeInput{
		InstanceId: &id, Attribute: ec2types.InstanceAttributeNameUserData,
	}
	data, err := a.client.DescribeInstanceAttribute(t.Context(), attribute)
	wantCode(t, err, "")
	if text, err := base64.StdEncoding.DecodeString(aws.ToString(data.UserData.Value)); err != nil ||
		string(text) != "#!/bin/sh" {
		t.Errorf("the user data is %q (%v), want the template's", text, err)
	}
	volumes := func() []ec2types.Volume {
		t.Helper()
		list, err := a.client.DescribeVolumes(t.Context(), &ec2.DescribeVolumesInput{Filters: []ec2types.Filter{
			{Name: aws.String("attachment.instance-id"), Values: []string{id}},
		}})
		wantCode(t, err, "")
		return list.Volumes
	}
	list := volumes()
	if len(list) != 1 || aws.ToInt32(list[0].Size) != 30 ||
		aws.ToString(list[0].Attachments[0].Device) != "/dev/xvda" ||
		len(list[0].Tags) != 1 || aws.ToString(list[0].Tags[0].Value) != "volume" {
		t.Errorf("the volumes are %+v, want one of 30 GiB with its tag", list)
	}
	attribute.Attribute = ec2types.InstanceAttributeNameEbsOptimized
	_, err = a.client.DescribeInstanceAttribute(t.Context(), attribute)
	wantCode(t, err, "InvalidParameterValue")
	attribute.InstanceId = aws.String("i-0123456789abcdef0")
	attribute.Attribute = ec2types.InstanceAttributeNameUserData
	_, err = a.client.DescribeInstanceAttribute(t.Context(), attribute)
	wantCode(t, err, "InvalidInstanceID.NotFound")

	state := func() string { return a.Instances()[0].State }
	a.Advance(boot)
	if state() != ec2test.Running {
		t.Errorf("after %s the instance is %s", boot, state())
	}
	a.End(id, "Client.UserInitiatedShutdown", "")
	a.Advance(shut)
	if left := volumes(); state() != ec2test.Terminated || len(left) != 0 {
		t.Errorf("%s after its end the instance is %s and has %d volumes", shut, state(), len(left))
	}
}
