package conformance_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
)

// way is one way in which a cluster differs from its policy.
type way struct {
	name   string
	do     func(world)
	object string // "KIND NAME" of the object that is told
	state  conformance.State
	cause  conformance.Cause
	field  string // how the field begins
}

const (
	wrong     = conformance.NotConforming
	replacing = conformance.Replacing
	unknown   = conformance.NotKnown
)

// NodePools.
func poolWays() []way {
	entries := func(change func([]entry) []entry) func(world) {
		return func(w world) {
			w.pool.Spec.Template.Spec.Requirements = change(w.pool.Spec.Template.Spec.Requirements)
		}
	}
	const field = "spec.template.spec.requirements"
	by := conformance.WrittenByOther
	return []way{
		{"an entry of the policy taken out", entries(func(l []entry) []entry { return l[1:] }), "NodePool p", wrong,
			by, field},
		{"an exclusion taken out", entries(func(l []entry) []entry { return slices.Delete(l, 1, 2) }), "NodePool p",
			wrong, by, field},
		{"a zone by a name that Karpenter does not read, in a pool", entries(func(l []entry) []entry {
			return append(slices.Delete(l, 1, 2), in(gkeZone, "z1"))
		}), "NodePool p", wrong, by, field},
		{"the user's entries only", entries(func(l []entry) []entry { return l[3:] }), "NodePool p", wrong, by, field},
		{"no entries", entries(func([]entry) []entry { return nil }), "NodePool p", wrong, by, field},
		{"a value too many",
			entries(func(l []entry) []entry { return []entry{in(instanceType, "a", "d"), l[1], l[2]} }),
			"NodePool p", wrong, by, field},
		{"minValues lowered", entries(func(l []entry) []entry { l[0].MinValues = new(1); return l }), "NodePool p",
			wrong, by, field},
		{"an entry that cannot be read", entries(func(l []entry) []entry {
			return append(l, entry{Key: team, Operator: "Perhaps", Values: []string{"red"}})
		}), "NodePool p", wrong, conformance.IncompatibleRequirements, field},
		{"a label outside of the policy", func(w world) { w.pool.Spec.Template.ObjectMeta.Labels[team] = "green" },
			"NodePool p", wrong, conformance.IncompatibleRequirements, field},
		{"another node class", func(w world) { w.pool.Spec.Template.Spec.NodeClassRef.Name = "rogue" },
			"NodePool p", wrong, conformance.NodeClassUnmanaged, "spec.template.spec.nodeClassRef"},
		{"a kind of class that nobody manages",
			func(w world) { w.pool.Spec.Template.Spec.NodeClassRef.Kind = "Rogue" },
			"NodePool p", wrong, conformance.NodeClassUnmanaged, "spec.template.spec.nodeClassRef"},
		{"altered on its way", func(w world) {
			w.pool.Spec.Template.Spec.Requirements = nil
			w.wrote("NodePool", "p", func(r *conformance.Written) { r.Altered = true })
		}, "NodePool p", wrong, conformance.AlteredOnWrite, field},
		{"too many entries", func(w world) {
			w.pool.Spec.Template.Spec.Requirements = nil
			w.wrote("NodePool", "p", func(r *conformance.Written) { r.Failed = conformance.TooManyRequirements })
		}, "NodePool p", wrong, conformance.TooManyRequirements, field},
		{"the API server refuses it", func(w world) {
			w.pool.Spec.Template.Spec.Requirements = nil
			w.wrote("NodePool", "p", func(r *conformance.Written) { r.Failed = conformance.OperatorError })
		}, "NodePool p", wrong, conformance.OperatorError, field},
		{"made in a gap", func(w world) { w.forgets("NodePool", "p") }, "NodePool p", wrong, conformance.Foreign, ""},
		{"made anew by somebody", func(w world) { w.pool.UID = "another"; w.claim.OwnerReferences[0].UID = "another" },
			"NodePool p", wrong, conformance.Foreign, ""},
		{"older than the protection", func(w world) {
			w.forgets("NodePool", "p")
			w.pool.CreationTimestamp = metav1.Time{Time: at(protected - 1)}
			w.pool.Spec.Template.Spec.Requirements = nil
		}, "NodePool p", wrong, conformance.Legacy, field},
		{"not written for the present policy yet", func(w world) {
			w.Memory.PolicySince = w.Now.Add(-1)
			w.pool.Spec.Template.Spec.Requirements = nil
			w.wrote("NodePool", "p", func(r *conformance.Written) { r.Policy = 2 })
			w.claim.CreationTimestamp, w.node.CreationTimestamp = metav1.Time{Time: w.Now}, metav1.Time{Time: w.Now}
		}, "NodePool p", replacing, conformance.PolicyChanged, field},
		{"never written for the present policy", func(w world) {
			w.pool.Spec.Template.Spec.Requirements = nil
			w.wrote("NodePool", "p", func(r *conformance.Written) { r.Policy = 2 })
		}, "NodePool p", wrong, conformance.OperatorError, field},
	}
}

