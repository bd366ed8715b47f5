package plug

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
)

// This file checks what Joiner leaves behind against the rules of Karpenter's AWS provider, as of release 1.15.1. Each
// rule names its source file there.

// theirVersion is the version of their hash (pkg/apis/v1/ec2nodeclass.go).
const theirVersion = "v6"

// resume changes class and claims like Karpenter when it finds another version on a class: each claim of another
// version gets Karpenter's version, and Karpenter's hash unless it has any condition Drifted; then so does the class
// (pkg/controllers/nodeclass/hash/controller.go).
func (p *peer) resume(hash string) {
	p.t.Helper()
	class := p.class("default")
	if class.Annotations["karpenter.k8s.aws/ec2nodeclass-hash-version"] != theirVersion {
		for _, claim := range p.claims() {
			if claim.Spec.NodeClassRef.Name != class.Name ||
				claim.Annotations["karpenter.k8s.aws/ec2nodeclass-hash-version"] == theirVersion {
				continue
			}
			claim.Annotations["karpenter.k8s.aws/ec2nodeclass-hash-version"] = theirVersion
			if _, has := condition.Get(claim.Status.Conditions, karpenterv1.ConditionTypeDrifted); !has {
				claim.Annotations["karpenter.k8s.aws/ec2nodeclass-hash"] = hash
			}
			p.must(p.kube.Update(p.t.Context(), &claim))
		}
	}
	class.Annotations["karpenter.k8s.aws/ec2nodeclass-hash"] = hash
	class.Annotations["karpenter.k8s.aws/ec2nodeclass-hash-version"] = theirVersion
	p.must(p.kube.Update(p.t.Context(), class))
}

// theyDrift returns why Karpenter would replace a claim; "" if it would not (pkg/cloudprovider/drift.go).
func (p *peer) theyDrift(claim *karpenterv1.NodeClaim) string {
	p.t.Helper()
	class, machine := p.class("default"), p.alive()[claim.Status.ProviderID]
	hashes, versions := "karpenter.k8s.aws/ec2nodeclass-hash", "karpenter.k8s.aws/ec2nodeclass-hash-version"
	if a, b := claim.Annotations, class.Annotations; a[hashes] != "" && b[hashes] != "" &&
		a[versions] == b[versions] && a[hashes] != b[hashes] {
		return "NodeClassDrift"
	}
	if !slices.ContainsFunc(class.Status.AMIs, func(a awsv1.AMI) bool { return a.ID == claim.Status.ImageID }) {
		return "AMIDrift"
	}
	var groups []string
	for _, g := range class.Status.SecurityGroups {
		groups = append(groups, g.ID)
	}
	if !slices.Equal(slices.Sorted(slices.Values(groups)), slices.Sorted(slices.Values(machine.Groups))) {
		return "SecurityGroupDrift"
	}
	if !slices.ContainsFunc(class.Status.Subnets, func(s awsv1.Subnet) bool { return s.ID == machine.Subnet }) {
		return "SubnetDrift"
	}
	if claim.Labels["karpenter.k8s.aws/placement-group-id"] != "" {
		return "PlacementGroupDrift" // the class of these tests selects none
	}
	return ""
}

// theyList reports whether Karpenter knows a machine as one of the cluster's (pkg/providers/instance/instance.go,
// List).
func theyList(i ec2test.Instance) bool {
	_, pool := i.Tags["karpenter.sh/nodepool"]
	_, class := i.Tags["karpenter.k8s.aws/ec2nodeclass"]
	return pool && class && i.Tags["eks:eks-cluster-name"] == clusterName
}

