package class_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"k8s.io/apimachinery/pkg/api/resource"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/class"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

// E-74: a volume smaller than its content in every image is an error. As long as it fits one image, or an image's size
// is unknown, the class can be used; and an error stays until it can be checked again (E-03).
func TestVolumesThatAreTooSmall(t *testing.T) {
	t.Parallel()
	small := func(images ...int64) map[string]map[string]int64 {
		sizes := map[string]map[string]int64{}
		for i, gib := range images {
			sizes[[]string{"ami-0", "ami-1"}[i]] = map[string]int64{"/dev/xvda": gib}
		}
		return sizes
	}
	told := []karpenterv1.Condition{{Type: karpenterv1.ConditionTypeValidationSucceeded, Status: metav1.ConditionFalse,
		Reason: class.ReasonVolume, Message: "as before", ObservedGeneration: 1}}
	for name, c := range map[string]struct {
		size       string // of /dev/xvda; the family's 20 GiB when empty
		snapshotID *string
		snapshots  map[string]map[string]int64
		before     []karpenterv1.Condition
		want       string // "" for nothing
	}{
		"both need more":          {size: "10Gi", snapshots: small(20, 30), want: "image ami-1 (b) needs 30 GiB"},
		"one has room":            {size: "25Gi", snapshots: small(20, 30)},
		"both have room":          {size: "30Gi", snapshots: small(20, 30)},
		"one is not known":        {size: "10Gi", snapshots: small(20)},
		"the family's is small":   {snapshots: small(21, 21), want: "/dev/xvda has 20 GiB"},
		"a snapshot of one's own": {size: "10Gi", snapshotID: new("snap-1"), snapshots: small(20, 30)},
		"not known any more":      {size: "10Gi", before: told, want: "as before"},
		"never known":             {size: "10Gi"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			profile := "p"
			nodeClass := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", Generation: 1}}
			nodeClass.Spec.AMIFamily, nodeClass.Spec.InstanceProfile = new("AL2023"), &profile
			if c.size != "" {
				nodeClass.Spec.BlockDeviceMappings = []awsv1.BlockDeviceMapping{{DeviceName: new("/dev/xvda"),
					EBS: &awsv1.BlockDevice{VolumeSize: new(resource.MustParse(c.size)), SnapshotID: c.snapshotID}}}
			}
			nodeClass.Status.Conditions = c.before
			found := resolve.Result{Snapshots: c.snapshots, Status: awsv1.EC2NodeClassStatus{InstanceProfile: profile,
				AMIs:           []awsv1.AMI{{ID: "ami-0", Name: "a"}, {ID: "ami-1", Name: "b"}},
				SecurityGroups: []awsv1.SecurityGroup{{ID: "sg-0"}}}}
			got := class.Problems(nodeClass, found, join("10.0.0.0/16"), "c1")
			switch {
			case c.want == "" && len(got) == 0:
			case c.want != "" && len(got) == 1 && got[0].Reason == class.ReasonVolume &&
				strings.Contains(got[0].Message, c.want):
			default:
				t.Errorf("problems %+v, want one that says %q", got, c.want)
			}
		})
	}
}
