package scenario

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// shapes is how many kinds of pods B-03 and B-04 have.
const shapes = 300

// plain is B-03: pods without constraints in 300 shapes, some with many pods and most with few, on real EC2 types.
func plain(s source, n int) (Scenario, error) {
	kinds := workload(s)
	var cumulated []float64
	sum := 0.0
	for range kinds {
		weight := leastWeight + s.ExpFloat64()*s.ExpFloat64() // skewed as workloads are
		sum += weight
		cumulated = append(cumulated, sum)
	}
	var pods []*corev1.Pod
	for i := range n {
		at, want := 0, s.Float64()*sum
		for cumulated[at] < want {
			at++
		}
		p := kinds[at]
		p.name, p.resourceRev = numbered(p.labels["app"], i), i
		pods = append(pods, p.pod())
	}
	types, err := aws()
	return Scenario{Catalog: types, Pending: pods}, err
}

// leastWeight keeps a shape from being without pods.
const leastWeight = 0.1

// workload draws distinct kinds of pods: 50m to 8 cores, and 0.25 to 10 GiB for each core.
func workload(s source) []podSpec {
	cpus := []int64{50, 100, 150, 200, 250, 300, 400, 500, 600, 750, 1000, 1250, 1500, 2000, 2500, 3000, 4000, 6000,
		8000}
	perCore := []float64{0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 10}
	seen := map[[2]int64]bool{}
	var kinds []podSpec
	for len(kinds) < shapes {
		cpu := pick(s, cpus)
		memory := max(32, int64(float64(cpu)/1000*pick(s, perCore)*1024))
		// Distinct amounts of memory make distinct kinds; a few Mi more tell two of the same draw apart.
		for seen[[2]int64{cpu, memory}] {
			memory += 16
		}
		seen[[2]int64{cpu, memory}] = true
		kinds = append(kinds, podSpec{milliCores: cpu, mebibytes: memory,
			labels: map[string]string{"app": fmt.Sprintf("app-%03d", len(kinds))}})
	}
	return kinds
}

const (
	podsPerNode = 20
	// oneMorePods is how many pods come in turn, each planned alone: enough for a median.
	oneMorePods = 31

	fullType  = "m5.4xlarge" // 16 cores, 64 GiB
	fullShare = 600          // milli-cores at least of each running pod, so that less than 4 cores are left
)

// oneMorePod is B-04: nodes with 20 pods each, and a pod that none of them has room for, so that all have to be ruled
// out. It comes again and again, each time after the last has gone.
func oneMorePod(s source, nodes int) (Scenario, error) {
	types, err := aws()
	if err != nil {
		return Scenario{}, err
	}
	scenario := Scenario{Catalog: types, OneByOne: true}
	zones := []string{"us-east-1a", "us-east-1b", "us-east-1c"}
	version := 0
	for i := range nodes {
		node := Node{Name: numbered("node", i), Type: fullType, Zone: zones[i%len(zones)], CapacityType: "on-demand"}
		for j := range podsPerNode {
			version++
			p := podSpec{
				name: fmt.Sprintf("running-%06d-%02d", i, j), node: node.Name, resourceRev: version,
				milliCores: fullShare + 50*s.Int64N(4), mebibytes: 1024 + 128*s.Int64N(8),
			}
			p.labels = map[string]string{"app": fmt.Sprintf("app-%03d", s.IntN(shapes))}
			node.Pods = append(node.Pods, p.pod())
		}
		scenario.Nodes = append(scenario.Nodes, node)
	}
	for i := range oneMorePods {
		p := podSpec{name: numbered("more", i), milliCores: 4000, mebibytes: 4096,
			labels: map[string]string{"app": "more"}, resourceRev: version + 10 + 2*i}
		scenario.Pending = append(scenario.Pending, p.pod())
	}
	return scenario, nil
}
