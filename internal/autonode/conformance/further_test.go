package conformance_test

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
)

// furtherWays are the borders of what is judged; what is found, if anything, stands in testdata/ways.txt.
func furtherWays() []way {
	var all []way
	add := func(name string, do func(world)) { all = append(all, way{name: name, do: do}) }
	bordersOfTime(add)
	bordersOfPools(add)
	bordersOfClasses(add)
	bordersOfMachines(add)
	severalFindings(add)
	return all
}

// severalFindings of one object, and of two: which cause is counted, and which objects are named.
func severalFindings(add func(string, func(world))) {
	replaced := func(w world) {
		w.claim.Spec.Requirements[0] = in(instanceType, "d")
		older(w.claim, changed-1)
	}
	add("a claim that is being replaced, with a label that somebody wrote", func(w world) {
		replaced(w)
		w.claim.Labels[zone] = "z9"
	})
	add("a claim that is being replaced, and a pool that somebody wrote", func(w world) {
		replaced(w)
		w.pool.Spec.Template.Spec.Requirements = w.pool.Spec.Template.Spec.Requirements[1:]
	})
	add("a claim with two causes, the first by name at the first field", func(w world) {
		w.claim.OwnerReferences = nil
		rogue := *w.claim.Spec.NodeClassRef
		rogue.Name = "rogue"
		w.claim.Spec.NodeClassRef = &rogue
	})
	add("a claim with two causes, the first by name at the last field", func(w world) {
		w.claim.Labels[zone], w.claim.Status.ImageID = "z9", "ami-2"
	})
}

// mayBeAbsent makes the policy restrict a label that nodes need not have.
func mayBeAbsent(w world) {
	excluded := entry{Key: gpus, Operator: "NotIn", Values: []string{"8"}}
	w.Policy.Spec.NodePoolDefaults.Requirements = append(w.Policy.Spec.NodePoolDefaults.Requirements, excluded)
	w.pool.Spec.Template.Spec.Requirements = append(w.pool.Spec.Template.Spec.Requirements, excluded)
}

func older(object metav1.Object, minutes int) {
	object.SetCreationTimestamp(metav1.Time{Time: at(minutes)})
}

func bordersOfTime(add func(string, func(world))) {
	outside := func(w world) { w.claim.Spec.Requirements[0] = in(instanceType, "d") }
	add("a claim as old as the policy and the time to settle", func(w world) { outside(w); older(w.claim, changed+1) })
	add("a claim a minute older than that", func(w world) { outside(w); older(w.claim, changed) })
	add("a policy that was never changed, and a claim from before it", func(w world) {
		outside(w)
		w.Policy.Generation, w.Memory.PolicySince = 1, time0()
		older(w.Policy, 150)
		older(w.claim, 150)
	})
	add("a policy that was never changed, and a claim from after it", func(w world) {
		outside(w)
		w.Policy.Generation, w.Memory.PolicySince = 1, time0()
		older(w.Policy, 150)
	})
	add("a policy that was changed before the process, and a claim from after that", func(w world) {
		outside(w)
		w.Memory.PolicySince = time0()
	})
	add("a process that has just begun, and a pool that it has not looked at", func(w world) {
		w.Memory.Began = w.Now
		w.forgets("NodePool", "p")
	})
	add("a process that began a minute ago, and a pool that it has not looked at", func(w world) {
		w.Memory.Began = at(now - 1)
		w.forgets("NodePool", "p")
	})
	add("a process that has just begun, and a pool written for another generation", func(w world) {
		w.Memory.Began, w.Memory.PolicySince = w.Now, time0()
		w.wrote("NodePool", "p", func(r *conformance.Written) { r.Policy = 2 })
		w.pool.Spec.Template.Spec.Requirements = nil
	})
	add("a policy of a minute ago, and a pool written for another generation", func(w world) {
		w.Memory.PolicySince = at(now - 1)
		w.wrote("NodePool", "p", func(r *conformance.Written) { r.Policy = 2 })
		w.pool.Spec.Template.Spec.Requirements = nil
	})
	add("a pool that nobody has looked at, and a guest that was never protected", func(w world) {
		w.Memory.Protected = time0()
		w.forgets("NodePool", "p")
		w.pool.Spec.Template.Spec.Requirements = nil
	})
	add("a pool that came ten seconds after the protection", func(w world) {
		w.Memory.Protected = w.pool.CreationTimestamp.Add(-10 * time.Second)
		w.forgets("NodePool", "p")
	})
	add("a pool that came eleven seconds after the protection", func(w world) {
		w.Memory.Protected = w.pool.CreationTimestamp.Add(-11 * time.Second)
		w.forgets("NodePool", "p")
	})
	add("a pool from before the protection that conforms", func(w world) {
		older(w.pool, protected-1)
		w.forgets("NodePool", "p")
	})
	add("a node without a claim, of a minute ago", func(w world) {
		w.Objects.Claims = nil
		older(w.node, now-1)
	})
	add("a process that began 59 seconds ago, and a pool outside that it has not looked at", func(w world) {
		w.Memory.Began = w.Now.Add(-59 * time.Second)
		w.forgets("NodePool", "p")
		w.pool.Spec.Template.Spec.Requirements = nil
	})
	add("a claim outside, 24 hours less a second after the policy was changed", func(w world) {
		outside(w)
		older(w.claim, changed-1)
		w.Now = at(changed).Add(24*time.Hour - time.Second)
	})
	add("a first policy that came into force after it was made, and a claim from between", func(w world) {
		outside(w)
		w.Policy.Generation, w.Memory.PolicySince = 1, at(155)
		older(w.Policy, 150)
		older(w.claim, 153)
	})
	add("no objects but a policy that is not valid", func(w world) {
		w.Objects, w.State = conformance.Objects{}, conformance.PolicyIsBad
	})
}

