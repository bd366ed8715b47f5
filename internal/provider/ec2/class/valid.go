package class

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tag"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/template"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
)

// Reasons of a False ValidationSucceeded, beside those of package resolve.
const (
	ReasonKubelet            = "InvalidKubeletConfiguration"
	ReasonKubeletUnsupported = "UnsupportedKubeletConfiguration"
	ReasonUserData           = "UserDataInvalid"
	ReasonUserDataSize       = "UserDataSizeLimitExceeded"
	ReasonTemplate           = "LaunchTemplateInvalid"
	ReasonVolume             = "VolumeTooSmall"
	ReasonTags               = tag.Reason
	ReasonClusterNotFound    = "ClusterNotFound"
	ReasonInstancesFail      = "InstancesFail"
	ReasonIPv6               = "IPFamilyUnsupported"
)

// Join is what is known of how nodes find their cluster (E-16).
type Join struct {
	Cluster userdata.Cluster
	DNS     []string
	// Missing says what is unknown and why, with the settings that would provide it; "" when nothing is missing.
	Missing string
	// None is true when EKS said that the cluster does not exist; false if EKS just did not answer.
	None bool
}

// Problem is a reason why a class cannot launch.
type Problem struct {
	Reason, Message string
	// Unknown means that the problem may pass by itself.
	Unknown bool
}

// Problems returns what is wrong with a class, as far as that is known without AWS: the kubelet's settings, tags, user
// data, and settings that a launch template cannot have. found has the results of its selectors. While these are
// unknown, templates are not checked.
func Problems(class *awsv1.EC2NodeClass, found resolve.Result, join Join, clusterName string) []Problem {
	status := found.Status
	family := resolve.Family(&class.Spec)
	list := kubelet(class.Spec.Kubelet, family)
	if err := tag.Check(class.Spec.Tags, clusterName); err != nil {
		list = append(list, Problem{Reason: ReasonTags, Message: err.Error()})
	}
	if what := lacks(join.Cluster, family); writesJoin(family) && (join.None || what != nil) {
		reason := resolve.NotResolved
		if join.None {
			reason = ReasonClusterNotFound
		}
		message := cmp.Or(join.Missing, "EKS was not asked yet for the cluster's "+strings.Join(what, ", "))
		list = append(list, Problem{Reason: reason, Message: message, Unknown: !join.None})
	}
	if strings.Contains(join.Cluster.CIDR, ":") {
		list = append(list,
			Problem{Reason: ReasonIPv6,
				Message: fmt.Sprintf("the cluster's services have addresses of IPv6 (%s): nodes "+
					"of such clusters are not launched yet, since their instances would have no address of IPv6",
					join.Cluster.CIDR)})
	}
	text, problem := userData(class, family, join)
	if problem != nil {
		return append(list, *problem)
	}
	if status.InstanceProfile == "" || len(status.SecurityGroups) == 0 || len(status.AMIs) == 0 {
		return list
	}
	resolved := class.DeepCopy()
	resolved.Status = status
	content, err := template.Content(template.Ask{
		Class: resolved, Cluster: clusterName, Pool: "any", Family: family, Image: status.AMIs[0].ID, UserData: text,
		CapacityType: karpenterv1.CapacityTypeOnDemand,
	})
	if err != nil {
		return append(list, Problem{Reason: ReasonTemplate, Message: err.Error()})
	}
	text = volumes(content.LaunchTemplateData.BlockDeviceMappings, status.AMIs, found.Snapshots)
	if found.Snapshots == nil { // the earlier result counts while there is no new one (E-03)
		text = saidOfVolumes(class)
	}
	if text != "" {
		list = append(list, Problem{Reason: ReasonVolume, Message: text})
	}
	return list
}

// writesJoin reports whether user data of a family says where the API server is.
func writesJoin(family string) bool {
	return family == resolve.FamilyAL2023 || family == resolve.FamilyBottlerocket
}

// lacks returns the facts of the cluster that nodes of a family need to join, and that are not known.
func lacks(c userdata.Cluster, family string) []string {
	if !writesJoin(family) {
		return nil
	}
	return c.Lacks(family == resolve.FamilyBottlerocket)
}

func saidOfVolumes(class *awsv1.EC2NodeClass) string {
	c, _ := condition.Get(class.Status.Conditions, karpenterv1.ConditionTypeValidationSucceeded)
	if c.Reason == ReasonVolume && c.ObservedGeneration == class.Generation {
		return c.Message
	}
	return ""
}

// mostImages bounds how many images a message names.
const mostImages = 2

// volumes names, for each image, a volume that is smaller than the image's snapshot (E-74). It returns "" if the
// volumes of one image are large enough or unknown: then the class can launch.
func volumes(
	disks []ec2types.LaunchTemplateBlockDeviceMappingRequest, images []awsv1.AMI,
	snapshots map[string]map[string]int64,
) string {
	var texts []string
	for _, image := range images {
		for _, disk := range disks {
			needs := snapshots[image.ID][aws.ToString(disk.DeviceName)]
			if disk.Ebs == nil || disk.Ebs.VolumeSize == nil || disk.Ebs.SnapshotId != nil ||
				int64(*disk.Ebs.VolumeSize) >= needs {
				continue
			}
			texts = append(texts, fmt.Sprintf("%s has %d GiB, and image %s (%s) needs %d GiB there",
				aws.ToString(disk.DeviceName), *disk.Ebs.VolumeSize, image.ID, image.Name, needs))
			break
		}
	}
	if len(texts) < len(images) {
		return ""
	}
	if more := len(texts) - mostImages; more > 0 {
		texts = append(texts[:mostImages], fmt.Sprintf("and %d more images", more))
	}
	return "a volume cannot be smaller than the snapshot that it is made from: " + strings.Join(texts, "; ") +
		"; correct volumeSize in spec.blockDeviceMappings"
}