// theyEnd returns the machines that Karpenter would end: those it lists and that no claim names by provider ID
// (pkg/controllers/nodeclaim/garbagecollection/controller.go).
func (p *peer) theyEnd() (ids []string) {
	named := map[string]bool{}
	for _, claim := range p.claims() {
		named[claim.Status.ProviderID] = true
	}
	for id, i := range p.alive() {
		if theyList(i) && !named[id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// theyDelete returns the instance profiles that Karpenter would delete: those of the cluster that no class's status
// and no claim's annotation names (pkg/controllers/nodeclass/garbagecollection/controller.go).
func (p *peer) theyDelete() (names []string) {
	inUse := map[string]bool{p.class("default").Status.InstanceProfile: true}
	for _, claim := range p.claims() {
		inUse[claim.Annotations["karpenter.k8s.aws/instance-profile-name"]] = true
	}
	for name := range p.server.InstanceProfiles() {
		if !inUse[name] {
			names = append(names, name)
		}
	}
	return names
}

// launched has Joiner launch a claim's machine, and writes on the claim what the controller of claims writes.
func (p *peer) launched(c *connection, name, kind string) {
	p.t.Helper()
	claim := p.bare(name, kind)
	claim.Annotations = nil
	p.add(claim)
	i, err := c.machines.Launch(p.t.Context(), claim, time.Time{})
	p.must(err)
	var stored karpenterv1.NodeClaim
	p.must(p.kube.Get(p.t.Context(), types.NamespacedName{Name: name}, &stored))
	before := stored.DeepCopy()
	stored.Labels = maps.Clone(i.Labels)
	p.must(p.kube.Patch(p.t.Context(), &stored, client.MergeFrom(before)))
	before = stored.DeepCopy()
	stored.Status.ProviderID, stored.Status.ImageID, stored.Status.NodeName = i.ProviderID, i.ImageID, "node-of-"+name
	for _, kind := range []string{"Initialized", "Launched", "Ready", "Registered"} {
		stored.Status.Conditions = append(stored.Status.Conditions, yes(kind, 1))
	}
	p.must(p.kube.Status().Patch(p.t.Context(), &stored, client.MergeFrom(before)))
}

// role gives the class another role, and waits until EC2 knows the profile for it.
func (p *peer) role(generation int64, name string) {
	p.t.Helper()
	p.server.AddRole(name)
	class := p.class("default")
	class.Spec.Role, class.Generation = &name, generation
	p.must(p.kube.Update(p.t.Context(), class))
	p.look()
	p.wait(2 * time.Minute)
	p.look()
	if cond := p.condition("default", ready); cond.Status != "True" {
		p.t.Fatalf("with role %s Ready is %s, %s: %s", name, cond.Status, cond.Reason, cond.Message)
	}
}

// E-05, E-36, E-55, E-57, P-34: Karpenter can take everything back from Joiner, including what Joiner has launched:
// nothing drifts, no machine is ended, and no running machine loses its instance profile, even after a change of the
// role.
func TestKarpenterTakesItsClusterBack(t *testing.T) {
	t.Parallel()
	p := newPeer(t, theirVersion)
	p.claim("web-1", "m5.large")
	c := p.connectNow()
	p.rounds(c, 2)
	p.launched(c, "web-2", "c5.large")
	p.role(2, "others")
	p.launched(c, "web-3", "m5.large") // by a profile that the class's status does not name any more in the end
	p.role(3, "nodes")
	if _, err := c.machines.List(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.rounds(c, 1)
	if n := len(p.server.InstanceProfiles()); n != 3 {
		t.Errorf("there are the profiles %v, want Karpenter's and two of Joiner's", p.server.InstanceProfiles())
	}

	p.resume("6863743673275251833")
	class := p.class("default")
	if !slices.Contains(class.Finalizers, "karpenter.k8s.aws/termination") {
		t.Errorf("the class has finalizers %v", class.Finalizers)
	}
	for _, claim := range p.claims() {
		if reason := p.theyDrift(&claim); reason != "" {
			t.Errorf("%s drifts for %s: annotations %v", claim.Name, reason, claim.Annotations)
		}
		i := p.alive()[claim.Status.ProviderID]
		if !theyList(i) || i.Tags["karpenter.sh/nodeclaim"] != claim.Name || i.Tags["Name"] != claim.Status.NodeName {
			t.Errorf("the machine of %s has the tags %v", claim.Name, i.Tags)
		}
		if i.Tags["kubernetes.io/cluster/"+clusterName] != "owned" ||
			!strings.HasPrefix(i.Template, "karpenter.k8s.aws/") {
			t.Errorf("the machine of %s has the tags %v and the template %s", claim.Name, i.Tags, i.Template)
		}
		if !slices.Contains(claim.Finalizers, "karpenter.sh/termination") {
			t.Errorf("%s has finalizers %v", claim.Name, claim.Finalizers)
		}
	}
	if ids := p.theyEnd(); len(ids) != 0 {
		t.Errorf("Karpenter would end %v", ids)
	}
	if names := p.theyDelete(); len(names) != 0 {
		t.Errorf("Karpenter would delete the profiles %v of running machines", names)
	}
}