func bordersOfPools(add func(string, func(world))) {
	exists := func(op corev1.NodeSelectorOperator) func(world) {
		return func(w world) {
			w.pool.Spec.Template.Spec.Requirements = append(w.pool.Spec.Template.Spec.Requirements,
				entry{Key: team, Operator: op, Values: []string{"red"}})
		}
	}
	add("Exists with values, which Karpenter ignores", exists("Exists"))
	add("DoesNotExist with values, which Karpenter ignores", exists("DoesNotExist"))
	add("an alias of the instance type", func(w world) {
		w.pool.Spec.Template.Spec.Requirements[0].Key = corev1.LabelInstanceType
	})
	add("DoesNotExist with values, for a label that may be absent", func(w world) {
		mayBeAbsent(w)
		w.pool.Spec.Template.Spec.Requirements = append(w.pool.Spec.Template.Spec.Requirements,
			entry{Key: gpus, Operator: "DoesNotExist", Values: []string{"1"}})
	})
	add("a pool that launches nothing, without an entry of the policy", func(w world) {
		w.pool.Spec.Template.Spec.Requirements = []entry{w.pool.Spec.Template.Spec.Requirements[0],
			w.pool.Spec.Template.Spec.Requirements[2], in(instanceType, "d")}
	})
	add("a contradiction in a pool that was altered", func(w world) {
		w.pool.Spec.Template.ObjectMeta.Labels[team] = "green"
		w.wrote("NodePool", "p", func(r *conformance.Written) { r.Altered = true })
	})
	add("a contradiction in a pool that could not be written", func(w world) {
		w.pool.Spec.Template.ObjectMeta.Labels[team] = "green"
		w.wrote("NodePool", "p", func(r *conformance.Written) { r.Failed = conformance.TooManyRequirements })
	})
	add("a contradiction in a pool of somebody else", func(w world) {
		w.pool.Spec.Template.ObjectMeta.Labels[team] = "green"
		w.forgets("NodePool", "p")
	})
	add("no node class", func(w world) { w.pool.Spec.Template.Spec.NodeClassRef = nil })
	add("a KWOKNodeClass of another group", func(w world) {
		w.pool.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: "example.com",
			Kind: "KWOKNodeClass", Name: "c"}
	})
	add("another kind of the group of KWOK", func(w world) {
		w.pool.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: "karpenter.kwok.sh",
			Kind: "Other", Name: "c"}
	})
	add("an EC2NodeClass of another group", func(w world) {
		w.pool.Spec.Template.Spec.NodeClassRef = &karpenterv1.NodeClassReference{Group: "example.com",
			Kind: awsv1.EC2NodeClassKind, Name: "c"}
	})
	add("a class that could never be written", func(w world) {
		w.wrote("EC2NodeClass", "c", func(r *conformance.Written) {
			r.Class, r.Failed = nil,
				conformance.BootstrapMissing
		})
	})
	add("a class that is written over on its way", func(w world) {
		w.wrote("EC2NodeClass", "c", func(r *conformance.Written) { r.Class, r.Altered = nil, true })
	})
	add("a class that has not been looked at, in a process that has just begun", func(w world) {
		w.Memory.Began = w.Now
		w.forgets("EC2NodeClass", "c")
	})
	add("values that just fit into a message", func(w world) {
		fits := strings.Repeat("x", 200-len(instanceType+"=")) // what a message shows at most
		w.pool.Spec.Template.Spec.Requirements = []entry{in(instanceType, fits), in(zone, "z1"), in(team, "red")}
	})
	add("a long list of values", func(w world) {
		many := make([]string, 100)
		for i := range many {
			many[i] = strings.Repeat("x", i%7) + string(rune('a'+i%26)) + string(rune('a'+i/26))
		}
		w.pool.Spec.Template.Spec.Requirements = []entry{in(instanceType, many...), in(zone, "z1"), in(team, "red")}
	})
}