// EC2NodeClasses.
func classWays() []way {
	by := conformance.WrittenByOther
	root := func(change func(*awsv1.BlockDevice)) func(world) {
		return func(w world) { change(w.class.Spec.BlockDeviceMappings[0].EBS) }
	}
	// The operator itself made it so: only the policy tells that it is wrong.
	own := func(do func(world)) func(world) {
		return func(w world) {
			do(w)
			w.wrote("EC2NodeClass", "c", func(r *conformance.Written) {
				r.Class, r.Policy = w.class.Spec.DeepCopy(),
					2
			})
		}
	}
	return []way{
		{"another image", func(w world) { w.class.Spec.AMISelectorTerms[0].ID = "ami-2" },
			"EC2NodeClass c", wrong, by, "spec.amiSelectorTerms[0].id"},
		{"another profile", func(w world) { w.class.Spec.InstanceProfile = new("admin") }, "EC2NodeClass c", wrong, by,
			"spec.instanceProfile"},
		{"other user data", func(w world) { w.class.Spec.UserData = new("curl evil") }, "EC2NodeClass c", wrong, by,
			"spec.userData"},
		{"a group added", func(w world) {
			w.class.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{ID: "sg-1"}}
		}, "EC2NodeClass c", wrong, by, "spec.securityGroupSelectorTerms"},
		{"a tag", func(w world) { w.class.Spec.Tags["team"] = "blue" }, "EC2NodeClass c", wrong, by, "spec.tags.team"},
		{"a smaller root volume", root(func(d *awsv1.BlockDevice) { d.VolumeSize = new(resource.MustParse("10Gi")) }),
			"EC2NodeClass c", wrong, by, "spec.blockDeviceMappings[0].ebs.volumeSize"},
		{"a policy's root volume that was never written: size",
			own(root(func(d *awsv1.BlockDevice) { d.VolumeSize = nil })),
			"EC2NodeClass c", wrong, conformance.OperatorError, "spec.blockDeviceMappings[0].ebs.volumeSize"},
		{"type", own(root(func(d *awsv1.BlockDevice) { d.VolumeType = new("gp2") })),
			"EC2NodeClass c", wrong, conformance.OperatorError, "spec.blockDeviceMappings[0].ebs.volumeType"},
		{"encryption", own(root(func(d *awsv1.BlockDevice) { d.Encrypted = new(false) })),
			"EC2NodeClass c", wrong, conformance.OperatorError, "spec.blockDeviceMappings[0].ebs.encrypted"},
		{"iops", own(root(func(d *awsv1.BlockDevice) { d.IOPS = new(int64(1)) })),
			"EC2NodeClass c", wrong, conformance.OperatorError, "spec.blockDeviceMappings[0].ebs.iops"},
		{"throughput", own(root(func(d *awsv1.BlockDevice) { d.Throughput = nil })),
			"EC2NodeClass c", wrong, conformance.OperatorError, "spec.blockDeviceMappings[0].ebs.throughput"},
		{"two root volumes", own(func(w world) {
			w.class.Spec.BlockDeviceMappings = append(w.class.Spec.BlockDeviceMappings,
				w.class.Spec.BlockDeviceMappings[0])
		}), "EC2NodeClass c", wrong, conformance.OperatorError, "spec.blockDeviceMappings[1]"},
		{"no root volume", own(func(w world) { w.class.Spec.BlockDeviceMappings = nil }),
			"EC2NodeClass c", wrong, conformance.OperatorError, "spec.blockDeviceMappings"},
		{"a class altered on its way", func(w world) {
			w.wrote("EC2NodeClass", "c", func(r *conformance.Written) { r.Altered, r.Class = true, nil })
		}, "EC2NodeClass c", wrong, conformance.AlteredOnWrite, "spec"},
		{"a release that is not there", func(w world) {
			w.wrote("EC2NodeClass", "c", func(r *conformance.Written) {
				r.Failed, r.Class = conformance.VersionNotSupported, nil
			})
		}, "EC2NodeClass c", wrong, conformance.VersionNotSupported, "spec"},
		{"a class made in a gap", func(w world) { w.class.UID = "another" }, "EC2NodeClass c", wrong,
			conformance.Foreign, ""},
		{"older than the protection, with an image of its own", func(w world) {
			w.class.UID, w.class.CreationTimestamp = "another", metav1.Time{Time: at(protected - 1)}
			w.class.Spec.AMISelectorTerms[0].ID = "ami-2"
		}, "EC2NodeClass c", wrong, conformance.Legacy, "spec.amiSelectorTerms[0]"},
		{"older than the protection, with a profile of its own", func(w world) {
			w.class.UID, w.class.CreationTimestamp = "another", metav1.Time{Time: at(protected - 1)}
			w.class.Spec.InstanceProfile = nil
		}, "EC2NodeClass c", wrong, conformance.Legacy, "spec.instanceProfile"},
	}
}

