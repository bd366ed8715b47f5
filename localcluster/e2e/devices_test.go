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
	eventsv1 "k8s.io/api/events/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// devicePools are the static pools whose nodes have devices; a case has one of them for itself.
const (
	devicePools  = 5
	nodesOfAPool = 3
)

// markedByTest is the message of a pod's condition while kube-scheduler does not run. The scheduler overwrites it.
const markedByTest = "the test says so"

// deviceCases returns the number of cases.
func deviceCases(t *testing.T) int {
	t.Helper()
	text := os.Getenv("JOINER_DRA_CASES")
	if text == "" {
		return 20
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("JOINER_DRA_CASES=%s: want a number of cases above 0", text)
	}
	return n
}

// seedOf returns the seed of the cases: JOINER_DRA_SEED, or 1.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("JOINER_DRA_SEED")
	if text == "" {
		return 1
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("JOINER_DRA_SEED=%s: want a number", text)
	}
	return seed
}

// K-42: kube-scheduler is the judge of drawn cases. Each pod that Joiner expects on a node is bound. Each pod for
// whose devices Joiner finds no node is not. No node is launched for any of them. Joiner speaks before the scheduler
// runs.
func TestK42_ThePodsThatAreExpectedAreBound(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *rig.Options) { o.Args = append(o.Args, "--ignore-dra-requests=false") })
	pools := r.devicePools()
	for _, class := range priorities() {
		r.create(class)
	}
	random := rand.New(rand.NewPCG(seedOf(t), 42))
	count := map[string]int{}
	for number, all := 0, deviceCases(t); number < all; {
		if err := r.Cluster.StopComponent(cluster.Scheduler); err != nil {
			t.Fatal(err)
		}
		var cases []*deviceCase
		for i, nodes := range pools {
			if number < all {
				cases = append(cases, drawCase(random, number, poolName(i), nodes))
				number++
			}
		}
		r.judge(cases, count)
	}
	t.Logf("verdicts by kind of case: %v", count)
	for _, some := range []string{"equal expected", "equal refused", "pinned expected", "pinned refused",
		"shared expected", "bad refused", "allocated refused"} {
		if count[some] == 0 {
			t.Errorf("no pod is %s", some)
		}
	}
}

func poolName(i int) string { return fmt.Sprintf("pool-%d", i) }

// devicePools makes the pools, and returns the names of their nodes.
func (r *testRig) devicePools() [devicePools][]string {
	r.t.Helper()
	var pools [devicePools][]string
	for i := range pools {
		r.apply(kwokPool(poolName(i),
			amd64Linux+"\n- {key: node.kubernetes.io/instance-type, operator: In, values: [c-2x-amd64-linux]}",
			fmt.Sprintf("replicas: %d", nodesOfAPool)))
	}
	r.eventually(later, "the nodes of the pools to be initialized", func(ctx context.Context) (bool, string, error) {
		nodes, err := r.nodes(ctx)
		pools = [devicePools][]string{}
		for name, node := range nodes {
			if node.Labels["karpenter.sh/initialized"] == "true" {
				for i := range pools {
					if node.Labels["karpenter.sh/nodepool"] == poolName(i) {
						pools[i] = append(pools[i], name)
					}
				}
			}
		}
		done := true
		for i := range pools {
			slices.Sort(pools[i])
			done = done && len(pools[i]) == nodesOfAPool
		}
		return done, fmt.Sprint(pools), err
	})
	return pools
}

func (r *testRig) create(o client.Object) {
	r.t.Helper()
	if err := r.Client.Create(r.t.Context(), o); err != nil {
		r.t.Fatalf("%T %s: %v", o, o.GetName(), err)
	}
}