// userData returns what a machine of the class would read, or what is wrong with it.
func userData(class *awsv1.EC2NodeClass, family string, join Join) (text string, problem *Problem) {
	text, err := rendered(class, family, join)
	var tooLarge *userdata.TooLargeError
	var wrong *userdata.Error // its text names the field
	switch {
	case errors.As(err, &wrong):
		return "", &Problem{Reason: ReasonUserData, Message: err.Error()}
	case errors.As(err, &tooLarge):
		return "", &Problem{Reason: ReasonUserDataSize, Message: fmt.Sprintf("spec.userData: %s", err)}
	case err != nil:
		return "", &Problem{Reason: ReasonUserData, Message: fmt.Sprintf("spec.userData: %s", err)}
	}
	return text, nil
}

// UserDataBytes returns the size of the user data for machines of the class, without what pool, claim and type add.
// known is false if it cannot be built (E-34).
func UserDataBytes(class *awsv1.EC2NodeClass, join Join) (bytes int, known bool) {
	return userdata.SizeOf(rendered(class, resolve.Family(&class.Spec), join))
}

// rendered returns what a machine of the class would read, without what only a claim or a type decides.
func rendered(class *awsv1.EC2NodeClass, family string, join Join) (text string, err error) {
	if class.Spec.UserData != nil {
		text = *class.Spec.UserData
	}
	node := userdata.Node{
		Cluster: join.Cluster, Kubelet: class.Spec.Kubelet, MaxPods: 110, DNS: join.DNS,
		Labels:       map[string]string{karpenterv1.NodePoolLabelKey: "any", awsv1.NodeClassLabelKey: class.Name},
		Taints:       []corev1.Taint{{Key: karpenterv1.UnregisteredTaintKey, Effect: corev1.TaintEffectNoExecute}},
		LocalStorage: class.Spec.InstanceStorePolicy != nil,
	}
	if lacks(node.Cluster, family) != nil { // reported elsewhere
		node.Cluster = userdata.Cluster{Name: "any", Endpoint: "https://any.example.com", CA: "Y2E=",
			CIDR: "10.0.0.0/16"}
	}
	switch family {
	case resolve.FamilyAL2023:
		return userdata.AL2023(text, node)
	case resolve.FamilyBottlerocket:
		return userdata.Bottlerocket(text, node, "")
	}
	if len(text) > userdata.Limit {
		return "", &userdata.TooLargeError{Size: len(text)}
	}
	return text, nil
}

// kubelet finds settings that no kubelet knows, or that the family cannot pass on (E-06).
func kubelet(k *awsv1.KubeletConfiguration, family string) []Problem {
	if k == nil || len(k.Unmanaged) == 0 {
		return nil
	}
	names := make([]string, 0, len(k.Unmanaged))
	for name := range k.Unmanaged {
		names = append(names, name)
	}
	slices.Sort(names)
	if family == resolve.FamilyBottlerocket {
		return []Problem{
			{Reason: ReasonKubeletUnsupported, Message: fmt.Sprintf("spec.kubelet has %s: Bottlerocket takes only "+
				"the settings that the API lists; put others into spec.userData as settings.kubernetes",
				strings.Join(names, ", "))}}
	}
	var wrong []string
	for _, name := range names {
		var into kubeletv1beta1.KubeletConfiguration
		text := fmt.Sprintf("{%q: %s}", name, k.Unmanaged[name])
		strict, err := kjson.UnmarshalStrict([]byte(text), &into)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("%s cannot be read: %s", name, err))
		case len(strict) > 0:
			wrong = append(wrong, strict[0].Error())
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return []Problem{
		{Reason: ReasonKubelet, Message: fmt.Sprintf("spec.kubelet: %s; want fields of the kubelet's configuration "+
			"file, version kubelet.config.k8s.io/v1beta1", strings.Join(wrong, "; "))}}
}

// With returns the conditions with the problems in ValidationSucceeded, and a new Ready. Permanent problems come
// before those that may pass. A problem found by package resolve comes before both.
func With(conditions []karpenterv1.Condition, problems []Problem) []karpenterv1.Condition {
	list := slices.Clone(conditions)
	at := slices.IndexFunc(list, func(c karpenterv1.Condition) bool {
		return c.Type == karpenterv1.ConditionTypeValidationSucceeded
	})
	if at < 0 || len(problems) == 0 || list[at].Status == metav1.ConditionFalse {
		return list
	}
	slices.SortStableFunc(problems, func(a, b Problem) int {
		switch {
		case a.Unknown == b.Unknown:
			return 0
		case b.Unknown:
			return -1
		}
		return 1
	})
	var messages []string
	for _, p := range problems {
		if p.Unknown == problems[0].Unknown {
			messages = append(messages, p.Message)
		}
	}
	list[at].Status, list[at].Reason, list[at].Message = metav1.ConditionFalse, problems[0].Reason,
		strings.Join(messages, "; ")
	if problems[0].Unknown {
		list[at].Status = metav1.ConditionUnknown
	}
	for i := range list {
		if list[i].Type == karpenterv1.ConditionTypeReady {
			list[i] = resolve.Ready(list)
		}
	}
	return list
}
