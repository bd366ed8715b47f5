package autonode

import (
	"reflect"
	"testing"
)

func TestR28_TheRootVolumeOfThePolicyReplacesTheUsers(t *testing.T) {
	w := begin(t)
	w.policy(root("{volumeSize: 75Gi, volumeType: gp3, encrypted: true}"))
	w.class("r28",
		parse(
			`{blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSizeGiB: 500, volumeType: IO1, iops: 5000, `+
				`encrypted: Unencrypted}}]}`))
	w.rooted("{volumeSize: 75Gi, volumeType: gp3, encrypted: true}", "r28", "default")
	w.policySays("True", "")
}

func TestR29_IOPSAndThroughputAreCarried(t *testing.T) {
	w := begin(t)
	w.policy(root("{volumeSize: 75Gi, volumeType: gp3, encrypted: true, iops: 4000, throughput: 250}"))
	w.rooted("{volumeSize: 75Gi, volumeType: gp3, encrypted: true, iops: 4000, throughput: 250}", "default")
}

// G6: the field exists. The root's mapping in it has no effect, and the others pass.
func TestR30_UsersCannotChangeTheRootVolume(t *testing.T) {
	w := begin(t)
	const other = "{deviceName: /dev/sdb, ebs: {volumeSizeGiB: 20, volumeType: GP3, encrypted: Encrypted}}"
	w.class("r30-name", parse("{blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSizeGiB: 500}}, "+other+
		"]}"))
	w.class("r30-flag",
		parse(
			"{blockDeviceMappings: [{deviceName: /dev/sda1, rootVolume: RootVolume, ebs: {volumeSizeGiB: 500, kmsKeyID: theirs}}, "+
				other+"]}"))
	for _, spec := range []struct {
		policy object // nil: none
		want   string
	}{{nil, hardCoded}, {root("{volumeSize: 100Gi}"), "{volumeSize: 100Gi, volumeType: gp3, encrypted: true}"}} {
		if spec.policy != nil {
			w.policy(spec.policy)
		}
		w.rooted(spec.want, "r30-name", "r30-flag")
		for _, name := range []string{"r30-name", "r30-flag"} {
			roots, others := rootOf(w.get(nodeClassKind, name))
			if ebs, _ := roots[0]["ebs"].(object); ebs["kmsKeyID"] != nil {
				t.Errorf("%s: the user's key %v encrypts the root volume", name, ebs["kmsKeyID"])
			}
			want := list(parse("{deviceName: /dev/sdb, ebs: {volumeSize: 20Gi, volumeType: gp3, encrypted: true}}"))
			if !reflect.DeepEqual(others, want) {
				t.Errorf("%s: beside the root's there are the mappings %s, want %s", name, show(others), show(want))
			}
			w.classSays(name, "RootVolumeOverridden", "True", "")
		}
	}
}

func TestR31_APolicyWithoutARootVolumeLeavesTheDefault(t *testing.T) {
	w := begin(t)
	w.policy(restrict(in(instanceType, "a")))
	w.policySays("True", "")
	w.rooted(hardCoded, "default")
	w.policy(object{"ec2NodeClassDefaults": object{}})
	w.policySays("True", "")
	w.rooted(hardCoded, "default")
}

func TestR32_ARootVolumesUpdateAndDeletionReachAllClasses(t *testing.T) {
	w := begin(t)
	names := []string{"default", "r32-a", "r32-b"}
	w.class("r32-a", object{"monitoring": "Basic"})
	w.class("r32-b", object{"monitoring": "Basic"})
	w.policy(root("{volumeSize: 75Gi}"))
	w.rooted(hardCoded, names...)
	p := w.policy(root("{volumeSize: 100Gi}"))
	w.rooted("{volumeSize: 100Gi, volumeType: gp3, encrypted: true}", names...)
	w.remove(w.sre, p)
	w.rooted(hardCoded, names...)
}

func TestR33_OtherFieldsOfAClassStayAsTheyAre(t *testing.T) {
	w := begin(t)
	w.class("r33", parse(`
subnetSelectorTerms: [{id: subnet-0a}]
securityGroupSelectorTerms: [{id: sg-0a}]
tags: {team: blue}
monitoring: Detailed
instanceStorePolicy: RAID0
metadataOptions: {access: HTTPEndpoint, httpTokens: Required, httpPutResponseHopLimit: 2}`))
	w.rooted(hardCoded, "r33")
	rest := func() any {
		spec := field(w.get(nodeClassKind, "r33"), "spec").(object)
		delete(spec, "blockDeviceMappings")
		return spec
	}
	before := rest()
	w.policy(both(root("{volumeSize: 100Gi, volumeType: io1, iops: 3000}"), restrict(in(instanceType, "a"))))
	w.rooted("{volumeSize: 100Gi, volumeType: io1, iops: 3000, encrypted: true}", "r33")
	if after := rest(); !reflect.DeepEqual(before, after) {
		t.Errorf("the policy changed\n%s to\n%s", show(before), show(after))
	}
}
