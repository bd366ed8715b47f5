package plug

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/class"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

// changing are the calls that create, change or end something. CreateTags of a machine without its names is one of
// them.
func changing() []string {
	return []string{
		"ec2:TerminateInstances", "ec2:CreateTags", "ec2:DeleteLaunchTemplate", "iam:CreateInstanceProfile",
		"iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile",
	}
}

// rounds runs everything that Joiner does except launches a few times, a minute apart.
func (p *peer) rounds(c *connection, n int) {
	p.t.Helper()
	collector := newCollector(p.link)
	for range n {
		p.look()
		if cond := p.condition("default", ready); cond.Status != metav1.ConditionTrue {
			p.t.Errorf("Ready is %s, %s: %s", cond.Status, cond.Reason, cond.Message)
		}
		if _, err := c.machines.List(p.t.Context()); err != nil {
			p.t.Fatal(err)
		}
		for _, claim := range p.claims() {
			if _, err := newTagger(p.link).Reconcile(p.t.Context(),
				reconcile.Request{NamespacedName: client.ObjectKey{Name: claim.Name}}); err != nil {
				p.t.Fatal(err)
			}
		}
		if _, err := newOffers(p.link).step(p.t.Context(), c); err != nil {
			p.t.Fatal(err)
		}
		if _, err := collector.step(p.t.Context(), c); err != nil {
			p.t.Fatal(err)
		}
		p.wait(time.Minute)
	}
}

// wait moves the controllers' clock.
func (r *region) wait(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.later += d
}

// E-05, E-49, E-55, E-57, P-34: what Karpenter has left is taken over unchanged, whatever version its hashes have:
// each instance belongs to its claim, nothing has drifted, the class stays ready, and no call changes anything.
func TestKarpentersClusterIsTakenOver(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v3", "v4", "v5", "v6"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, version)
			p.claim("web-1", "m5.large")
			p.claim("web-2", "c5.xlarge")
			p.claim("web-3", "m5.large")
			before, was := p.alive(), p.class("default").Status
			p.server.Forget()
			c := p.connectNow()
			p.rounds(c, 3)
			list, err := c.machines.List(t.Context())
			if err != nil || len(list) != len(before) {
				t.Fatalf("listed %v, error %v; want %d instances", list, err, len(before))
			}
			for _, claim := range p.claims() {
				at := slices.IndexFunc(list, func(i provider.Instance) bool {
					return i.ProviderID == claim.Status.ProviderID
				})
				if at < 0 || list[at].ClaimUID != string(claim.UID) || list[at].ClaimName != claim.Name {
					t.Errorf("%s is not listed as the claim of its instance: %+v", claim.Name, list)
				}
				if reason, err := c.machines.Drifted(t.Context(), &claim); reason.Reason != "" || err != nil {
					t.Errorf("%s has drifted for %q, error %v", claim.Name, reason, err)
				}
				p.annotated(&claim)
			}
			p.unchanged(before, was.InstanceProfile)
			now := p.class("default").Status
			if !slices.Equal(now.Subnets, was.Subnets) || !slices.Equal(now.SecurityGroups, was.SecurityGroups) ||
				!slices.EqualFunc(now.AMIs, was.AMIs, sameImage) {
				t.Errorf("the status has become %+v, and was %+v", now, was)
			}
			if len(p.events) != 0 {
				t.Errorf("events %q", p.events)
			}
		})
	}
}

func sameImage(a, b awsv1.AMI) bool {
	return a.ID == b.ID && a.Name == b.Name && a.Deprecated == b.Deprecated
}

// annotated checks that a claim has the class's hash as we compute it, beside Karpenter's annotations.
func (p *peer) annotated(claim *karpenterv1.NodeClaim) {
	p.t.Helper()
	hash, err := class.Hash(p.class("default"))
	p.must(err)
	if claim.Annotations[class.HashKey] != hash || claim.Annotations[class.HashVersionKey] != class.HashVersion {
		p.t.Errorf("%s has annotations %v, want hash %s", claim.Name, claim.Annotations, hash)
	}
	for key, want := range map[string]string{
		profileKey: peerProfile, taggedKey: "true", namedKey: "true", "karpenter.sh/nodepool-hash": "1",
		"karpenter.sh/nodepool-hash-version": "v3",
	} {
		if claim.Annotations[key] != want {
			p.t.Errorf("%s has %s=%q, want %q", claim.Name, key, claim.Annotations[key], want)
		}
	}
}

