package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

// selectedNode is the annotation by which kube-scheduler tells a provisioner the node of a new volume.
const selectedNode = "volume.kubernetes.io/selected-node"

// casesAtOnce is how many cases are judged together: at most ten nominations are reported at a time (K-14).
const casesAtOnce = 10 / mostPods

// numberOf reads a number above 0 from the environment.
func numberOf(t *testing.T, name string, usual int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%s: want a number above 0", name, text)
	}
	return n
}

// K-58, K-59: kube-scheduler is the judge of drawn cases. It binds the pods that Joiner expects on existing nodes, and
// not those for whose volumes Joiner finds no room. Joiner speaks before the scheduler runs.
func TestK58_ThePodsWithVolumesThatAreExpectedAreBound(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	pools := r.devicePools()
	for _, class := range priorities() {
		r.create(class)
	}
	random := rand.New(rand.NewPCG(uint64(numberOf(t, "JOINER_VOLUME_SEED", 1)), 58))
	count := map[string]int{}
	for number, all := 0, numberOf(t, "JOINER_VOLUME_CASES", 15); number < all; {
		if err := r.Cluster.StopComponent(cluster.Scheduler); err != nil {
			t.Fatal(err)
		}
		var cases []*volumeCase
		for i, nodes := range pools[:casesAtOnce] {
			if number < all {
				cases = append(cases, drawVolumeCase(random, number, poolName(i), nodes))
				number++
			}
		}
		r.judgeVolumes(cases, count)
	}
	t.Logf("verdicts by kind of case: %v", count)
	for _, some := range []string{"local expected", "local refused", "capacity expected", "capacity refused",
		"attach expected", "attach refused", "shared expected"} {
		if count[some] == 0 {
			t.Errorf("no pod is %s", some)
		}
	}
}

// judgeVolumes shows cases to Joiner, waits for its verdicts on their pods, and then lets kube-scheduler decide.
func (r *testRig) judgeVolumes(cases []*volumeCase, count map[string]int) {
	r.t.Helper()
	var pods []*corev1.Pod
	for _, c := range cases {
		for _, o := range c.objects {
			r.create(o)
		}
	}
	r.volumesAvailable(cases)
	for _, c := range cases {
		for _, pod := range c.pods {
			r.create(pod)
			pods = append(pods, pod)
		}
	}
	for i := range mostPods { // the highest priority first: Joiner keeps to what it said about a pod
		for _, c := range cases {
			if i < len(c.pods) {
				r.mark(c.pods[i].Name)
			}
		}
	}
	said := r.verdicts(pods)
	expected := map[string]bool{}
	for _, pod := range pods {
		expected[pod.Name] = said[pod.Name].Reason == "Nominated"
	}
	if err := r.Cluster.StartComponent(r.t.Context(), cluster.Scheduler); err != nil {
		r.t.Fatal(err)
	}
	bound := r.boundWithVolumes(cases, expected)
	for _, c := range cases {
		want, got := 0, 0
		for _, pod := range c.pods {
			note := said[pod.Name].Note
			want, got = want+ones(expected[pod.Name]), got+ones(bound[pod.Name] != "")
			count[c.kind+map[bool]string{true: " expected", false: " refused"}[expected[pod.Name]]]++
			if !c.count && expected[pod.Name] != (bound[pod.Name] != "") {
				r.t.Errorf("case %s (%s), pod %s: Joiner says %q, and it is bound to %q", c.name, c.kind, pod.Name,
					note, bound[pod.Name])
			}
		}
		if want != got {
			r.t.Errorf("case %s (%s): %d pods are expected, and %d are bound\n%s", c.name, c.kind, want, got,
				r.run("get", "persistentvolumes,persistentvolumeclaims,csistoragecapacities,csinodes", "-A", "-o",
					"yaml"))
		}
	}
	if claims, err := r.claims(r.t.Context()); err != nil || len(claims) != devicePools*nodesOfAPool {
		r.t.Fatalf("%d NodeClaims (%v): want those of the static pools, %d", len(claims), err,
			devicePools*nodesOfAPool)
	}
	r.clearVolumes(cases)
}

func ones(is bool) int {
	if is {
		return 1
	}
	return 0
}

// volumesAvailable waits until kube-controller-manager has seen the volumes.
func (r *testRig) volumesAvailable(cases []*volumeCase) {
	r.t.Helper()
	r.eventually(later, "the volumes to be available", func(ctx context.Context) (bool, string, error) {
		for _, c := range cases {
			for _, o := range c.objects {
				volume, is := o.(*corev1.PersistentVolume)
				if !is {
					continue
				}
				var now corev1.PersistentVolume
				if err := r.Client.Get(ctx, client.ObjectKeyFromObject(volume), &now); err != nil {
					return false, "", err
				}
				if now.Status.Phase != corev1.VolumeAvailable {
					return false, now.Name + " is " + string(now.Status.Phase), nil
				}
			}
		}
		return true, "", nil
	})
}

