package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// boundVolume returns a PersistentVolume with further lines in its spec, and a claim of that name for it.
func boundVolume(name, source string) string {
	return fmt.Sprintf(`
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: %[1]s}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: ""
%[2]s
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: %[1]s, namespace: default}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: %[1]s, resources: {requests: {storage: 1Gi}}}
`, name, indent(source, 2))
}

// bound waits until kube-controller-manager has bound the claims. The manager looks only every 15 s, and needs more
// than one look after a conflict. The wait for Joiner begins afterwards.
func (r *testRig) bound(names ...string) {
	r.t.Helper()
	r.eventually(later, fmt.Sprintf("bound PersistentVolumeClaims %v", names),
		func(ctx context.Context) (bool, string, error) {
			for _, name := range names {
				var claim corev1.PersistentVolumeClaim
				err := r.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &claim)
				if err != nil || claim.Status.Phase != corev1.ClaimBound {
					return false, fmt.Sprintf("%s is %s", name, claim.Status.Phase), err
				}
			}
			return true, "", nil
		})
}

func mounting(claim string) string {
	return fmt.Sprintf("volumes: [{name: data, persistentVolumeClaim: {claimName: %s}}]", claim)
}

// P-07: a pod waits while its claim does not exist, and an event says for what. Then its node comes where the volume
// can be used.
func TestPodsGoWhereTheirVolumesAre(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, ""))
	r.apply(deployment("db", 1, "{cpu: '1'}", mounting("data")))
	r.eventually(soon, "an event that names the missing claim", func(ctx context.Context) (bool, string, error) {
		var events corev1.EventList
		err := r.Client.List(ctx, &events, client.InNamespace("default"))
		var messages []string
		for _, e := range events.Items {
			messages = append(messages, e.Message)
			if e.Source.Component == "karpenter" || e.ReportingController == "karpenter" {
				if strings.Contains(e.Message, "PersistentVolumeClaim default/data does not exist") {
					return true, "", nil
				}
			}
		}
		return false, strings.Join(messages, "\n"), err
	})
	if claims, err := r.claims(t.Context()); err != nil || len(claims) != 0 {
		t.Fatalf("%d NodeClaims for a pod that cannot run yet (%v)", len(claims), err)
	}
	r.apply(boundVolume("data", `
hostPath: {path: /data}
nodeAffinity:
  required:
    nodeSelectorTerms:
    - matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, values: [test-zone-b]}]`))
	r.bound("data")
	r.allRunning(1, soon)
	if zone := r.nodeOf("db").Labels[corev1.LabelTopologyZone]; zone != "test-zone-b" {
		t.Errorf("the node stands in %q, want test-zone-b, where the volume is", zone)
	}
	r.oneNodePerClaim()
}

// oneVolume returns what the test's driver says about a node.
func oneVolume(node string) string {
	return fmt.Sprintf(`
apiVersion: storage.k8s.io/v1
kind: CSINode
metadata: {name: %s}
spec: {drivers: [{name: disk.example.invalid, nodeID: some-machine, allocatable: {count: 1}}]}
`, node)
}

// P-07: a node whose CSINode allows one volume takes one of two pods, whatever other room it has. The other pod gets a
// node of its own.
func TestNodesTakeAsManyVolumesAsTheirDriverSays(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, ""))
	r.apply(deployment("web", 1, "{cpu: 1500m}", ""))
	r.allRunning(1, soon)
	node := r.nodeOf("web").Name
	r.apply(`
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: disk.example.invalid}
spec: {attachRequired: false}
`)
	r.apply(oneVolume(node))
	for _, name := range []string{"db-0", "db-1"} {
		r.apply(boundVolume(name, fmt.Sprintf("csi: {driver: disk.example.invalid, volumeHandle: %s}", name)))
		r.bound(name)
		r.apply(deployment(name, 1, "{cpu: 10m}", mounting(name)))
	}
	r.eventually(soon, "another node", func(ctx context.Context) (bool, string, error) {
		nodes, err := r.nodes(ctx)
		for name := range nodes {
			if name != node {
				// The scheduler tries such a pod again when a CSINode comes. On a real machine the kubelet makes it.
				return true, "", r.Apply(ctx, oneVolume(name))
			}
		}
		return false, fmt.Sprintf("%d nodes", len(nodes)), err
	})
	r.allRunning(3, soon)
	first, second := r.nodeOf("db-0").Name, r.nodeOf("db-1").Name
	if first == second || first != node && second != node {
		t.Errorf("the pods run on %s and %s; want one of them on %s", first, second, node)
	}
	r.oneNodePerClaim()
}

// P-07: if a pod has more volumes of a driver than any node could attach so far, an event says so, and no node is
// launched for it in vain. Of two pods with the same ReadWriteOncePod claim, one gets a plan.
func TestPodsThatNoNodeCouldServeGetNone(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.apply(kwokPool("default", amd64Linux, ""))
	r.apply(deployment("web", 1, "{cpu: 1500m}", ""))
	r.allRunning(1, soon)
	r.apply(
		"apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: disk.example.invalid}\nspec: {attachRequired: false}\n")
	r.apply(oneVolume(r.nodeOf("web").Name))
	for _, name := range []string{"a", "b"} {
		r.apply(boundVolume(name, fmt.Sprintf("csi: {driver: disk.example.invalid, volumeHandle: %s}", name)))
	}
	r.bound("a", "b")
	r.apply(deployment("db", 1, "{cpu: 10m}",
		"volumes: [{name: a, persistentVolumeClaim: {claimName: a}}, {name: b, persistentVolumeClaim: {claimName: b}}]"))
	r.said("2 volumes of CSI driver disk.example.invalid, and no node has been able to attach more than 1")
	r.apply(strings.ReplaceAll(boundVolume("one", "hostPath: {path: /one}"), "ReadWriteOnce]", "ReadWriteOncePod]"))
	r.bound("one")
	r.apply(deployment("pair", 2, "{cpu: '3'}", mounting("one")))
	r.said("PersistentVolumeClaim default/one is ReadWriteOncePod, and pod default/pair-")
	r.eventually(soon, "one of the pair to run", func(ctx context.Context) (bool, string, error) {
		pods, err := r.pods(ctx, client.MatchingLabels{"app": "pair"})
		running := 0
		for _, pod := range pods {
			if pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return running == 1, fmt.Sprintf("%d run", running), err
	})
	if claims, err := r.claims(t.Context()); err != nil || len(claims) != 2 {
		t.Errorf("%d NodeClaims, error %v; want one for web and one for the pair", len(claims), err)
	}
}

// said waits for an event of ours with these words.
func (r *testRig) said(words string) {
	r.t.Helper()
	r.eventually(soon, "an event: "+words, func(ctx context.Context) (bool, string, error) {
		var events corev1.EventList
		err := r.Client.List(ctx, &events, client.InNamespace("default"))
		var messages []string
		for _, e := range events.Items {
			messages = append(messages, e.Message)
			if e.ReportingController == "karpenter" && strings.Contains(e.Message, words) {
				return true, "", nil
			}
		}
		return false, strings.Join(messages, "\n"), err
	})
}