// unchanged checks that nothing was launched, ended, made or tagged.
func (p *peer) unchanged(before map[string]ec2test.Instance, profile string) {
	p.t.Helper()
	counts := p.server.Counts()
	for _, action := range changing() {
		if counts[action] != 0 {
			p.t.Errorf("%s was called %d times", action, counts[action])
		}
	}
	after := p.alive()
	if len(after) != len(before) {
		p.t.Errorf("%d instances run, want %d", len(after), len(before))
	}
	if got := p.class("default").Status.InstanceProfile; got != profile ||
		p.server.InstanceProfiles()[profile] != "nodes" {
		p.t.Errorf("the class has profile %s; there are %v", got, p.server.InstanceProfiles())
	}
	if templates := p.server.LaunchTemplates(); !slices.Contains(templates, peerTemplate) {
		p.t.Errorf("templates %v, want Karpenter's among them", templates)
	}
}

// E-56: Karpenter's launch template is deleted after an hour without use, which affects no instance. Its instance
// profile stays as long as the class exists, since instances have their role from it, even if the class has another
// role by then.
func TestWhatKarpenterMadeGoesWhenNobodyNeedsIt(t *testing.T) {
	t.Parallel()
	p := newPeer(t, "v6")
	p.claim("web-1", "m5.large")
	before := p.alive()
	c := p.connectNow()
	p.rounds(c, 1)
	p.role(2, "others")
	if got := p.class("default").Status.InstanceProfile; got != resolve.ProfileName(clusterName, "us-east-1",
		"uid-of-default", "others") {
		t.Errorf("with another role the class has profile %s", got)
	}
	collector := newCollector(p.link)
	for range 4 {
		p.wait(31 * time.Minute)
		if _, err := collector.step(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if templates := p.server.LaunchTemplates(); slices.Contains(templates, peerTemplate) {
		t.Errorf("templates %v, want Karpenter's to be gone", templates)
	}
	if p.server.InstanceProfiles()[peerProfile] != "nodes" || len(p.alive()) != len(before) {
		t.Errorf("profiles %v, instances %v: a running instance has lost its own", p.server.InstanceProfiles(),
			p.alive())
	}
}

// E-56: if somebody takes the finalizer off a class while its claims run, their machines keep their profile: as long
// as a claim names it, or a listed machine has it.
func TestAProfileStaysWhileMachinesHaveIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ noted, listed, stays bool }{
		"a claim names it":     {noted: true, stays: true},
		"a machine has it":     {listed: true, stays: true},
		"a claim without note": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeer(t, "v6")
			p.claim("web-1", "m5.large")
			connected := p.connectNow()
			if !c.noted {
				claim := p.claims()[0]
				delete(claim.Annotations, profileKey)
				p.must(p.kube.Update(t.Context(), &claim))
			}
			if c.listed {
				_, err := connected.machines.List(t.Context())
				p.must(err)
			}
			class := p.class("default")
			class.Finalizers = nil
			p.must(p.kube.Update(t.Context(), class))
			p.must(p.kube.Delete(t.Context(), class))
			collector := newCollector(p.link)
			for range 3 {
				p.wait(31 * time.Minute)
				_, err := collector.step(t.Context(), connected)
				p.must(err)
			}
			if stays := p.server.InstanceProfiles()[peerProfile] != ""; stays != c.stays {
				t.Errorf("the profile stays: %t, want %t", stays, c.stays)
			}
		})
	}
}

// E-38: a claim that Karpenter was about to launch when it was stopped: before the node has registered, the instance
// names no claim. Joiner launches again; the unknown instance counts as an orphan, and is collected.
func TestALaunchThatKarpenterDidNotFinish(t *testing.T) {
	t.Parallel()
	p := newPeer(t, "v6")
	waits := p.bare("web-1", "m5.large")
	p.add(waits)
	lost := p.launch("m5.large", 10*time.Minute)
	p.claim("web-2", "m5.large")
	c := p.connectNow()
	p.rounds(c, 1)
	brought, err := c.machines.Launch(t.Context(), waits, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.machines.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	owners := map[string]string{}
	for _, i := range list {
		owners[i.ProviderID] = i.ClaimUID + i.ClaimName
	}
	if len(list) != 3 || owners[brought.ProviderID] != "uid-of-web-1web-1" {
		t.Errorf("listed %v; want three, and %s for web-1", owners, brought.ProviderID)
	}
	for id, owner := range owners {
		if (owner == "") != strings.HasSuffix(id, "/"+lost) {
			t.Errorf("%s is of %q; want nobody for %s alone", id, owner, lost)
		}
	}
}
