package ec2

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/attack"
)

// The root device of the hosted cluster's image, and what the provider's policy says about it.
const (
	rootDevice = "/dev/xvda"
	policy     = `apiVersion: karpenter.hypershift.openshift.io/v1beta1
kind: AutoNodePolicy
metadata: {name: default, namespace: ` + hcp + `}
spec: {ec2NodeClassDefaults: {rootVolume: {volumeSize: 90Gi, volumeType: gp3, encrypted: true, iops: 4000, throughput: 250}}}
`
	classGuard = "karpenter-binding.ec2nodeclass.hypershift.io"
)

// disk is a block device as requested from EC2.
type disk struct {
	device           string
	gib              int32
	kind             string
	encrypted        bool
	iops, throughput int32 // 0: not said
}

func (d disk) String() string {
	return fmt.Sprintf("%s %dGi %s encrypted=%t iops=%d throughput=%d", d.device, d.gib, d.kind, d.encrypted, d.iops,
		d.throughput)
}

// ofPolicy is the root volume that every instance must have.
var ofPolicy = disk{rootDevice, 90, "gp3", true, 4000, 250}

// E-31, R28, R30: an AutoNodePolicy's root volume is the root volume of every instance, whatever the tenant, who is
// cluster-admin of the hosted cluster, tries.
func TestTheRootVolumeOfThePolicy(t *testing.T) {
	t.Parallel()
	h := newHosted(t)
	if err := h.mgmt.Apply(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	h.apply(wrappedClass("modest", "monitoring: Basic"), wrapped("modest", "modest"), h.pods("modest", 2))
	h.running(2, later)
	h.rooted("without a try", 2)
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"disks of one's own", h.ownDisks}, {"without admission", h.withoutAdmission},
		{"a mutation on the way", h.mutation},
	} {
		if !t.Run(step.name, func(t *testing.T) {
			outer := h.t
			h.t = t
			defer func() { h.t = outer }()
			step.do()
		}) {
			return
		}
	}
}

// pods returns a Deployment with nodes of a pool of its own.
func (h *hosted) pods(pool string, count int) string {
	return deployment(pool, count, "{cpu: 500m}", apart(pool)+"\nnodeSelector: {tenant: "+pool+"}")
}

// ownDisks: a root volume in the class has no effect, by device or by role. The tenant may have another disk.
func (h *hosted) ownDisks() {
	h.apply(wrappedClass("greedy", `blockDeviceMappings:
- {deviceName: /dev/xvda, ebs: {volumeSizeGiB: 500, volumeType: IO2, iops: 9000, encrypted: Unencrypted}}
- {deviceName: /dev/sda1, rootVolume: RootVolume, ebs: {volumeSizeGiB: 400}}
- {deviceName: /dev/xvdb, ebs: {volumeSizeGiB: 30, volumeType: GP3, encrypted: Encrypted}}`),
		wrapped("greedy", "greedy"), h.pods("greedy", 1))
	h.running(3, later)
	h.rooted("disks of one's own", 3)
	others := 0
	for _, disks := range h.disks(h.t.Context()) {
		for _, d := range disks {
			if d.device == rootDevice {
				continue
			}
			others++
			if d != (disk{"/dev/xvdb", 30, "gp3", true, 0, 0}) {
				h.t.Errorf("beside its root volume an instance has %s", d)
			}
		}
	}
	if others != 1 {
		h.t.Errorf("there are %d disks beside root volumes, want the one of /dev/xvdb", others)
	}
	h.kubectl("delete", "deployment", "greedy")
}