// NodeClaims and Nodes.
func machineWays() []way {
	old := func(w world) {
		w.claim.CreationTimestamp, w.node.CreationTimestamp = metav1.Time{Time: at(changed - 1)},
			metav1.Time{Time: at(changed - 1)}
	}
	asks := func(e entry) func(world) { return func(w world) { w.claim.Spec.Requirements[0] = e } }
	both := func(key, value string) func(world) {
		return func(w world) { w.claim.Labels[key], w.node.Labels[key] = value, value }
	}
	hand := conformance.HandMade
	return []way{
		{"no owner", func(w world) { w.claim.OwnerReferences = nil }, "NodeClaim k", wrong, hand,
			"metadata.ownerReferences"},
		{"an owner of that name and another uid", func(w world) { w.claim.OwnerReferences[0].UID = "forged" },
			"NodeClaim k", wrong, hand, "metadata.ownerReferences"},
		{"another type", asks(in(instanceType, "d")), "NodeClaim k", wrong, hand, "spec.requirements"},
		{"more types", asks(in(instanceType, "b", "d")), "NodeClaim k", wrong, hand, "spec.requirements"},
		{"any type but some", asks(entry{Key: instanceType, Operator: "NotIn", Values: []string{"d"}}),
			"NodeClaim k", wrong, hand, "spec.requirements"},
		{"a label that must exist is to be absent", asks(entry{Key: team, Operator: "DoesNotExist"}),
			"NodeClaim k", wrong, hand, "spec.requirements"},
		{"silent about a label that the policy restricts", func(w world) {
			w.claim.Spec.Requirements = w.claim.Spec.Requirements[1:]
			delete(w.claim.Labels, instanceType)
		}, "NodeClaim k", wrong, hand, "spec.requirements"},
		{"a zone by a name that Karpenter does not read", func(w world) {
			for _, l := range [][]entry{w.Policy.Spec.NodePoolDefaults.Requirements,
				w.pool.Spec.Template.Spec.Requirements} {
				l[1] = in(zone, "z1", "z2")
			}
			w.claim.Spec.Requirements[1] = in(gkeZone, "z1")
			delete(w.claim.Labels, zone)
			w.claim.Labels[gkeZone] = "z1"
		}, "NodeClaim k", wrong, hand, "spec.requirements"},
		{"an excluded zone", func(w world) { w.claim.Spec.Requirements[1] = in(zone, "z9") }, "NodeClaim k", wrong,
			hand, "spec.requirements"},
		{"outside, and older than the policy", func(w world) { old(w); asks(in(instanceType, "d"))(w) },
			"NodeClaim k", replacing, conformance.PolicyChanged, "spec.requirements"},
		{"outside, older than the policy, and its time is over", func(w world) {
			old(w)
			asks(in(instanceType, "d"))(w)
			w.Now = at(changed).Add(24 * time.Hour)
		}, "NodeClaim k", wrong, conformance.PolicyChanged, "spec.requirements"},
		{"outside, and older than the process", func(w world) {
			w.Memory.PolicySince = time.Time{}
			w.claim.CreationTimestamp = metav1.Time{Time: at(began - 1)}
			asks(in(instanceType, "d"))(w)
		}, "NodeClaim k", wrong, conformance.Unclear, "spec.requirements"},
		{"a claim of another node class", func(w world) {
			w.claim.Spec.NodeClassRef = &karpenterv1.NodeClassReference{
				Group: awsv1.Group, Kind: awsv1.EC2NodeClassKind, Name: "rogue",
			}
		}, "NodeClaim k", wrong, conformance.NodeClassUnmanaged, "spec.nodeClassRef"},
		{"a claim with another image", func(w world) { w.claim.Status.ImageID = "ami-2" },
			"NodeClaim k", wrong, conformance.CloudDiffers, "status.imageID"},
		{"an image from before the process", func(w world) {
			w.claim.Status.ImageID = "ami-0"
			w.claim.CreationTimestamp = metav1.Time{Time: at(began - 1)}
		}, "NodeClaim k", unknown, conformance.Unclear, "status.imageID"},
		{"the cloud gave another type", both(instanceType, "d"),
			"NodeClaim k", wrong, conformance.CloudDiffers, "metadata.labels[" + instanceType + "]"},
		{"the same, of the node", both(instanceType, "d"), "Node n", wrong, conformance.CloudDiffers,
			"metadata.labels[" + instanceType + "]"},
		{"the cloud gave an excluded zone", both(zone, "z9"), "NodeClaim k", wrong, conformance.CloudDiffers,
			"metadata.labels[" + zone + "]"},
		{"somebody wrote the claim's label", func(w world) { w.claim.Labels[instanceType] = "d" },
			"NodeClaim k", wrong, conformance.WrittenByOther, "metadata.labels[" + instanceType + "]"},
		{"somebody wrote the node's label", func(w world) { w.node.Labels[instanceType] = "d" },
			"Node n", wrong, conformance.WrittenByOther, "metadata.labels[" + instanceType + "]"},
		{"somebody took the node's label off", func(w world) { delete(w.node.Labels, team) },
			"Node n", wrong, conformance.WrittenByOther, "metadata.labels[" + team + "]"},
		{"a node older than the policy",
			func(w world) { old(w); asks(in(instanceType, "d"))(w); both(instanceType, "d")(w) },
			"Node n", replacing, conformance.PolicyChanged, "metadata.labels[" + instanceType + "]"},
		{"a node without a claim", func(w world) { w.Objects.Claims = nil }, "Node n", wrong, hand, "spec.providerID"},
		{"a node that poses as another machine", func(w world) { w.node.Spec.ProviderID = "aws:///z1/i-2" },
			"Node n", wrong, hand, "spec.providerID"},
		{"a node that has just come", func(w world) {
			w.Objects.Claims = nil
			w.node.CreationTimestamp = metav1.Time{Time: w.Now}
		}, "Node n", unknown, conformance.Unclear, "spec.providerID"},
	}
}

