package ec2_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/machines"
)

// E-57, E-61: written tags count before the first listing, and after one that does not have them yet; so each machine
// is tagged once. Tags that a listing has shown follow the listings.
func TestTagsAreWrittenOnce(t *testing.T) {
	t.Parallel()
	a := newAccount(t, whatIsSold(t), ec2test.Faults{})
	i, err := a.Launch(t.Context(), claim("n0"), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	list := func() {
		t.Helper()
		if _, err := a.List(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := func(when, name string) {
		t.Helper()
		if tags, found := a.TagsOf(i.ProviderID); !found || tags["Name"] != name {
			t.Errorf("%s: Name is %q, found: %t; want %q", when, tags["Name"], found, name)
		}
	}
	want("launched", "")
	a.Tagged(i.ProviderID, map[string]string{"Name": "node-1"})
	want("tagged", "node-1")
	list()
	want("a listing without it", "node-1")
	_, id, err := machines.ParseProviderID(i.ProviderID)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name string) {
		t.Helper()
		_, err := awsec2.NewFromConfig(a.server.OthersConfig()).CreateTags(t.Context(), &awsec2.CreateTagsInput{
			Resources: []string{id}, Tags: []ec2types.Tag{{Key: aws.String("Name"), Value: &name}},
		})
		if err != nil {
			t.Fatal(err)
		}
		list()
	}
	write("node-1")
	want("a listing with it", "node-1")
	write("another")
	want("somebody else's", "another")
}
