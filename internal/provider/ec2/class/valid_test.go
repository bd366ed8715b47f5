package class_test

import (
	"encoding/json"
	"strings"
	"testing"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/class"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/userdata"
)

func join(cidr string) class.Join {
	return class.Join{Cluster: userdata.Cluster{Name: "c1", Endpoint: "https://c1.example.com", CA: "Y2E=",
		CIDR: cidr}}
}

func ofFamily(alias string, change ...func(*awsv1.EC2NodeClassSpec)) *awsv1.EC2NodeClass {
	c := &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{AMISelectorTerms: []awsv1.AMISelectorTerm{{Alias: alias}}}}
	c.Name = "default"
	for _, f := range change {
		f(&c.Spec)
	}
	return c
}

func settings(text string) func(*awsv1.EC2NodeClassSpec) {
	return func(s *awsv1.EC2NodeClassSpec) {
		s.Kubelet = &awsv1.KubeletConfiguration{}
		if err := json.Unmarshal([]byte(text), s.Kubelet); err != nil {
			panic(err)
		}
	}
}

// E-06: settings have the names and types of the kubelet's own configuration; those that a family cannot pass on are
// refused.
func TestKubeletsAreThoseOfTheKubelet(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		class  *awsv1.EC2NodeClass
		reason string
		says   string
	}{
		"a managed one":        {ofFamily("al2023@latest", settings(`{"maxPods": 20}`)), "", ""},
		"one of the kubelet's": {ofFamily("al2023@latest", settings(`{"shutdownGracePeriod": "30s"}`)), "", ""},
		"an unknown one": {ofFamily("al2023@latest", settings(`{"shutdownGrace": "30s"}`)), class.ReasonKubelet,
			"shutdownGrace"},
		"one of another type": {ofFamily("al2023@latest", settings(`{"registryPullQPS": "many"}`)),
			class.ReasonKubelet, "registryPullQPS"},
		"one in another case": {ofFamily("al2023@latest", settings(`{"RegistryPullQPS": 3}`)), class.ReasonKubelet,
			"RegistryPullQPS"},
		"not managed, on Bottlerocket": {ofFamily("bottlerocket@latest", settings(`{"shutdownGracePeriod": "30s"}`)),
			class.ReasonKubeletUnsupported, "shutdownGracePeriod"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := class.Problems(c.class, resolve.Result{}, join("10.100.0.0/16"), "c1")
			switch {
			case c.reason == "" && len(list) > 0:
				t.Errorf("problems %+v, want none", list)
			case c.reason != "" &&
				(len(list) != 1 || list[0].Reason != c.reason || !strings.Contains(list[0].Message, c.says)):
				t.Errorf("problems %+v, want %s that names %s", list, c.reason, c.says)
			}
		})
	}
}

// Nodes of a cluster with IPv6 could not join: the error comes before any is launched.
func TestClustersWithIPv6AreRefused(t *testing.T) {
	t.Parallel()
	list := class.Problems(ofFamily("al2023@latest"), resolve.Result{}, join("fd00:1234::/108"), "c1")
	if len(list) != 1 || list[0].Reason != class.ReasonIPv6 || list[0].Unknown ||
		!strings.Contains(list[0].Message, "fd00:1234::/108") {
		t.Errorf("problems %+v", list)
	}
}