// withoutAdmission: the tenant deletes the guard of EC2NodeClasses and writes the class before the guard is back. The
// operator is stopped meanwhile, since it is quicker than most tenants. Instances launched in between go.
func (h *hosted) withoutAdmission() {
	const patch = `[{"op": "replace", "path": "/spec/blockDeviceMappings/0/ebs", "value": {"volumeSize": "500Gi", "volumeType": "gp3"}}]`
	try := func(ctx context.Context) error {
		class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "modest"}}
		return h.Client.Patch(ctx, class, client.RawPatch(apitypes.JSONPatchType, []byte(patch)))
	}
	if err := try(h.t.Context()); err == nil || !strings.Contains(err.Error(), "OpenshiftEC2NodeClass") {
		h.t.Fatalf("writing the class under admission: %v, want a refusal that names OpenshiftEC2NodeClass", err)
	} else {
		attack.SawRefusal(h.t, err)
	}
	h.signal(syscall.SIGSTOP)
	h.kubectl("delete", "validatingadmissionpolicybinding", classGuard)
	h.eventually(soon, "admission to be off", func(ctx context.Context) (bool, string, error) {
		err := try(ctx)
		return err == nil, fmt.Sprint(err), nil
	})
	h.kubectl("scale", "deployment", "modest", "--replicas=3")
	h.eventually(later, "an instance with the tenant's volume", func(ctx context.Context) (bool, string, error) {
		roots := h.roots(ctx)
		return roots[disk{rootDevice, 500, "gp3", false, 0, 0}.String()] > 0, fmt.Sprint(roots), nil
	})
	h.signal(syscall.SIGCONT)
	h.settled("without admission", 3)
	h.kubectl("get", "validatingadmissionpolicybinding", classGuard)
}

func (h *hosted) signal(signal syscall.Signal) {
	h.t.Helper()
	if err := syscall.Kill(h.operator.PID(), signal); err != nil {
		h.t.Fatal(err)
	}
}

// mutation: an admission policy of the tenant changes what the operator writes. The operator says so, and closes the
// pools of the class: they launch nothing while the tenant's policy exists. Once it is gone, instances go that were
// launched before the pools were closed.
func (h *hosted) mutation() {
	const larger = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: larger}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [karpenter.k8s.aws], apiVersions: [v1], resources: [ec2nodeclasses], operations: [CREATE, UPDATE]}]
  mutations:
  - patchType: JSONPatch
    jsonPatch: {expression: '[JSONPatch{op: "replace", path: "/spec/blockDeviceMappings/0/ebs/volumeSize", value: "500Gi"}]'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: larger}