func bordersOfClasses(add func(string, func(world))) {
	own := func(w world) {
		w.wrote("EC2NodeClass", "c", func(r *conformance.Written) { r.Class = w.class.Spec.DeepCopy() })
	}
	add("a policy without a root volume", func(w world) {
		w.Policy.Spec.EC2NodeClassDefaults.RootVolume = nil
		w.class.Spec.BlockDeviceMappings = nil
		own(w)
	})
	add("a policy that says nothing of any part of the root volume", func(w world) {
		w.Policy.Spec.EC2NodeClassDefaults.RootVolume = &hypershiftv1beta1.RootVolume{}
		*w.class.Spec.BlockDeviceMappings[0].EBS = awsv1.BlockDevice{}
		own(w)
	})
	add("a type in capitals",
		func(w world) { w.class.Spec.BlockDeviceMappings[0].EBS.VolumeType = new("GP3"); own(w) })
	add("no type", func(w world) { w.class.Spec.BlockDeviceMappings[0].EBS.VolumeType = nil; own(w) })
	add("no encryption", func(w world) { w.class.Spec.BlockDeviceMappings[0].EBS.Encrypted = nil; own(w) })
	add("no iops", func(w world) { w.class.Spec.BlockDeviceMappings[0].EBS.IOPS = nil; own(w) })
	add("another throughput",
		func(w world) { w.class.Spec.BlockDeviceMappings[0].EBS.Throughput = new(int64(1)); own(w) })
	add("another size", func(w world) {
		w.class.Spec.BlockDeviceMappings[0].EBS.VolumeSize.Add(*w.class.Spec.BlockDeviceMappings[0].EBS.VolumeSize)
		own(w)
	})
	add("a second disk before the root", func(w world) {
		second := *w.class.Spec.BlockDeviceMappings[0].DeepCopy()
		second.RootVolume, second.EBS.VolumeSize = new(false), nil
		third := *second.DeepCopy()
		third.RootVolume = nil
		w.class.Spec.BlockDeviceMappings = append([]awsv1.BlockDeviceMapping{second, third},
			w.class.Spec.BlockDeviceMappings...)
		w.class.Spec.BlockDeviceMappings[2].EBS.IOPS = nil
		own(w)
	})
	add("a field added, and one taken away", func(w world) {
		w.class.Spec.Context, w.class.Spec.UserData = new("a"), nil
	})
	add("a block added", func(w world) { w.class.Spec.Kubelet = &awsv1.KubeletConfiguration{MaxPods: new(int32(5))} })
	add("a block taken away", func(w world) {
		w.class.Spec.Kubelet = &awsv1.KubeletConfiguration{MaxPods: new(int32(5))}
		own(w)
		w.class.Spec.Kubelet = nil
	})
	add("one image less", func(w world) {
		w.class.Spec.AMISelectorTerms = append(w.class.Spec.AMISelectorTerms, awsv1.AMISelectorTerm{ID: "ami-2"})
		own(w)
		w.class.Spec.AMISelectorTerms = w.class.Spec.AMISelectorTerms[:1]
	})
	add("one image more", func(w world) {
		w.class.Spec.AMISelectorTerms = append(w.class.Spec.AMISelectorTerms, awsv1.AMISelectorTerm{ID: "ami-2"})
	})
	add("the second image is another", func(w world) {
		w.class.Spec.AMISelectorTerms = append(w.class.Spec.AMISelectorTerms, awsv1.AMISelectorTerm{ID: "ami-2"})
		own(w)
		w.class.Spec.AMISelectorTerms[1].ID = "ami-3"
	})
	add("a class that is as it was, for an older generation of the policy", func(w world) {
		w.wrote("EC2NodeClass", "c", func(r *conformance.Written) { r.Policy = 2 })
	})
	add("a class that waits for what nodes start with, and was written before", func(w world) {
		w.wrote("EC2NodeClass", "c", func(r *conformance.Written) { r.Failed = conformance.BootstrapMissing })
	})
	add("a class that was as wanted, and is altered on its way since", func(w world) {
		w.wrote("EC2NodeClass", "c", func(r *conformance.Written) { r.Altered = true })
		w.class.Spec.Tags["team"] = "blue"
	})
	add("a class of which the operator knows nothing but that it is its own", func(w world) {
		w.wrote("EC2NodeClass", "c", func(r *conformance.Written) { r.Class = nil })
	})
	stray := func(change func(world)) func(world) {
		return func(w world) {
			w.class.UID = "another"
			older(w.class, protected-1)
			change(w)
		}
	}
	add("an old class of somebody's that is as the provider's", stray(func(world) {}))
	add("an old class of somebody's with a root volume of its own", stray(func(w world) {
		w.class.Spec.BlockDeviceMappings[0].EBS.Encrypted = nil
	}))
	add("an old class of somebody's with a profile of its own",
		stray(func(w world) { w.class.Spec.InstanceProfile = new("admin") }))
	add("an old class of somebody's, where the operator gives neither images nor profile", stray(func(w world) {
		w.Memory.Images, w.Memory.Profile = nil, ""
		w.class.Spec.InstanceProfile, w.class.Spec.AMISelectorTerms[0].ID = nil, "ami-2"
	}))
}

