package conversion

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const nodeClass = `
apiVersion: karpenter.k8s.aws/v1beta1
kind: EC2NodeClass
metadata: {name: %s}
spec:
  amiFamily: %s
  role: nodes
  subnetSelectorTerms: [{tags: {discovery: demo}}]
  securityGroupSelectorTerms: [{id: sg-1}]
`

const nodeClaim = `
apiVersion: karpenter.sh/v1beta1
kind: NodeClaim
metadata: {name: claim}
spec:
  nodeClassRef: {name: default}
  requirements: []
  resources: {requests: {cpu: "1", memory: 8192Mi}}
  kubelet: {evictionSoft: {memory.available: 5%}, evictionSoftGracePeriod: {memory.available: 1m}}
`

// V-24: the schema of v1beta1 refuses what cannot be converted or could not be a v1 object, and names field and value.
// badinput_test.go has what the users' page says.
func TestTheSchemaOfV1beta1(t *testing.T) {
	t.Parallel()
	r, manifests := start(t)
	r.install(manifests)
	change := func(from, to string) string { return strings.Replace(pool("bad", "{}"), from, to, 1) }
	for want, manifest := range map[string]string{
		"nodeClassRef.name must not be empty": change(classRef,
			"{kind: EC2NodeClass, name: ''}"),
		"schedule and duration belong together": change("{}",
			"{budgets: [{nodes: '1', schedule: '@daily'}]}"),
		"imageGCHighThresholdPercent must be greater": change("{maxPods: 20}",
			"{imageGCHighThresholdPercent: 1, imageGCLowThresholdPercent: 2}"),
		"kubelet.evictionSoft has a signal without an entry": change("{maxPods: 20}",
			"{evictionSoft: {memory.available: 5%}}"),
		"kubelet reserves gpu": change("{maxPods: 20}",
			"{kubeReserved: {gpu: '1'}}"),
		"spec.role and spec.instanceProfile exclude each other, and one of them is need": strings.Replace(
			fmt.Sprintf(nodeClass, "bad", "AL2"), "role: nodes", "tags: {a: b}", 1),
	} {
		if output, err := r.kubectl(manifest, "apply", "-f", "-"); err == nil || !strings.Contains(output, want) {
			t.Errorf("%s\nis answered with %s\nwant %s", manifest, output, want)
		}
	}
	for _, manifest := range []string{
		pool("a", "{}"), change(classRef, "{name: default}"), change(classRef, "{kind: KWOKNodeClass, name: default}"),
		change(classRef, "{apiVersion: a.b/v1, kind: Foo, name: default}"),
	} {
		r.must(strings.Replace(manifest, "name: bad}", "name: good}", 1), "apply", "-f", "-")
		r.must("", "delete", "nodepools", "--all")
	}
	r.classesAndClaims()
}

// classesAndClaims: V-20, V-21, V-22, the other kinds go both ways on a real API server too.
func (r *rig) classesAndClaims() {
	r.must(fmt.Sprintf(nodeClass, "default", "AL2023")+"---"+fmt.Sprintf(nodeClass, "ubuntu", "Ubuntu")+"---"+
		nodeClaim, "apply", "-f", "-")
	for name, want := range map[string][]string{
		"ec2nodeclasses.v1.karpenter.k8s.aws default":      {`"alias":"al2023@latest"`, `"httpPutResponseHopLimit":2`},
		"ec2nodeclasses.v1.karpenter.k8s.aws ubuntu":       {`"amiFamily":"AL2"`, `"ami-placeholder"`, `"20Gi"`},
		"ec2nodeclasses.v1beta1.karpenter.k8s.aws default": {`"amiFamily":"AL2023"`},
		"ec2nodeclasses.v1beta1.karpenter.k8s.aws ubuntu":  {`"amiFamily":"Ubuntu"`},
		"nodeclaims.v1.karpenter.sh claim": {`"expireAfter":"Never"`, `"group":"karpenter.k8s.aws"`,
			`"memory":"8192Mi"`},
		"nodeclaims.v1beta1.karpenter.sh claim": {`"evictionSoftGracePeriod":{"memory.available":"1m"}`,
			`"nodeClassRef":{"name":"default"}`},
	} {
		resource, object, _ := strings.Cut(name, " ")
		var o struct {
			Spec json.RawMessage `json:"spec"`
		}
		if err := json.Unmarshal([]byte(r.must("", "get", resource, object, "-o", "json")), &o); err != nil {
			r.t.Fatal(err)
		}
		compact := strings.NewReplacer("\n", "", " ", "").Replace(string(o.Spec))
		for _, text := range want {
			if !strings.Contains(compact, text) {
				r.t.Errorf("%s has no %s: %s", name, text, compact)
			}
		}
	}
	// The spec of a claim cannot be changed in either version, and its metadata can.
	r.must("", "annotate", "nodeclaims.v1beta1.karpenter.sh", "claim", "example.com/touched=yes")
	for _, version := range []string{"v1", "v1beta1"} {
		if output, err := r.kubectl("", "patch", "nodeclaims."+version+".karpenter.sh", "claim", "--type=merge", "-p",
			`{"spec":{"resources":{"requests":{"cpu":"2"}}}}`); err == nil || !strings.Contains(output,
			"cannot be changed after creation") {
			r.t.Errorf("a change in %s is answered with %s", version, output)
		}
	}
}
