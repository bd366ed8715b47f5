package ec2_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/plan"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2"
	nodeclass "github.com/joiner-autoscaler/joiner/internal/provider/ec2/class"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// E-49: a machine has drifted if its class now resolves to something else, and not if that is unknown.
func TestDrift(t *testing.T) {
	t.Parallel()
	a := newAccount(t, whatIsSold(t), ec2test.Faults{})
	c := claim("n0")
	i, err := a.Launch(t.Context(), c, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	c.Status.ProviderID, c.Status.ImageID = i.ProviderID, i.ImageID
	c.Labels[corev1.LabelInstanceTypeStable], c.Annotations = i.Type, hashed("same")
	if _, err := a.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole := a.kube.classes["default"]
	whole.Annotations = hashed("same")
	texts := map[string]string{}
	for want, change := range map[string]func(*awsv1.EC2NodeClass){
		"": func(class *awsv1.EC2NodeClass) {
			class.Status.AMIs = append([]awsv1.AMI{{ID: "ami-00000000000000002", Requirements: onlyAMD64()}},
				class.Status.AMIs...)
		},
		ec2.DriftAMI: func(class *awsv1.EC2NodeClass) { class.Status.AMIs[0].ID = "ami-00000000000000002" },
		ec2.DriftSubnet: func(class *awsv1.EC2NodeClass) {
			for n := range class.Status.Subnets {
				class.Status.Subnets[n].ID = "subnet-0000000000000000" + class.Status.Subnets[n].Zone[9:]
			}
		},
		ec2.DriftSecurityGroup: func(class *awsv1.EC2NodeClass) {
			class.Status.SecurityGroups[0].ID = "sg-00000000000000002"
		},
		provider.DriftInstanceTypeNotFound: func(class *awsv1.EC2NodeClass) {
			class.Status.AMIs[0].Requirements[0].Values = []string{"arm64"}
		},
		ec2.DriftNodeClass: func(class *awsv1.EC2NodeClass) { class.Annotations = hashed("other") },
	} {
		class := whole.DeepCopy()
		change(class)
		class.ResourceVersion = "changed for " + want
		a.kube.classes["default"] = class
		got, err := a.Drifted(t.Context(), c)
		if got.Reason != want || err != nil || (got.Message == "") != (want == "") {
			t.Errorf("drifted for %q, error %v; want %q, and what differs", got, err, want)
		}
		texts[want] = got.Message
	}
	for reason, want := range map[string]string{
		ec2.DriftAMI: fmt.Sprintf("it runs image %s, and EC2NodeClass default selects ami-00000000000000002",
			a.image.ID),
		ec2.DriftNodeClass:                 "the specification of EC2NodeClass default has changed since its launch",
		provider.DriftInstanceTypeNotFound: "the instance type " + i.Type + " is not in the catalogue any more",
	} {
		if texts[reason] != want {
			t.Errorf("%s says %q, want %q", reason, texts[reason], want)
		}
	}
	empty := whole.DeepCopy()
	empty.Status.AMIs, empty.Status.Subnets, empty.Status.SecurityGroups = nil, nil, nil
	a.kube.classes["default"] = empty
	if got, err := a.Drifted(t.Context(), c); got.Reason != "" || err != nil {
		t.Errorf("with an empty status drifted for %q, error %v; want not", got, err)
	}
	a.kube.classes["default"].Status.Conditions[0].Status = "False"
	if got, err := a.Drifted(t.Context(), c); got.Reason != "" || err == nil {
		t.Errorf("with a class that is not ready drifted for %q, error %v; want not, and an error", got, err)
	}
}

func hashed(hash string) map[string]string {
	return map[string]string{nodeclass.HashKey: hash, nodeclass.HashVersionKey: nodeclass.HashVersion}
}

// E-05: a claim annotated by another program has not drifted.
func TestOthersHashesAreNoDrift(t *testing.T) {
	t.Parallel()
	a := newAccount(t, whatIsSold(t), ec2test.Faults{})
	a.kube.classes["default"].Annotations = hashed("ours")
	for _, annotations := range []map[string]string{
		nil, {nodeclass.HashKey: "1"}, {nodeclass.HashKey: "1", nodeclass.HashVersionKey: "v4"},
		{nodeclass.HashVersionKey: nodeclass.HashVersion},
	} {
		c := claim("n0", func(c *karpenterv1.NodeClaim) { c.Annotations = annotations })
		if got, err := a.Drifted(t.Context(), c); got.Reason != "" || err != nil {
			t.Errorf("with %v drifted for %q, error %v; want not", annotations, got, err)
		}
	}
}

// E-50: security groups that others add are no drift, as long as the class's groups are those of the launch; removed
// ones are.
func TestGroupsOfOthersAreNoDrift(t *testing.T) {
	t.Parallel()
	a := newAccount(t, whatIsSold(t), ec2test.Faults{})
	c := claim("n0")
	i, err := a.Launch(t.Context(), c, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	c.Status.ProviderID, c.Status.ImageID = i.ProviderID, i.ImageID
	own := a.kube.classes["default"].Status.SecurityGroups[0].ID
	try := func(want string, groups ...string) {
		t.Helper()
		a.server.SetGroups(i.ProviderID[strings.LastIndex(i.ProviderID, "/")+1:], groups...)
		if _, err := a.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, err := a.Drifted(t.Context(), c); got.Reason != want || err != nil {
			t.Errorf("with groups %v drifted for %q, error %v; want %q", groups, got, err, want)
		}
	}
	try("", own)
	try("", own, "sg-0000000000000fire")
	try(ec2.DriftSecurityGroup, "sg-0000000000000fire")
	a.kube.classes["default"].Status.SecurityGroups = append(a.kube.classes["default"].Status.SecurityGroups,
		awsv1.SecurityGroup{ID: "sg-00000000000000new"})
	a.kube.classes["default"].ResourceVersion = "2"
	try(ec2.DriftSecurityGroup, own)
	try(ec2.DriftSecurityGroup, own, "sg-0000000000000fire")
}

// E-30, E-32, E-34: the user data has what the node needs, and nothing that only the claim has.
func TestWhatAMachineReads(t *testing.T) {
	t.Parallel()
	a := newAccount(t, whatIsSold(t), ec2test.Faults{})
	c := claim("n0", must("example.com/flavour", "mint"), func(c *karpenterv1.NodeClaim) {
		c.Labels["example.com/flavour"] = "mint"
		c.Spec.StartupTaints = []corev1.Taint{{Key: "example.com/starting", Effect: corev1.TaintEffectNoSchedule}}
	})
	i, err := a.Launch(t.Context(), c, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if i.Labels["example.com/flavour"] != "mint" || i.Labels["team"] != "blue" {
		t.Errorf("the node's labels are %v", i.Labels)
	}
	data, err := base64.StdEncoding.DecodeString(a.server.Instances()[0].UserData())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"https://c1.example.com", "10.100.0.10", "karpenter.sh/unregistered", "example.com/starting",
		"karpenter.sh/nodepool=default",
		"karpenter.k8s.aws/ec2nodeclass=default", "karpenter.sh/capacity-type=" + i.CapacityType, "team=blue",
		"karpenter.sh/do-not-sync-taints=true", "maxPods: 29",
	} {
		if !strings.Contains(string(data), want) {
			t.Errorf("user data lacks %s:\n%s", want, data)
		}
	}
	if strings.Contains(string(data), "flavour") {
		t.Errorf("user data has a label that only this claim has:\n%s", data)
	}
}

// E-30, E-34: a node registers with the labels that all nodes of its pool have, as far as a kubelet may give itself
// these, so that DaemonSets that avoid them do not start. Its kubelet sets the taints, so nobody adds them again. Both
// do not hold for user data that is not ours.
func TestWhatAPoolsMachinesRead(t *testing.T) {
	t.Parallel()
	s := whatIsSold(t)
	pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	pool.Spec.Template.ObjectMeta.Labels = map[string]string{"tier": "front", "node.kubernetes.io/of": "kubelets",
		"node-restriction.kubernetes.io/x": "y", "node-role.kubernetes.io/web": "", "a.k8s.io/b": "c"}
	pool.Spec.Template.Spec.NodeClassRef = claim("").Spec.NodeClassRef
	pool.Spec.Template.Spec.Requirements = []karpenterv1.NodeSelectorRequirementWithMinValues{
		in("example.com/fixed", "one"), in("example.com/open", "mint", "lime"),
	}
	pool.Spec.Template.Spec.StartupTaints = []corev1.Taint{{Key: "example.com/starting", Effect: "NoSchedule"}}
	set, _, err := translate.PoolRequirements(pool)
	if err != nil {
		t.Fatal(err)
	}
	made := translate.NodeClaimFor(pool, nil, plan.Launch{Pool: pool.Name, Slot: plan.NoSlot,
		Types:        []string{"m5.large"},
		Requirements: set.And(requirement.NewSet(requirement.OneOf("example.com/open", "mint")))}, "n0")
	made.UID = "uid-of-n0"
	for family, text := range map[string]string{"AL2023": "", "Bottlerocket": "", "Custom": "#!/bin/own\n"} {
		a := newAccount(t, s, ec2test.Faults{})
		a.image = a.server.AddImage(ec2test.Image{Name: family, SnapshotGiB: 2})
		a.kube.PutPool(pool)
		class := a.kube.classes["default"]
		class.Spec.AMIFamily, class.Spec.AMISelectorTerms = &family, []awsv1.AMISelectorTerm{{ID: a.image.ID}}
		class.Spec.UserData, class.Status.AMIs[0].ID = &text, a.image.ID
		if _, err := a.Launch(t.Context(), made.DeepCopy(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		data, err := base64.StdEncoding.DecodeString(a.server.Instances()[0].UserData())
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"tier", "example.com/fixed", "node.kubernetes.io/of", "karpenter.sh/nodepool",
			karpenterv1.NodeDoNotSyncTaintsLabelKey, "example.com/starting"} {
			if strings.Contains(string(data), key) != (family != "Custom") {
				t.Errorf("%s: user data has %s: %t\n%s", family, key, family == "Custom", data)
			}
		}
		for _, key := range []string{"node-restriction", "node-role", "a.k8s.io", "example.com/open"} {
			if strings.Contains(string(data), key) {
				t.Errorf("%s: user data has %s\n%s", family, key, data)
			}
		}
	}
}