// the policy itself, and what keeps it in force.
func policyWays() []way {
	return []way{
		{"not valid", func(w world) { w.State = conformance.PolicyIsBad }, "AutoNodePolicy default", unknown,
			conformance.PolicyInvalid, ""},
		{"not to be read", func(w world) { w.State = conformance.PolicyIsUnread },
			"AutoNodePolicy default", unknown, conformance.PolicyUnreadable, ""},
		{"not protected", func(w world) { w.Memory.Unprotected = true }, "AutoNodePolicy default", wrong,
			conformance.ProtectionMissing, ""},
	}
}

// each way to differ is found, with kind, name, cause and field. What is found beside it, the texts and
// the counts stand in testdata/ways.txt.
func TestA19_EachWayToDifferIsFound(t *testing.T) {
	t.Parallel()
	if report := conformance.Look(conforming()); len(report.Findings) > 0 {
		t.Fatalf("the world that conforms does not: %+v", report.Findings)
	}
	ways := slices.Concat(poolWays(), classWays(), machineWays(), policyWays())
	if len(ways) < 40 {
		t.Errorf("%d ways: want 40 at least", len(ways))
	}
	for _, way := range ways {
		report := way.look()
		if !slices.ContainsFunc(report.Findings, func(f conformance.Finding) bool {
			return f.Kind+" "+f.Name == way.object && f.State == way.state && f.Cause == way.cause &&
				strings.HasPrefix(f.Field, way.field)
		}) {
			t.Errorf("%s: want %s %s %s at %q, found %+v", way.name, way.object, way.state, way.cause, way.field,
				report.Findings)
		}
	}
}

