// Package tag has the tags of everything that EC2 creates for a cluster (E-57): instances, volumes, interfaces,
// fleets, spot requests and launch templates. It is pure.
//
//   - [Of] returns the tags that all of them have.
//   - [Check] finds tags that EC2 would refuse, before anything is launched.
//
// Sources: "Tag your Amazon EC2 resources" in the EC2 user guide; the conditions on tags in the policy that Karpenter
// publishes for its controller.
package tag

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/launchid"
)

// Keys of tags. The role of a controller may only touch resources that have the first four with its cluster's values.
const (
	ClusterName = "eks:eks-cluster-name"
	Pool        = karpenterv1.NodePoolLabelKey
	Class       = awsv1.NodeClassLabelKey
	owner       = "kubernetes.io/cluster/"
	owned       = "owned"

	// Name is the tag with the name of an instance's node, unless the class sets it.
	Name = "Name"
)

// Reason is the reason of the condition of a class whose tags EC2 would refuse.
const Reason = "TagValidationFailed"

// Bounds of EC2: tags of a resource, characters of a key and of a value.
const (
	Limit      = 50
	keyLimit   = 128
	valueLimit = 256
)

// Owner returns the key of the tag that says which cluster owns a resource; its value is "owned".
func Owner(cluster string) string { return owner + cluster }

// Of returns the tags of everything created for a pool with a class: those of the class, and ours, which win.
func Of(class *awsv1.EC2NodeClass, cluster, pool string) map[string]string {
	tags := map[string]string{}
	maps.Copy(tags, class.Spec.Tags)
	maps.Copy(tags, map[string]string{Owner(cluster): owned, ClusterName: cluster, Pool: pool, Class: class.Name})
	return tags
}

// Check returns an error that names each tag of spec.tags that EC2 would refuse or that users must not set, by key. It
// also says how many tags are too many, counting those that an instance gets from us.
func Check(tags map[string]string, cluster string) error {
	var problems []string
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if problem := wrong(key, tags[key]); problem != "" {
			problems = append(problems, problem)
		}
	}
	all := map[string]bool{Owner(cluster): true}
	for _, key := range []string{ClusterName, Pool, Class, Name, launchid.Key, launchid.ClaimKey} {
		all[key] = true
	}
	ours := len(all)
	for key := range tags {
		all[key] = true
	}
	if len(all) > Limit {
		problems = append(problems, fmt.Sprintf("has %d tags: EC2 takes %d of an instance, and %d of them are the "+
			"autoscaler's, so take out %d", len(tags), Limit, ours, len(all)-Limit))
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("spec.tags %s", strings.Join(problems, "; "))
}

// wrong returns what is wrong with a tag, "" for nothing.
func wrong(key, value string) string {
	switch {
	case key == "":
		return "has an empty key: each tag needs one"
	case utf8.RuneCountInString(key) > keyLimit:
		return fmt.Sprintf("has a key of %d characters, %.40q…: EC2 takes %d", utf8.RuneCountInString(key), key,
			keyLimit)
	case len(key) >= 4 && strings.EqualFold(key[:4], "aws:"):
		return fmt.Sprintf("has the key %q: keys that begin with aws: are AWS's", key)
	case reserved(key):
		return fmt.Sprintf("has the key %q, which the autoscaler sets itself: take it out", key)
	case utf8.RuneCountInString(value) > valueLimit:
		return fmt.Sprintf("has a value of %d characters for %q: EC2 takes %d", utf8.RuneCountInString(value), key,
			valueLimit)
	}
	return ""
}

// reserved reports whether only we may set a tag.
func reserved(key string) bool {
	return strings.HasPrefix(key, strings.TrimSuffix(owner, "/")) ||
		slices.Contains([]string{ClusterName, Pool, Class, launchid.Key, launchid.ClaimKey}, key)
}

// List returns tags in the form of the SDK, ordered by key.
func List(tags map[string]string) []ec2types.Tag {
	list := make([]ec2types.Tag, 0, len(tags))
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, ec2types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return list
}