// judge shows cases to Joiner, waits for its verdicts on their pods, and then lets kube-scheduler decide.
func (r *testRig) judge(cases []*deviceCase, count map[string]int) {
	r.t.Helper()
	var pods []*corev1.Pod
	of, never := map[string]*deviceCase{}, map[string]bool{}
	for _, c := range cases {
		for _, o := range c.objects {
			r.create(o)
		}
		for _, pod := range c.pods {
			r.create(pod)
			pods, of[pod.Name], never[pod.Name] = append(pods, pod), c, c.never
		}
	}
	r.claimsMade(cases)
	for i := range mostPods { // the highest priority first: Joiner keeps to what it said about a pod
		for _, c := range cases {
			if i < len(c.pods) {
				r.mark(c.pods[i].Name)
			}
		}
	}
	said := r.verdicts(pods)
	if err := r.Cluster.StartComponent(r.t.Context(), cluster.Scheduler); err != nil {
		r.t.Fatal(err)
	}
	bound := r.decided(pods, said, never)
	for _, pod := range pods {
		c, verdict := of[pod.Name], said[pod.Name]
		expected := verdict.Reason == "Nominated"
		count[c.kind+map[bool]string{true: " expected", false: " refused"}[expected]]++
		if expected != (bound[pod.Name] != "") || expected && c.never {
			r.t.Errorf("case %s (%s), pod %s: Joiner says %q, and it is bound to %q\n%s", c.name, c.kind, pod.Name,
				verdict.Note, bound[pod.Name], r.run("get", "resourceslices,resourceclaims", "-A", "-o", "yaml"))
		}
		for _, words := range c.says {
			if !expected && !strings.Contains(verdict.Note, words) {
				r.t.Errorf("case %s (%s), pod %s: Joiner says %q; want %q in it", c.name, c.kind, pod.Name,
					verdict.Note, words)
			}
		}
	}
	if claims, err := r.claims(r.t.Context()); err != nil || len(claims) != devicePools*nodesOfAPool {
		r.t.Fatalf("%d NodeClaims (%v): want those of the static pools, %d", len(claims), err,
			devicePools*nodesOfAPool)
	}
	for _, c := range cases {
		if c.kind == "shared" && bound[c.pods[0].Name] != "" {
			r.another(c, count)
		}
		r.clear(c)
	}
}

// another makes one more pod for a claim that is allocated to one node. The pod may only run on another node, so
// neither Joiner nor the scheduler finds a place for it.
func (r *testRig) another(c *deviceCase, count map[string]int) {
	r.t.Helper()
	var claim resourcev1.ResourceClaim
	if err := r.Client.Get(r.t.Context(), client.ObjectKey{Namespace: "default", Name: c.name}, &claim); err != nil {
		r.t.Fatal(err)
	}
	terms := claim.Status.Allocation.NodeSelector.NodeSelectorTerms
	if len(terms) != 1 || len(terms[0].MatchFields) != 1 {
		return // a device that several nodes reach
	}
	d := drawing{nil, c}
	late := d.pod(corev1.PodResourceClaim{Name: "devices", ResourceClaimName: &c.name})
	late.Spec.NodeSelector = map[string]string{corev1.LabelHostname: c.nodes[0]}
	if c.nodes[0] == terms[0].MatchFields[0].Values[0] {
		late.Spec.NodeSelector = map[string]string{corev1.LabelHostname: c.nodes[1]}
	}
	r.create(late)
	verdict := r.verdicts([]*corev1.Pod{late})[late.Name]
	r.eventually(soon, "kube-scheduler to find no node for "+late.Name,
		func(ctx context.Context) (bool, string, error) {
			var now corev1.Pod
			err := r.Client.Get(ctx, client.ObjectKeyFromObject(late), &now)
			if now.Spec.NodeName != "" {
				r.t.Fatalf("%s is bound to %s, and Joiner says %q", late.Name, now.Spec.NodeName, verdict.Note)
			}
			return len(now.Status.Conditions) > 0, "nothing yet", err
		})
	if verdict.Reason == "Nominated" {
		r.t.Errorf("%s: Joiner says %q", late.Name, verdict.Note)
	}
	count["allocated refused"]++
}