// look is what is found in a world that differs in this way.
func (w way) look() conformance.Report {
	made := newWorld()
	w.do(made)
	return conformance.Look(*made.Input)
}

func TestA19_AllThatIsFound(t *testing.T) {
	t.Parallel()
	ways := map[string]way{}
	for _, way := range slices.Concat(poolWays(), classWays(), machineWays(), policyWays(), furtherWays()) {
		if _, twice := ways[way.name]; twice {
			t.Errorf("two ways have the name %q", way.name)
		}
		ways[way.name] = way
	}
	datadriven.RunTest(t, "testdata/ways.txt", func(t *testing.T, d *datadriven.TestData) string {
		way, found := ways[d.Input]
		if !found {
			t.Fatalf("%s: there is no way %q", d.Pos, d.Input)
		}
		delete(ways, d.Input)
		report := way.look()
		var text strings.Builder
		for _, f := range report.Findings {
			fmt.Fprintf(&text, "%s %s %s %s, %s: %s\n", f.Kind, f.Name, f.State, f.Cause, f.Field, f.Message)
		}
		for _, c := range report.Counts {
			fmt.Fprintf(&text, "%d %s %s %s %s; ", c.Objects, c.Kind, c.State, c.Cause, c.Party)
		}
		said := report.Condition()
		fmt.Fprintf(&text, "\n%d objects; %s %s %s\n", report.Objects, said.Status, said.Reason, said.Message)
		return text.String()
	})
	for name := range ways {
		t.Errorf("testdata/ways.txt lacks %q: write its name there, and run the test with -rewrite", name)
	}
}

// after a restart, when nothing is remembered, no party is blamed for what the operator has not looked at yet.
func TestA21_AFreshProcessBlamesNobody(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.Memory = conformance.Memory{Began: w.Now.Add(-1), Protected: at(protected)}
	w.pool.Spec.Template.Spec.Requirements = nil
	w.claim.Spec.Requirements = nil
	w.claim.Status.ImageID = "ami-9"
	report := conformance.Look(*w.Input)
	if len(report.Findings) == 0 {
		t.Fatal("nothing found: the row proves nothing")
	}
	for _, f := range report.Findings {
		if f.Cause.Party() != conformance.Nobody {
			t.Errorf("%s is blamed: %+v", f.Cause.Party(), f)
		}
	}
}

// what goes, what others made, and what is not there are no findings.
func TestA19_WhatIsNotJudged(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(world){
		"being deleted": func(w world) {
			gone := metav1.Time{Time: w.Now}
			w.pool.Spec.Template.Spec.Requirements, w.claim.OwnerReferences, w.class.Spec.InstanceProfile = nil, nil,
				nil
			w.node.Labels[instanceType] = "d"
			w.pool.DeletionTimestamp, w.class.DeletionTimestamp, w.claim.DeletionTimestamp,
				w.node.DeletionTimestamp = &gone, &gone, &gone, &gone
		},
		"a node of a CAPI NodePool": func(w world) {
			other := corev1.Node{ObjectMeta: meta("capi", made), Spec: corev1.NodeSpec{ProviderID: "aws:///z1/i-9"}}
			w.Objects.Nodes = append(w.Objects.Nodes, other)
		},
		"no policy": func(w world) {
			w.Policy = nil
			w.claim.Spec.Requirements[0] = in(instanceType, "d")
		},
		"a class of KWOK": func(w world) {
			w.pool.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh",
				Kind: "KWOKNodeClass", Name: "any"}
		},
		"labels before the node registers": func(w world) {
			w.node.Labels = nil
		},
		"a pool that contradicts the policy on a label of every type": func(w world) {
			w.pool.Spec.Template.Spec.Requirements = append(w.pool.Spec.Template.Spec.Requirements,
				in(instanceType, "d"))
		},
	} {
		w := newWorld()
		do(w)
		if report := conformance.Look(*w.Input); len(report.Findings) > 0 {
			t.Errorf("%s: %+v", name, report.Findings)
		}
	}
}
