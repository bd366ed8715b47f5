package tag_test

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tag"
)

// E-57: the class's tags and ours, and ours win.
func TestTags(t *testing.T) {
	t.Parallel()
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}
	class.Spec.Tags = map[string]string{"team": "a", "eks:eks-cluster-name": "another"}
	var got []string
	for _, each := range tag.List(tag.Of(class, "c1", "general")) {
		got = append(got, *each.Key+"="+*each.Value)
	}
	want := "eks:eks-cluster-name=c1 karpenter.k8s.aws/ec2nodeclass=plain karpenter.sh/nodepool=general " +
		"kubernetes.io/cluster/c1=owned team=a"
	if strings.Join(got, " ") != want {
		t.Errorf("%s, want %s", got, want)
	}
	if class.Spec.Tags["eks:eks-cluster-name"] != "another" {
		t.Error("the class was changed")
	}
}

// E-57: tags that EC2 forbids are found and named before a launch.
func TestTagsThatEC2Refuses(t *testing.T) {
	t.Parallel()
	many := func(n int, more ...string) map[string]string {
		tags := map[string]string{}
		for i := range n {
			tags[fmt.Sprintf("k%02d", i)] = ""
		}
		for _, key := range more {
			tags[key] = "v"
		}
		return tags
	}
	for name, c := range map[string]struct {
		tags map[string]string
		want []string // parts of the error; none for no error
	}{
		"none": {nil, nil},
		"any characters": {map[string]string{"größe/=": strings.Repeat("ä", 256), strings.Repeat("k", 128): ""},
			nil},
		"as many as can be": {many(43), nil},
		"one too many":      {many(44), []string{"has 44 tags", "50", "7", "take out 1"}},
		"Name counts once":  {many(43, "Name"), nil},
		"no key":            {map[string]string{"": "v"}, []string{"empty key"}},
		"a long key": {map[string]string{strings.Repeat("k", 129): "v"},
			[]string{"129 characters", "takes 128"}},
		"a long value": {map[string]string{"k": strings.Repeat("v", 257)},
			[]string{`"k"`, "257 characters", "takes 256"}},
		"AWS's":     {map[string]string{"AwS:x": "v"}, []string{`"AwS:x"`}},
		"the pool":  {many(0, "karpenter.sh/nodepool"), []string{`"karpenter.sh/nodepool"`, "take it out"}},
		"the claim": {many(0, "karpenter.sh/nodeclaim"), []string{`"karpenter.sh/nodeclaim"`}},
		"the class": {many(0, "karpenter.k8s.aws/ec2nodeclass"),
			[]string{`"karpenter.k8s.aws/ec2nodeclass"`}},
		"the cluster":   {many(0, "eks:eks-cluster-name"), []string{`"eks:eks-cluster-name"`}},
		"the launch":    {many(0, "joiner.sh/launch"), []string{`"joiner.sh/launch"`}},
		"any cluster's": {many(0, "kubernetes.io/cluster/x"), []string{`"kubernetes.io/cluster/x"`}},
		"several, by key": {map[string]string{"aws:b": "", "": ""},
			[]string{"empty key: each tag needs one; has the key"}},
		"a value stays out":  {map[string]string{"aws:b": "secret"}, []string{`"aws:b"`}},
		"a short key of aws": {many(0, "aws"), nil},
	} {
		err := tag.Check(c.tags, "c1")
		if (err != nil) != (len(c.want) > 0) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v does not say %q", name, err, part)
			}
		}
		if err != nil && (!strings.HasPrefix(err.Error(), "spec.tags ") || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
