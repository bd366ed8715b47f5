package whatif

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

// BenchmarkU31_Look measures one look of joinerctl top at its copy of a cluster: CPU time, whatever else the machine
// does, and the memory that is used and reserved.
func BenchmarkU31_Look(b *testing.B) {
	for _, size := range [][2]int{{300, 3000}, {5000, 100000}} {
		b.Run(fmt.Sprintf("nodes=%d", size[0]), func(b *testing.B) {
			inventory, err := kwok.LoadInventory("", os.ReadFile)
			if err != nil {
				b.Fatal(err)
			}
			before := heap()
			reads, err := NewUnderstanding()
			if err != nil {
				b.Fatal(err)
			}
			began := used(b)
			documents := fleet(size[0], size[1], reads.Of)
			first, held := used(b)-began, heap()-before
			began = used(b)
			for b.Loop() {
				w, err := New(Input{Documents: documents, Catalogue: inventory.Catalog(),
					Now: time.Unix(1_800_000_000, 0)})
				if err != nil {
					b.Fatal(err)
				}
				top := w.Top(TopInput{Resources: []string{"cpu", "memory"}, Sort: SortPrice})
				if len(top.Items) != size[0] {
					b.Fatalf("%d nodes", len(top.Items))
				}
			}
			b.ReportMetric(float64((used(b)-began).Milliseconds())/float64(b.N), "cpu-ms/op")
			b.ReportMetric(float64(first.Milliseconds()), "cpu-ms-first") // before the loop it would be lost
			b.ReportMetric(float64(held)/(1<<20), "MiB-held")
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(m.Sys)/(1<<20), "MiB-system")
			runtime.KeepAlive(documents)
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func used(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// fleet is a cluster of one pool, as an API server tells it, of which what keep keeps.
func fleet(nodes, pods int, keep func(Document) Document) (documents []Document) {
	add := func(content map[string]any) {
		documents = append(documents, keep(Document{Where: "the cluster", Content: content, Stored: true}))
	}
	object := func(version, kind, namespace, name string, spec, status map[string]any) map[string]any {
		metadata := map[string]any{"name": name, "uid": kind + name, "creationTimestamp": "2026-11-20T08:00:00Z",
			"labels": map[string]any{"karpenter.sh/nodepool": "default",
				"node.kubernetes.io/instance-type": "c-4x-amd64-linux", "karpenter.sh/capacity-type": "on-demand",
				"topology.kubernetes.io/zone": "test-zone-a",
				"kubernetes.io/hostname":      name}, "managedFields": []any{map[string]any{
				"manager": strings.Repeat("m", 800),
			}}}
		if namespace != "" {
			metadata["namespace"], metadata["labels"] = namespace, map[string]any{"app": "app-" + name[len(name)-1:]}
		}
		return map[string]any{"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec,
			"status": status}
	}
	class := map[string]any{"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"}
	ready := func(kinds ...string) (list []any) {
		for _, kind := range kinds {
			list = append(list,
				map[string]any{"type": kind, "status": "True", "lastTransitionTime": "2026-11-20T08:00:00Z"})
		}
		return list
	}
	add(object("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", "", "default", map[string]any{}, map[string]any{}))
	add(object("karpenter.sh/v1", "NodePool", "", "default",
		map[string]any{"template": map[string]any{"spec": map[string]any{
			"nodeClassRef": class}}}, map[string]any{"conditions": ready("Ready")}))
	room := map[string]any{"cpu": "16", "memory": "64Gi", "pods": "110"}
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		add(object("v1", "Node", "", name, map[string]any{"providerID": "kwok://" + name},
			map[string]any{"capacity": room,
				"allocatable": room, "conditions": ready("Ready")}))
		add(object("karpenter.sh/v1", "NodeClaim", "", "claim-"+name, map[string]any{"nodeClassRef": class},
			map[string]any{
				"providerID": "kwok://" + name, "nodeName": name, "capacity": room, "allocatable": room,
				"conditions": ready("Launched", "Registered", "Initialized", "Ready")}))
	}
	for i := range pods {
		container := map[string]any{"name": "main", "image": "image",
			"env":       []any{map[string]any{"name": "A", "value": "b"}},
			"resources": map[string]any{"requests": map[string]any{"cpu": "200m", "memory": "512Mi"}}}
		add(object("v1", "Pod", fmt.Sprintf("team-%d", i%40), fmt.Sprintf("web-%d", i), map[string]any{
			"nodeName": fmt.Sprintf("node-%d", i%nodes), "containers": []any{container, container}},
			map[string]any{"phase": "Running", "conditions": ready("Ready", "PodScheduled", "Initialized")}))
	}
	return documents
}
