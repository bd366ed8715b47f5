package ec2_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tag"
)

// E-55: an instance that runs is not gone because its tag names another cluster, or none. With another cluster's name
// the answer is an error that has both names; without a name the instance is that of the claim that names it.
func TestAnInstanceWithAnotherClustersTagIsNotGone(t *testing.T) {
	t.Parallel()
	a := newAccount(t, whatIsSold(t), ec2test.Faults{})
	c := claim("n0")
	i, err := a.Launch(t.Context(), c, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	a.kube.bind(c, i.ProviderID)
	a.Settle(t)
	user := awsec2.NewFromConfig(a.server.OthersConfig())
	for _, name := range []string{"other", "", clusterName} {
		if _, err := user.CreateTags(t.Context(), &awsec2.CreateTagsInput{
			Resources: []string{i.ProviderID[strings.LastIndex(i.ProviderID, "/")+1:]},
			Tags:      []ec2types.Tag{{Key: aws.String(tag.ClusterName), Value: &name}},
		}); err != nil {
			t.Fatal(err)
		}
		found, err := a.Get(t.Context(), i.ProviderID)
		if foreign := name == "other"; (err != nil) != foreign || !foreign && found.ClaimName != c.Name {
			t.Errorf("cluster %q: found %+v, error %v", name, found, err)
		}
		if err != nil && (errors.Is(err, provider.ErrNotFound) || !strings.Contains(err.Error(), tag.ClusterName+
			"=other") || !strings.Contains(err.Error(), `"c1"`)) {
			t.Errorf("cluster %q: error %v, want one that has both names and is not ErrNotFound", name, err)
		}
	}
	elsewhere := strings.Replace(i.ProviderID, i.Zone, "us-east-1f", 1)
	if _, err := a.Get(t.Context(), elsewhere); err == nil || errors.Is(err, provider.ErrNotFound) ||
		!strings.Contains(err.Error(), elsewhere) {
		t.Errorf("another zone: error %v, want one that has both", err)
	}
}
