package e2e

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// K-53: two controllers both believe they lead, and one of them has an old picture. The work for two pools is scaled
// up and down; one pool has a hard limit of its own. At every event of a watch, the count of all NodeClaims is within
// the cluster's hard limit, and it reaches the limit in every round. The pool's count is never above its own limit.
func TestK53_TwoControllersKeepTheLimitOfTheCluster(t *testing.T) {
	const all, own = 5, 2
	args := []string{"--batch-idle-duration=100ms", "--batch-max-duration=1s",
		fmt.Sprintf("--max-node-claims-hard=%d", all)}
	var binary string
	r := newRig(t, func(o *rig.Options) { binary, o.Args = o.Joiner, args })
	r.apply(kwokPool("default", amd64Linux, quick))
	r.apply(kwokPool("small", amd64Linux, quick+fmt.Sprintf("\nhardLimits: {nodes: %d}", own)))
	spread := "topologySpreadConstraints:\n- {topologyKey: kubernetes.io/hostname, maxSkew: 1, minDomains: 9, " +
		"whenUnsatisfiable: DoNotSchedule, " +
		"labelSelector: {matchLabels: {app: %s}}}\nnodeSelector: {karpenter.sh/nodepool: %s}"
	r.apply(deployment("web", 0, "{cpu: '1'}", fmt.Sprintf(spread, "web", "default")))
	r.apply(deployment("db", 0, "{cpu: '1'}", fmt.Sprintf(spread, "db", "small")))
	r.joinerBehind(binary, func(next http.RoundTripper) http.RoundTripper { return slow{next} }, args...)
	total, small := r.watchClaims(""), r.watchClaims("karpenter.sh/nodepool=small")
	start := time.Now()
	r.upAndDown(total, all, 4, "web", "db")
	if most := small.max(); most != own {
		t.Errorf("at most %d NodeClaims of the small pool, want its hard limit, %d", most, own)
	}
	t.Logf(
		"%d rounds in %s, %d claims came or went, at most %d at a time at a limit of %d, of the small pool %d at %d",
		rounds(t), time.Since(start).Round(time.Second), total.events, total.max(), all, small.max(), own)
}

// K-53: the hard limit of the cluster as users see it: names, texts, the table. Then a lower limit, and replacements,
// which wait.
func TestK53_TheHardLimitOfTheCluster(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *rig.Options) { o.Args = []string{"--max-node-claims-hard=3"} })
	slots := regexp.MustCompile(`^node-slot-[0-2]$`)
	r.follow(claimResource, "", func(_ watch.EventType, claim *unstructured.Unstructured) {
		if !slots.MatchString(claim.GetName()) {
			t.Errorf("claim %s is in no slot of three", claim.GetName())
		}
	})
	r.apply(kwokPool("default", amd64Linux, quick))
	r.apply(deployment("web", 5, "{cpu: '1'}", oneEach("web")))
	r.count(3)
	const full = "NodeClaims 3 of 3 in the whole cluster (--max-node-claims-hard)"
	r.told("Pod", "", "FailedScheduling", "ClusterLimitNodes: pool default: "+full+
		". To do: raise --max-node-claims-hard of the controller")
	r.told("NodePool", "default", "LimitReached", "ClusterLimitReached: "+full+", and no replacement goes above it")
	r.eventually(soon, "the condition of the pool", func(context.Context) (bool, string, error) {
		said := r.run("get", "nodepool", "default", "-o",
			`jsonpath={.status.conditions[?(@.type=="ClusterLimitReached")]['reason','message']}`)
		return said == "MaxNodeClaimsHard "+full, said, nil
	})
	r.show("The table:", "get", "configmap", "joiner-cluster-limit", "-n", "kube-system", "-o", "jsonpath={.data}")

	r.run("patch", "configmap", "joiner-cluster-limit", "-n", "kube-system", "--type=merge", "-p",
		`{"data":{"limit":"2"}}`)
	r.run("delete", "nodeclaim", "node-slot-0", "--wait=true")
	again := r.watchClaims("")
	if again.until(t.Context(), 5*time.Second, func(n int) bool { return n > 2 }) {
		t.Error("a NodeClaim came in the place of one that went, at a limit that was lowered")
	}
}