// boundWithVolumes provisions what kube-scheduler asks for until it has bound as many pods as expected and has tried
// the others. It returns the nodes of the bound pods.
func (r *testRig) boundWithVolumes(cases []*volumeCase, expected map[string]bool) map[string]string {
	r.t.Helper()
	bound := map[string]string{}
	err := r.Eventually(r.t.Context(), later, "kube-scheduler to decide",
		func(ctx context.Context) (bool, string, error) {
			clear(bound)
			if err := r.provision(ctx, cases); err != nil {
				return false, "", err
			}
			waits := ""
			for _, c := range cases {
				missing := 0
				for _, pod := range c.pods {
					var now corev1.Pod
					if err := r.Client.Get(ctx, client.ObjectKeyFromObject(pod), &now); err != nil {
						return false, "", err
					}
					bound[pod.Name] = now.Spec.NodeName
					missing += ones(expected[pod.Name]) - ones(now.Spec.NodeName != "")
					tried := slices.ContainsFunc(now.Status.Conditions, func(c corev1.PodCondition) bool {
						return c.Type == corev1.PodScheduled && c.Message != markedByTest
					})
					if now.Spec.NodeName == "" && (!c.count && expected[pod.Name] || !tried) {
						waits = pod.Name + " is not bound"
					}
				}
				if missing > 0 {
					waits = fmt.Sprintf("%d pods of %s are not bound", missing, c.name)
				}
			}
			return waits == "", waits, nil
		})
	if err != nil {
		r.t.Error(err)
	}
	return bound
}

// provision makes the volumes that kube-scheduler asks for, as the driver of each case would. If nothing is left, it
// says so.
func (r *testRig) provision(ctx context.Context, cases []*volumeCase) error {
	for _, c := range cases {
		for _, o := range c.objects {
			claim, is := o.(*corev1.PersistentVolumeClaim)
			if !is || strings.HasPrefix(c.kind, "local") {
				continue
			}
			var now corev1.PersistentVolumeClaim
			if err := r.Client.Get(ctx, client.ObjectKeyFromObject(claim), &now); err != nil {
				return err
			}
			if node := now.Annotations[selectedNode]; node != "" && now.Spec.VolumeName == "" {
				if err := r.provisionOne(ctx, c, &now, node); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *testRig) provisionOne(ctx context.Context, c *volumeCase, claim *corev1.PersistentVolumeClaim,
	node string) error {
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + claim.Name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, StorageClassName: c.name,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: c.name + ".example.com",
					VolumeHandle: "pv-" + claim.Name}}}}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(volume), &corev1.PersistentVolume{})
	if err == nil || !apierrors.IsNotFound(err) {
		return err // it is made already
	}
	if c.kind == "capacity" {
		volume.Spec.NodeAffinity = onNode(node)
		size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
		if left := c.left[node]; left == nil || left.Capacity.Cmp(size) < 0 { // it has gone to another claim meanwhile
			before := claim.DeepCopy()
			delete(claim.Annotations, selectedNode)
			return r.Client.Patch(ctx, claim, client.MergeFrom(before))
		}
		if err := r.take(ctx, c.left[node], size); err != nil {
			return err
		}
	}
	return r.Client.Create(ctx, volume)
}

// take lowers what a driver has left before it makes the volume.
func (r *testRig) take(ctx context.Context, from *storagev1.CSIStorageCapacity, size resource.Quantity) error {
	before := from.DeepCopy()
	from.Capacity.Sub(size)
	if most := from.MaximumVolumeSize; most != nil && most.Cmp(*from.Capacity) > 0 {
		*most = from.Capacity.DeepCopy()
	}
	return r.Client.Patch(ctx, from, client.MergeFrom(before))
}

// clearVolumes removes what cases have made, and waits until it is gone.
func (r *testRig) clearVolumes(cases []*volumeCase) {
	r.t.Helper()
	for _, c := range cases {
		for _, pod := range c.pods {
			if err := r.Client.Delete(r.t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
				r.t.Fatal(err)
			}
		}
		for _, o := range c.objects {
			if err := r.Client.Delete(r.t.Context(), o); client.IgnoreNotFound(err) != nil {
				r.t.Fatal(err)
			}
		}
	}
	r.run("delete", "persistentvolumes", "--all", "--wait=false")
}