// E-05: the hash is equal for specs that make equal machines, and differs otherwise.
func TestHashes(t *testing.T) {
	t.Parallel()
	hash := func(c *awsv1.EC2NodeClass) string {
		h, err := class.Hash(c)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	family, prefixes, text, a, b := "AL2023", int32(2), "echo", "/dev/xvda", "/dev/xvdb"
	disks := func(names ...*string) func(*awsv1.EC2NodeClassSpec) {
		return func(s *awsv1.EC2NodeClassSpec) {
			for _, name := range names {
				s.BlockDeviceMappings = append(s.BlockDeviceMappings, awsv1.BlockDeviceMapping{DeviceName: name})
			}
		}
	}
	first := hash(ofFamily("al2023@latest"))
	for name, change := range map[string]func(*awsv1.EC2NodeClassSpec){
		"the family of the alias": func(s *awsv1.EC2NodeClassSpec) { s.AMIFamily = &family },
		"another version": func(s *awsv1.EC2NodeClassSpec) {
			s.AMISelectorTerms[0].Alias = "al2023@v20260101"
		},
		"other subnets": func(s *awsv1.EC2NodeClassSpec) {
			s.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{ID: "subnet-00000000000000001"}}
		},
		"prefixes": func(s *awsv1.EC2NodeClassSpec) { s.IPPrefixCount = &prefixes },
	} {
		if hash(ofFamily("al2023@latest", change)) != first {
			t.Errorf("%s: another hash", name)
		}
	}
	for name, change := range map[string]func(*awsv1.EC2NodeClassSpec){
		"user data": func(s *awsv1.EC2NodeClassSpec) { s.UserData = &text }, "tags": func(s *awsv1.EC2NodeClassSpec) {
			s.Tags = map[string]string{"a": "b"}
		},
		"a disk": disks(&a), "kubelet": settings(`{"maxPods": 20}`), "role": func(s *awsv1.EC2NodeClassSpec) {
			s.Role = &text
		},
	} {
		if hash(ofFamily("al2023@latest", change)) == first {
			t.Errorf("%s: the same hash", name)
		}
	}
	if hash(ofFamily("al2023@latest", disks(&a, &b))) != hash(ofFamily("al2023@latest", disks(&b, &a))) {
		t.Error("the order of disks changes the hash")
	}
	if hash(ofFamily("bottlerocket@latest")) == first {
		t.Error("another family has the same hash")
	}
}

// E-16: a class whose nodes could not find the API server launches nothing. What is known keeps, even if EKS does not
// answer later.
func TestNodesThatCouldNotJoinAreNotLaunched(t *testing.T) {
	t.Parallel()
	const refused = "eks:DescribeCluster failed"
	whole := join("10.0.0.0/16").Cluster
	without := func(change func(*userdata.Cluster)) userdata.Cluster {
		c := whole
		change(&c)
		return c
	}
	noAuthority := without(func(c *userdata.Cluster) { c.CA = "" })
	noRange := without(func(c *userdata.Cluster) { c.CIDR = "" })
	for name, c := range map[string]struct {
		family, want string // want is the reason of the only problem; "" for none
		join         class.Join
		unknown      bool
	}{
		"AL2023 without authority": {"al2023@latest", resolve.NotResolved,
			class.Join{Cluster: noAuthority, Missing: refused}, true},
		"AL2023 without range": {"al2023@latest", resolve.NotResolved, class.Join{Cluster: noRange, Missing: refused},
			true},
		"AL2023 before EKS was asked": {"al2023@latest", resolve.NotResolved, class.Join{}, true},
		"Bottlerocket without authority": {"bottlerocket@latest", resolve.NotResolved,
			class.Join{Cluster: noAuthority, Missing: refused}, true},
		"Bottlerocket without range": {"bottlerocket@latest", "", class.Join{Cluster: noRange, Missing: refused},
			false},
		"a failure later": {"al2023@latest", "", class.Join{Cluster: whole, Missing: refused}, false},
		"no such cluster": {"bottlerocket@latest", class.ReasonClusterNotFound,
			class.Join{Cluster: whole, Missing: refused, None: true}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := class.Problems(ofFamily(c.family), resolve.Result{}, c.join, "c1")
			if c.want == "" && len(got) == 0 {
				return
			}
			if len(got) != 1 || got[0].Reason != c.want || got[0].Unknown != c.unknown || got[0].Message == "" {
				t.Errorf("problems %+v, want one with the reason %q", got, c.want)
			}
		})
	}
}
