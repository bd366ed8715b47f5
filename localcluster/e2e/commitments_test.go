package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// twoCommitments commit to one machine of a type, and to the price of two of another type, 0.067 dollars each.
const twoCommitments = `commitments:
- name: one-s
  requirements:
  - {key: node.kubernetes.io/instance-type, operator: In, values: [s-2x-amd64-linux]}
  instances: 1
- name: two-m
  requirements:
  - {key: node.kubernetes.io/instance-type, operator: In, values: [m-2x-amd64-linux]}
  dollarsPerHour: 0.15
`

// commitmentsRig is a cluster whose Joiner reads twoCommitments from a file.
func commitmentsRig(t *testing.T) *testRig {
	t.Helper()
	file := filepath.Join(t.TempDir(), "commitments.yaml")
	if err := os.WriteFile(file, []byte(twoCommitments), 0o600); err != nil {
		t.Fatal(err)
	}
	return newRig(t, func(o *rig.Options) { o.Args = append(o.Args, "--commitments-file", file) })
}

// sized counts the nodes of a pool by instance type and how they are paid for.
func (r *testRig) sized(pool string) map[string]int {
	r.t.Helper()
	nodes, err := r.nodes(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	counts := map[string]int{}
	for _, node := range nodes {
		if node.Labels["karpenter.sh/nodepool"] == pool {
			counts[node.Labels[corev1.LabelInstanceTypeStable]+" "+node.Labels["karpenter.sh/capacity-type"]]++
		}
	}
	return counts
}

// counts waits until the controller's metrics have these lines.
func (r *testRig) counts(lines ...string) {
	r.t.Helper()
	r.eventually(soon, "metrics "+strings.Join(lines, ", "), func(ctx context.Context) (bool, string, error) {
		text, err := r.scrape(ctx)
		if err != nil {
			return false, "", err
		}
		have := strings.Split(text, "\n")
		missing := slices.DeleteFunc(slices.Clone(lines),
			func(line string) bool { return slices.Contains(have, line) })
		near := slices.DeleteFunc(have,
			func(line string) bool { return !strings.HasPrefix(line, "joiner_commitment") })
		return len(missing) == 0, fmt.Sprintf("missing %q among\n%s", missing, strings.Join(near, "\n")), nil
	})
}

// K-55: as long as commitments have something left, pods get what these pay for: on demand, although spot would be
// cheaper. Then they get the cheapest offering. Metrics say how much is used. A pool with a share of spot keeps it,
// pod by pod and with many at once.
func TestK55_CommitmentsAndTheShareOfSpot(t *testing.T) {
	t.Parallel()
	r := commitmentsRig(t)
	twoCores := amd64Linux + "\n- {key: node.kubernetes.io/instance-type, operator: In, values: " +
		"[c-2x-amd64-linux, s-2x-amd64-linux, m-2x-amd64-linux]}"
	r.apply(kwokPool("default", twoCores, quiet))
	r.counts(`joiner_commitments_file_read 1`, `joiner_commitment{commitment="one-s",unit="instances"} 1`,
		`joiner_commitment{commitment="two-m",unit="dollars_per_hour"} 0.15`,
		`joiner_commitment_used{commitment="one-s",unit="instances"} 0`,
		`joiner_commitment_used{commitment="two-m",unit="dollars_per_hour"} 0`)

	pinned := func(pool string) string { return "nodeSelector: {karpenter.sh/nodepool: " + pool + "}" }
	r.apply(deployment("web", 1, "{cpu: 1500m}", pinned("default")))
	r.allRunning(1, later)
	if got := fmt.Sprint(r.sized("default")); got != "map[s-2x-amd64-linux on-demand:1]" {
		t.Errorf("the first node is %s: want the machine that is paid for", got)
	}
	r.counts(`joiner_commitment_used{commitment="one-s",unit="instances"} 1`)
	r.run("scale", "deployment", "web", "--replicas=5")
	r.allRunning(5, later)
	if got := fmt.Sprint(r.sized("default")); got !=
		"map[c-2x-amd64-linux spot:2 m-2x-amd64-linux on-demand:2 s-2x-amd64-linux on-demand:1]" {
		t.Errorf("the nodes are %s: want what both commitments pay for, and the cheapest spot beside", got)
	}
	r.counts(`joiner_commitment_used{commitment="one-s",unit="instances"} 1`,
		`joiner_commitment_used{commitment="two-m",unit="dollars_per_hour"} 0.13436`)

	onlySmall := amd64Linux + "\n- {key: node.kubernetes.io/instance-type, operator: In, values: [c-2x-amd64-linux]}"
	r.apply(kwokPool("mixed", onlySmall, quiet))
	r.run("annotate", "nodepool", "mixed", "joiner.sh/spot-ratio=50%")
	r.apply(deployment("mixed", 1, "{cpu: 1500m}", pinned("mixed")))
	r.allRunning(6, later)
	if got := fmt.Sprint(r.sized("mixed")); got != "map[c-2x-amd64-linux on-demand:1]" {
		t.Errorf("the first node of the mixed pool is %s: want it on demand", got)
	}
	r.run("scale", "deployment", "mixed", "--replicas=5")
	r.allRunning(10, later)
	if got := fmt.Sprint(r.sized("mixed")); got != "map[c-2x-amd64-linux on-demand:3 c-2x-amd64-linux spot:2]" {
		t.Errorf("the nodes of the mixed pool are %s: want at most half of five spot, and as many of them as that",
			got)
	}
	r.counts(`joiner_commitment_used{commitment="one-s",unit="instances"} 1`)
	r.run("annotate", "--overwrite", "nodepool", "mixed", "joiner.sh/spot-ratio=half")
	r.told("NodePool", "mixed", "IgnoredField",
		`annotation joiner.sh/spot-ratio is "half": want a whole percentage from 0% to 100%`)
}
