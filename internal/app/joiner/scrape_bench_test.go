package joiner

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// big is a cluster of 5,000 nodes and 100,000 pods, with what kubelets and Joiner write of them.
func big() (nodes, pods, claims []client.Object) {
	controls, at := true, metav1.Unix(50, 0)
	cpu, memory := resource.MustParse("16"), resource.MustParse("64Gi")
	asked := corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")}
	all := corev1.ResourceList{"cpu": cpu, "memory": memory, "pods": resource.MustParse("110"),
		"ephemeral-storage": resource.MustParse("100Gi")}
	for i := range 5000 {
		name := fmt.Sprint("ip-10-0-0-", i, ".region.compute.internal")
		labels := map[string]string{karpenterv1.NodePoolLabelKey: fmt.Sprint("pool-", i%20),
			"kubernetes.io/arch":          "amd64",
			"topology.kubernetes.io/zone": fmt.Sprint("zone-", i%3), karpenterv1.CapacityTypeLabelKey: "spot",
			"node.kubernetes.io/instance-type": fmt.Sprint("m", i%50, ".4xlarge"), "kubernetes.io/os": "linux"}
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, CreationTimestamp: at}}
		node.Status.Capacity, node.Status.Allocatable = all, all
		for _, kind := range []corev1.NodeConditionType{"Ready", "MemoryPressure", "DiskPressure", "PIDPressure"} {
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: kind, Status: "False",
				Reason: "KubeletSaysSo", LastTransitionTime: at})
		}
		nodes = append(nodes, node)
		claim := &karpenterv1.NodeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pool-", i%20, "-", i), Labels: labels},
		}
		for _, kind := range []string{"Launched", "Registered", "Initialized", "Ready", "ConsistentStateFound",
			"Consolidatable"} {
			claim.Status.Conditions = append(claim.Status.Conditions, karpenterv1.Condition{Type: kind, Status: "True",
				Reason: kind, LastTransitionTime: at})
		}
		claims = append(claims, claim)
		for j := range 20 {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("team-", j),
				Name: fmt.Sprintf("web-%d-%d", i, j), OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1",
					Kind: "ReplicaSet", Name: fmt.Sprint("web-", i%500), Controller: &controls}}}}
			pod.Spec.NodeName, pod.Status.Phase = name, corev1.PodRunning
			pod.Spec.Containers = []corev1.Container{
				{Resources: corev1.ResourceRequirements{Requests: asked, Limits: asked}},
			}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
			pods = append(pods, pod)
		}
	}
	return nodes, pods, claims
}

// K-13: what a scrape of a large cluster costs in processor time, plain and compressed as Prometheus asks for it
// (docs/figures.md).
func BenchmarkScrape(b *testing.B) {
	nodes, pods, claims := big()
	leads := true
	s := scraping(&pods, &leads, defaultObservability())
	s.nodes, s.claims = func() []client.Object { return nodes }, func() []client.Object { return claims }
	for _, encoding := range []string{"identity", "gzip"} {
		b.Run(encoding, func(b *testing.B) {
			b.ReportAllocs()
			began, bytes, series := used(b), 0, 0
			for b.Loop() {
				request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
				request.Header.Set("Accept-Encoding", encoding)
				answer := httptest.NewRecorder()
				s.ServeHTTP(answer, request)
				bytes = answer.Body.Len()
				if encoding == "identity" {
					series = strings.Count(answer.Body.String(), "\n")
				}
			}
			b.ReportMetric((used(b)-began).Seconds()*1000/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(bytes), "bytes")
			b.ReportMetric(float64(series), "lines")
		})
	}
}

// used is the processor time of this process.
func used(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
