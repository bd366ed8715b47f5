package ec2

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test/ground"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/account"
	"github.com/joiner-autoscaler/joiner/localcluster/aws/eks"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

// somewhere is a cluster with the machines of a server that is known by its URL alone.
type somewhere struct {
	*town
	*ground.Ground
}

// newSomewhere starts a cluster with the server that the environment names, or with one of our own.
func newSomewhere(t *testing.T) *somewhere {
	t.Helper()
	options, err := rig.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	options.Log = io.Discard
	config, url, is := ground.FromEnv()
	if !is {
		a, err := account.Start(account.Options{Cluster: "another", Boot: time.Second, Shut: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			for _, text := range a.Unknown() {
				t.Errorf("the endpoint was asked for what it does not know: %s", text)
			}
			if err := a.Stop(); err != nil {
				t.Error(err)
			}
		})
		config, url = a.Config(account.You), a.URL()
	}
	t.Logf("against %s", url)
	ctx, cancel := context.WithTimeout(t.Context(), shared.StartTimeout)
	defer cancel()
	g, err := ground.Make(ctx, config, fmt.Sprintf("joiner-%d", time.Now().UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	keys, err := config.Credentials.Retrieve(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c, err := eks.Start(ctx, eks.Options{Rig: options, Every: 500 * time.Millisecond, At: &eks.Site{
		AWS: config, Cluster: g.Cluster, Queue: g.Queue, Env: []string{
			"AWS_ENDPOINT_URL=" + url, "AWS_REGION=" + config.Region, "AWS_ACCESS_KEY_ID=" + keys.AccessKeyID,
			"AWS_SECRET_ACCESS_KEY=" + keys.SecretAccessKey, "AWS_SESSION_TOKEN=" + keys.SessionToken,
			"AWS_EC2_METADATA_DISABLED=true",
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := &somewhere{town: &town{Cluster: c, t: t, ec2: ec2.NewFromConfig(config)}, Ground: g}
	t.Cleanup(s.end)
	return s
}

// E-64: pods get instances, which become nodes. A node of which the queue warns is replaced. In the end all go. This
// works with any server that speaks AWS's protocols: our own, or that of JOINER_EC2_ENDPOINT (make e2e-ec2).
func TestAnywhere(t *testing.T) {
	t.Parallel()
	s := newSomewhere(t)
	cluster := s.Ground.Cluster
	s.apply(strings.NewReplacer(
		"role: KarpenterNodeRole", "instanceProfile: "+s.Profile, "alias: al2023@latest", "id: "+s.Image,
		"karpenter.sh/discovery: e2e", "karpenter.sh/discovery: "+cluster,
	).Replace(class("default", "amiFamily: AL2023\ntags: {team: web}")),
		pool("default", "default", plain+amd64+spotToo, quick),
		deployment("spot", 2, "{cpu: 500m}", apart("spot")+"\nnodeSelector: {karpenter.sh/capacity-type: spot}"),
		deployment("steady", 2, "{cpu: 500m}", apart("steady")+
			"\nnodeSelector: {karpenter.sh/capacity-type: on-demand}"))
	s.condition(later, "default", "Ready", "True")
	s.running(4, later)
	s.tagged(later)
	claims, err := s.claims(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range claims {
		if c.Labels["karpenter.sh/capacity-type"] != "spot" {
			continue
		}
		if err := s.Send(t.Context(), account.Warning(idOf(c.Status.ProviderID), time.Now())); err != nil {
			t.Fatal(err)
		}
		s.eventually(later, "the claim that was warned of to go", func(ctx context.Context) (bool, string, error) {
			now, err := s.claims(ctx)
			for _, other := range now {
				if other.Name == c.Name {
					return false, "it is there", err
				}
			}
			return err == nil, "", err
		})
		break
	}
	s.running(4, later)
	s.kubectl("delete", "deployment", "--all")
	s.eventually(later, "no claim, node or instance", func(ctx context.Context) (bool, string, error) {
		claims, err := s.claims(ctx)
		if err != nil {
			return false, "", err
		}
		nodes, err := s.nodes(ctx)
		if err != nil {
			return false, "", err
		}
		left, err := s.Instances(ctx, types.InstanceStateNamePending, types.InstanceStateNameRunning)
		return len(claims)+len(nodes)+len(left) == 0, fmt.Sprintf("%d claims, %d nodes, %d instances", len(claims),
			len(nodes), len(left)), err
	})
}

// tagged waits until each instance has a claim and the tags that name it.
func (s *somewhere) tagged(within time.Duration) {
	s.t.Helper()
	s.eventually(within, "every instance to have the tags of its claim",
		func(ctx context.Context) (bool, string, error) {
			claims, err := s.claims(ctx)
			if err != nil {
				return false, "", err
			}
			running, err := s.Instances(ctx, types.InstanceStateNamePending, types.InstanceStateNameRunning)
			if err != nil {
				return false, "", err
			}
			for _, c := range claims {
				found := false
				for _, i := range running {
					tags := tagsOf(i.Tags)
					found = found || aws.ToString(i.InstanceId) == idOf(c.Status.ProviderID) &&
						tags["karpenter.sh/nodeclaim"] == c.Name &&
						tags["Name"] == c.Status.NodeName && tags["team"] == "web" &&
						tags["karpenter.sh/nodepool"] == "default"
				}
				if !found {
					return false, fmt.Sprintf("claim %s has no instance with its tags", c.Name), nil
				}
			}
			return len(running) == len(claims), fmt.Sprintf("%d instances for %d claims", len(running), len(claims)),
				nil
		})
}