func bordersOfMachines(add func(string, func(world))) {
	add("an owner of another kind with the pool's uid",
		func(w world) { w.claim.OwnerReferences[0].Kind = "Deployment" })
	add("a label by its alias", func(w world) {
		delete(w.node.Labels, instanceType)
		w.node.Labels[corev1.LabelInstanceType] = "d"
	})
	add("a label by two aliases", func(w world) {
		delete(w.node.Labels, zone)
		w.node.Labels[corev1.LabelFailureDomainBetaZone], w.node.Labels["topology.ebs.csi.aws.com/zone"] = "z9", "z1"
	})
	add("a label by its name, and another value by an alias", func(w world) {
		w.node.Labels[corev1.LabelFailureDomainBetaZone] = "z9"
	})
	add("the operator gives no images", func(w world) { w.Memory.Images = nil; w.claim.Status.ImageID = "ami-2" })
	add("a claim without a machine yet", func(w world) {
		w.claim.Status.ProviderID, w.claim.Labels = "", nil
		w.node.Spec.ProviderID = ""
		w.node.Labels = nil
	})
	add("a claim without a machine, outside, and a node without an id", func(w world) {
		w.claim.Status.ProviderID = ""
		w.claim.Spec.Requirements[0] = in(instanceType, "d")
		w.node.Spec.ProviderID = ""
	})
	add("a claim without a machine, with a label outside, and a node without an id", func(w world) {
		w.claim.Status.ProviderID, w.node.Spec.ProviderID = "", ""
		w.claim.Labels[instanceType] = "d"
	})
	add("two labels outside", func(w world) {
		for _, labels := range []map[string]string{w.claim.Labels, w.node.Labels} {
			labels[instanceType], labels[zone] = "d", "z9"
		}
	})
	add("a label outside, of a key that the claim does not name", func(w world) {
		w.claim.Spec.Requirements = []entry{in(instanceType, "b"), in(zone, "z1")}
		w.claim.Labels[team], w.node.Labels[team] = "green", "green"
	})
	add("the same, older than the policy", func(w world) {
		w.claim.Spec.Requirements = []entry{in(instanceType, "b"), in(zone, "z1")}
		w.claim.Labels[team], w.node.Labels[team] = "green", "green"
		older(w.claim, changed-1)
	})
	add("silent about a label, older than the policy, with its node", func(w world) {
		w.claim.Spec.Requirements = w.claim.Spec.Requirements[1:]
		delete(w.claim.Labels, instanceType)
		delete(w.node.Labels, instanceType)
		older(w.claim, changed-1)
	})
	add("a label outside, and nodes of other machines", func(w world) {
		w.claim.Labels[instanceType] = "d"
		w.node.Spec.ProviderID = "aws:///z1/i-2"
	})
	add("somebody wrote the claim's label, and its node is not the first", func(w world) {
		w.claim.Labels[instanceType] = "d"
		other := corev1.Node{ObjectMeta: meta("capi", made), Spec: corev1.NodeSpec{ProviderID: "aws:///z1/i-9"}}
		w.Objects.Nodes = append([]corev1.Node{other}, w.Objects.Nodes...)
	})
	add("a label that may be absent", mayBeAbsent)
	add("a node outside, of a claim, without the label of a pool", func(w world) {
		delete(w.node.Labels, karpenterv1.NodePoolLabelKey)
		w.node.Labels[instanceType] = "d"
	})
	add("a node of a pool that has not registered", func(w world) {
		delete(w.node.Labels, karpenterv1.NodeRegisteredLabelKey)
		delete(w.node.Labels, team)
		w.node.Labels[instanceType] = "d"
	})
	add("a node without a claim that lacks a label", func(w world) {
		w.Objects.Claims = nil
		delete(w.node.Labels, karpenterv1.NodeRegisteredLabelKey)
		delete(w.node.Labels, team)
	})
	add("a node without a claim, outside, and older than the policy", func(w world) {
		w.Objects.Claims = nil
		w.node.Labels[instanceType] = "d"
		older(w.node, changed-1)
	})
}
