package conversion

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/joiner-autoscaler/joiner/api/crd"
	"github.com/joiner-autoscaler/joiner/deploy"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	joiner "github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// replicated is a cluster whose two replicas of joiner serve v1beta1 behind one front. One of them leads.
type replicated struct {
	*rig
	running  *joiner.Rig
	names    metadata.Interface // lists without specs: the server converts all the same
	front    *front
	programs []joiner.Program
	replicas []*joiner.Controller
}

// startReplicated starts a cluster with the CRDs and rights that a user installs, and both replicas. args are further
// flags of joiner.
func startReplicated(t *testing.T, args ...string) *replicated {
	t.Helper()
	options, err := joiner.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	// Lists of a resource version come from etcd then, and not from a cache of what was converted before.
	options.ExtraArgs = map[cluster.Component][]string{
		cluster.APIServer: {"--feature-gates=ListFromCacheSnapshot=false"},
	}
	options.WithoutJoiner, options.WithoutManifests = true, true
	ports := []string{freePort(t), freePort(t)}
	r := &replicated{front: newFront(t, "127.0.0.1:"+ports[0], "127.0.0.1:"+ports[1])}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if r.running, err = joiner.Start(ctx, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.running.Stop(); err != nil {
			t.Error(err)
		}
	})
	config, err := r.running.Cluster.RESTConfig("admin")
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if r.names, err = metadata.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	r.rig = &rig{t: t, cluster: r.running.Cluster, client: client}
	r.new()
	for i, port := range ports {
		program := joiner.JoinerProgram(options.Joiner, append([]string{
			"--disable-leader-election=false", "--v1beta1", "--webhook-url", r.front.url(), "--webhook-port", port,
		}, args...)...)
		program.Name, program.User = fmt.Sprintf("joiner-%d", i), joiner.User
		r.programs = append(r.programs, program)
		replica, err := r.running.Run(ctx, program)
		if err != nil {
			t.Fatal(err)
		}
		r.replicas = append(r.replicas, replica)
	}
	return r
}

// new installs what a user installs: CRDs of v1, and the rights with and without v1beta1.
func (r *rig) new() {
	manifests, err := crd.Manifests()
	if err != nil {
		r.t.Fatal(err)
	}
	var all strings.Builder
	for _, documents := range []map[string][]byte{manifests, deploy.Manifests(), deploy.V1beta1()} {
		for _, content := range documents {
			fmt.Fprintf(&all, "---\n%s\n", strings.TrimPrefix(string(content), "---\n"))
		}
	}
	r.must(all.String(), "apply", "--server-side", "-f", "-")
	r.must("", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
}

// TestReplicasServeV1beta1 is not parallel, so that no test of this package lowers its rate.
func TestReplicasServeV1beta1(t *testing.T) {
	r := startReplicated(t, "--cert-lifetime", lifetime.String())
	r.fill()
	for _, part := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"certificates are renewed under load", r.renews},
		{"a killed replica is not missed", r.survives},
		{"CRDs that are applied anew serve v1beta1 again", r.restores},
	} {
		if !t.Run(part.name, part.run) {
			return
		}
	}
}

// survives: V-20, after a kill -9 of the leader no read fails. The other replica serves, without leading yet. Only
// reads that the killed one was about to answer may fail.
func (r *replicated) survives(t *testing.T) {
	var killed atomic.Bool
	var reads, cut, failed atomic.Int64
	var running sync.WaitGroup
	end := time.Now().Add(4 * time.Second)
	for range 4 {
		running.Go(func() {
			for time.Now().Before(end) {
				after := killed.Load()
				_, err := r.client.Resource(pools("v1beta1")).Get(t.Context(), "p0", metav1.GetOptions{})
				switch {
				case err == nil:
					reads.Add(1)
				case after:
					failed.Add(1)
					t.Errorf("a read fails: %v", err)
				default:
					cut.Add(1)
				}
			}
		})
	}
	time.Sleep(time.Second)
	if err := r.replicas[0].Kill(); err != nil {
		t.Error(err)
	}
	killed.Store(true)
	running.Wait()
	t.Logf("%d reads, %d that the kill cut off, %d failures after it", reads.Load(), cut.Load(), failed.Load())
	if reads.Load() < 20 {
		t.Errorf("%d reads are too few to tell anything", reads.Load())
	}
}

// restores: V-20, a CRD is replaced by one without v1beta1, and the new leader gives it back. It also serves v1beta1
// in a CRD installed later, and changes nothing that is right already.
func (r *replicated) restores(t *testing.T) {
	manifests, err := crd.Manifests()
	if err != nil {
		t.Fatal(err)
	}
	r.must("", "delete", "crd", "ec2nodeclasses.karpenter.k8s.aws")
	r.must(string(manifests["karpenter.sh_nodepools.yaml"]), "replace", "-f", "-")
	r.must(string(manifests["karpenter.k8s.aws_ec2nodeclasses.yaml"]), "create", "-f", "-")
	r.eventually("v1beta1 in the CRDs", func() (bool, string) {
		versions := r.must("", "get", "crd", "nodepools.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws", "-o",
			"jsonpath={.items[*].spec.versions[*].name}")
		return versions == "v1 v1beta1 v1 v1beta1", versions
	})
	for _, read := range [][]string{{"get", "nodepools.v1beta1.karpenter.sh", "p0"},
		{"get", "ec2nodeclasses.v1beta1.karpenter.k8s.aws"}} {
		r.eventually("v1beta1 to be read", func() (bool, string) {
			output, err := r.kubectl("", read...)
			return err == nil, output
		})
	}
	for i, most := range []int{1, 2} { // at the start of the first, and one for each CRD by the second
		log, err := os.ReadFile(r.replicas[i].Log())
		if changes := strings.Count(string(log), "changed CustomResourceDefinitions"); err != nil || changes > most {
			t.Errorf("replica %d has changed CRDs %d times, want at most %d; %v", i, changes, most, err)
		}
	}
}

// fill makes objects of v1.
func (r *rig) fill() {
	var all strings.Builder
	for i := range 200 {
		fmt.Fprintf(&all, "---\n"+class, i)
	}
	for i := range 5 {
		fmt.Fprintf(&all, "---\n%s", strings.Replace(v1Pool, "gitops", fmt.Sprintf("p%d", i), 1))
	}
	r.must(all.String(), "create", "-f", "-")
}

const class = `
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {name: c%d}
spec:
  amiSelectorTerms: [{alias: al2023@latest}]
  role: nodes
  subnetSelectorTerms: [{tags: {a: b}}]
  securityGroupSelectorTerms: [{tags: {a: b}}]
  kubelet: {maxPods: 20}
`