spec: {policyName: larger}
`
	h.apply(larger)
	began := time.Now()
	h.eventually(soon, "the policy to say that its volume is not in the class",
		func(ctx context.Context) (bool, string, error) {
			// Each write of the wrapper makes the operator write the class; the first may come before the
			// mutation is in force.
			h.apply(wrappedClass("modest", "monitoring: Basic\ntags: {try: \""+fmt.Sprint(time.Now().UnixNano())+
				"\"}"))
			output, err := h.mgmt.Kubectl(ctx, "", "get", "autonodepolicy", "default", "-n", hcp, "-o",
				`jsonpath={.status.conditions[?(@.type=="Ready")]}`)
			told := strings.Contains(output, `"status":"False"`) && strings.Contains(output, "modest")
			if told {
				attack.Saw(h.t, attack.Seen{How: attack.Told, By: "the operator", Text: output,
					After: time.Since(began)})
			}
			return told, output, err
		})
	h.eventually(soon, "the pool of the class to be closed", func(ctx context.Context) (bool, string, error) {
		output, err := h.Kubectl(ctx, "", "get", "nodepool", "modest", "-o",
			"jsonpath={.spec.template.spec.requirements}")
		return strings.Contains(output, "DoesNotExist"), output, err
	})
	before := h.roots(h.t.Context())
	// more than there are nodes, with those that were replacing others when the pool was closed
	h.kubectl("scale", "deployment", "modest", "--replicas=8")
	h.said(later, "FailedScheduling", "modest") // Joiner has looked for a node
	h.t.Logf("while the tenant's mutation stands: %v, and %v when the pool was closed", h.roots(h.t.Context()), before)
	if pending := h.kubectl("get", "pods", "--field-selector=status.phase=Pending", "-o",
		"name"); !strings.Contains(pending, "pod/") {
		h.t.Error("no pod waits: a closed pool launches nothing")
	}
	h.kubectl("delete", "mutatingadmissionpolicybinding,mutatingadmissionpolicy", "larger")
	h.settled("a mutation on the way", 8)
}

// rooted demands that at least count instances run, each with exactly the policy's root volume. There are more while
// nodes are replaced, as they are after each change of their class.
func (h *hosted) rooted(after string, count int) {
	h.t.Helper()
	roots := h.roots(h.t.Context())
	if len(roots) != 1 || roots[ofPolicy.String()] < count {
		h.t.Errorf("%s: instances by their root volumes: %v, want %d with %s, and no others", after, roots, count,
			ofPolicy)
		return
	}
	attack.Saw(h.t,
		attack.Seen{How: attack.Held, Text: fmt.Sprintf("%s: instances by their root volumes: %v", after, roots)})
}

// settled waits until count instances run, each with exactly the policy's root volume, and logs the root volumes on
// the way.
func (h *hosted) settled(after string, count int) {
	h.t.Helper()
	seen := map[string]int{}
	h.eventually(later, "every instance to have the policy's root volume",
		func(ctx context.Context) (bool, string, error) {
			roots := h.roots(ctx)
			for text, n := range roots {
				seen[text] = max(seen[text], n)
			}
			return len(roots) == 1 && roots[ofPolicy.String()] >= count, fmt.Sprint(roots), nil
		})
	h.running(count, later)
	h.rooted(after, count)
	h.t.Logf("%s: most instances at once, by their root volumes: %v", after, seen)
}

// roots counts the instances that run by their root volumes. One with none or with several counts under all of them.
func (h *hosted) roots(ctx context.Context) map[string]int {
	h.t.Helper()
	counts := map[string]int{}
	for _, disks := range h.disks(ctx) {
		var roots []string
		for _, d := range disks {
			if d.device == rootDevice {
				roots = append(roots, d.String())
			}
		}
		counts[strings.Join(roots, " and ")]++
	}
	return counts
}

// disks returns the block devices of running instances, by instance, according to their launch templates. EC2 must
// have made the same.
func (h *hosted) disks(ctx context.Context) map[string][]disk {
	h.t.Helper()
	templates := map[string][]disk{}
	pages := ec2.NewDescribeLaunchTemplateVersionsPaginator(h.ec2, &ec2.DescribeLaunchTemplateVersionsInput{
		Versions: []string{"$Latest"},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, v := range page.LaunchTemplateVersions {
			for _, m := range v.LaunchTemplateData.BlockDeviceMappings {
				d := disk{device: aws.ToString(m.DeviceName)}
				if e := m.Ebs; e != nil {
					d = disk{d.device, aws.ToInt32(e.VolumeSize), string(e.VolumeType), aws.ToBool(e.Encrypted),
						aws.ToInt32(e.Iops), aws.ToInt32(e.Throughput)}
				}
				name := aws.ToString(v.LaunchTemplateName)
				templates[name] = append(templates[name], d)
			}
		}
	}
	instances, err := h.instances(ctx)
	if err != nil {
		h.t.Fatal(err)
	}
	all := map[string][]disk{}
	for _, id := range slices.Sorted(maps.Keys(instances)) {
		if instances[id].State.Name == types.InstanceStateNameShuttingDown {
			continue
		}
		all[id] = templates[h.ofInstance(id).Template]
		h.sameDisks(ctx, id, all[id])
	}
	return all
}

// sameDisks compares the volumes that an instance has with those of its template.
func (h *hosted) sameDisks(ctx context.Context, id string, asked []disk) {
	h.t.Helper()
	out, err := h.ec2.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{Filters: []types.Filter{
		{Name: aws.String("attachment.instance-id"), Values: []string{id}},
	}})
	if err != nil {
		h.t.Fatal(err)
	}
	var has []disk
	for _, v := range out.Volumes {
		has = append(has, disk{aws.ToString(v.Attachments[0].Device), aws.ToInt32(v.Size), string(v.VolumeType),
			aws.ToBool(v.Encrypted), aws.ToInt32(v.Iops), aws.ToInt32(v.Throughput)})
	}
	byDevice := func(a, b disk) int { return strings.Compare(a.device, b.device) }
	asked = slices.SortedFunc(slices.Values(asked), byDevice)
	if slices.SortFunc(has, byDevice); len(has) > 0 && !slices.Equal(has, asked) {
		h.t.Errorf("%s has the volumes %v, its template says %v", id, has, asked)
	}
}