// claimsMade waits until kube-controller-manager has made the claims of templates that exist.
func (r *testRig) claimsMade(cases []*deviceCase) {
	r.t.Helper()
	r.eventually(later, "the claims of templates", func(ctx context.Context) (bool, string, error) {
		for _, c := range cases {
			if c.never {
				continue
			}
			for _, pod := range c.pods {
				var now corev1.Pod
				if err := r.Client.Get(ctx, client.ObjectKeyFromObject(pod), &now); err != nil {
					return false, "", err
				}
				if pod.Spec.ResourceClaims[0].ResourceClaimTemplateName != nil &&
					len(now.Status.ResourceClaimStatuses) == 0 {
					return false, pod.Name + " has no claim", nil
				}
			}
		}
		return true, "", nil
	})
}

// mark sets on a pod what kube-scheduler would set: that it finds no node.
func (r *testRig) mark(name string) {
	r.t.Helper()
	var pod corev1.Pod
	if err := r.Client.Get(r.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &pod); err != nil {
		r.t.Fatal(err)
	}
	before := pod.DeepCopy()
	pod.Status.Conditions = append(pod.Status.Conditions,
		corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable, Message: markedByTest, LastTransitionTime: metav1.Now()})
	if err := r.Client.Status().Patch(r.t.Context(), &pod, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}

// verdicts waits until Joiner has said where each pod should run, or why it cannot.
func (r *testRig) verdicts(pods []*corev1.Pod) map[string]eventsv1.Event {
	r.t.Helper()
	said := map[string]eventsv1.Event{}
	r.eventually(later, "what Joiner says of each pod", func(ctx context.Context) (bool, string, error) {
		var list eventsv1.EventList
		if err := r.Client.List(ctx, &list, client.InNamespace("default")); err != nil {
			return false, "", err
		}
		clear(said)
		for _, e := range list.Items {
			if e.ReportingController == "karpenter" && e.Regarding.Kind == "Pod" &&
				said[e.Regarding.Name].Reason != "Nominated" {
				said[e.Regarding.Name] = e
			}
		}
		for _, pod := range pods {
			if said[pod.Name].Note == "" {
				return false, "nothing about " + pod.Name, nil
			}
		}
		return true, "", nil
	})
	return said
}

// decided waits until kube-scheduler has bound the expected pods and has tried the others. It does not wait for those
// that must never run: the scheduler does not even try some of them. It returns the nodes of the bound pods.
func (r *testRig) decided(pods []*corev1.Pod, said map[string]eventsv1.Event,
	never map[string]bool) map[string]string {
	r.t.Helper()
	bound := map[string]string{}
	err := r.Eventually(r.t.Context(), soon, "kube-scheduler to decide",
		func(ctx context.Context) (bool, string, error) {
			clear(bound)
			waits := ""
			for _, pod := range pods {
				var now corev1.Pod
				if err := r.Client.Get(ctx, client.ObjectKeyFromObject(pod), &now); err != nil {
					return false, "", err
				}
				bound[pod.Name] = now.Spec.NodeName
				tried := slices.ContainsFunc(now.Status.Conditions, func(c corev1.PodCondition) bool {
					return c.Type == corev1.PodScheduled && c.Message != markedByTest
				})
				if now.Spec.NodeName == "" && (said[pod.Name].Reason == "Nominated" || !tried && !never[pod.Name]) {
					waits = fmt.Sprintf("%s is not bound: %v", pod.Name, now.Status.Conditions)
				}
			}
			return waits == "", waits, nil
		})
	if err != nil {
		r.t.Error(err)
	}
	return bound
}

// clear removes what a case has made. Classes and templates stay, since nothing refers to them any more.
func (r *testRig) clear(c *deviceCase) {
	r.t.Helper()
	for _, pod := range c.pods {
		if err := r.Client.Delete(r.t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
			r.t.Fatal(err)
		}
	}
	for _, o := range c.objects {
		switch o.(type) {
		case *resourcev1.ResourceSlice, *resourcev1.ResourceClaim:
			if err := r.Client.Delete(r.t.Context(), o); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}
