package cluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

// Two clusters that start at the same moment share neither ports nor users, run
// pods, and leave nothing behind.
func TestTwoClustersStartAtOnceRunPodsAndLeaveNothing(t *testing.T) {
	t.Parallel()
	path := binary(t)
	var clusters [2]*cluster.Cluster
	var failed [2]error
	done := make(chan int)
	for i := range clusters {
		go func() {
			clusters[i], failed[i] = cluster.Start(bounded(t), cluster.Options{Binary: path, Log: testLog{t}})
			done <- i
		}()
	}
	<-done
	<-done
	if err := errors.Join(failed[:]...); err != nil {
		t.Fatal(err)
	}
	for _, c := range clusters {
		t.Cleanup(func() { _ = c.Stop() })
	}
	for _, c := range clusters {
		set := clients(t, c, "admin")
		addNodes(t, set, "node-a", "node-b")
		addDeployment(t, set, "web", 5)
	}
	for _, c := range clusters {
		waitAvailable(t, clients(t, c, "admin"), "web", 5)
	}
	bothNodesUsed(t, clusters[0])

	for _, c := range clusters {
		pids := c.PIDs()
		if len(pids) != 5 {
			t.Errorf("%d components run, want 5: %v", len(pids), pids)
		}
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
		for component, pid := range pids {
			if alive(pid) {
				t.Errorf("%s (process %d) is alive after Stop", component, pid)
			}
		}
		mustBeGone(t, c.Dir())
	}
}

// bothNodesUsed asks the real kubectl: five pods of one core on two nodes of
// four cores cannot all be on one.
func bothNodesUsed(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	out, err := c.Kubectl(bounded(t), "get", "pods", "-o", "wide").CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl: %v\n%s", err, out)
	}
	if text := string(out); strings.Count(text, "Running") != 5 ||
		!strings.Contains(text, "node-a") || !strings.Contains(text, "node-b") {
		t.Errorf("kubectl get pods does not show 5 running pods on both nodes:\n%s", text)
	}
}

func TestOnlyTheComponentsThatAreAskedForStart(t *testing.T) {
	t.Parallel()
	c := start(t, cluster.Options{Components: []cluster.Component{cluster.APIServer, cluster.Etcd}})
	pids := c.PIDs()
	if len(pids) != 2 || pids[cluster.Etcd] == 0 || pids[cluster.APIServer] == 0 {
		t.Errorf("running are %v, want etcd and kube-apiserver", pids)
	}
}

// A component that does not become ready is named, with the end of its log.
// Those that started before it are ended.
func TestAFailedStartShowsTheLogOfTheComponent(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "cluster")
	_, err := cluster.Start(bounded(t), cluster.Options{
		Binary: binary(t), Dir: dir, Log: testLog{t},
		ExtraArgs: map[cluster.Component][]string{cluster.APIServer: {"--service-cluster-ip-range=nonsense"}},
	})
	if err == nil {
		t.Fatal("a cluster started with an impossible flag")
	}
	for _, want := range []string{"kube-apiserver ended", "not a valid cidr",
		filepath.Join(dir, "logs", "kube-apiserver.log")} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %q: %v", want, err)
		}
	}
	if left := processesWith(t, dir); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// A directory that was kept starts again: data, users and their kubeconfigs
// survive, even if the API server had to move to another port.
func TestAKeptDirectoryStartsAgain(t *testing.T) {
	t.Parallel()
	options := cluster.Options{Dir: t.TempDir(), Keep: true}
	first := start(t, options)
	kubeconfig, err := first.Kubeconfig("joiner", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	before := clients(t, first, "joiner")
	if _, err := before.CoreV1().ConfigMaps("default").Create(bounded(t),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Start(bounded(t), cluster.Options{Binary: binary(t), Dir: options.Dir}); err == nil ||
		!strings.Contains(err.Error(), "another cluster runs in this directory") {
		t.Errorf("a second start in the directory of a running cluster: %v", err)
	}
	address := before.CoreV1().RESTClient().Get().URL().Host
	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}
	occupy(t, address)

	second := start(t, options)
	after := clients(t, second, "joiner")
	if moved := after.CoreV1().RESTClient().Get().URL().Host; moved == address {
		t.Errorf("the API server is still at %s, which is occupied", moved)
	}
	if _, err := after.CoreV1().ConfigMaps("default").Get(bounded(t), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("reading with %s what the first run wrote: %v", kubeconfig, err)
	}
}

// A minted user may do nothing that RBAC does not grant it.
func TestAMintedUserHasItsNameAndNoRights(t *testing.T) {
	t.Parallel()
	c := start(t, cluster.Options{Audit: true})
	if _, err := c.Kubeconfig("admin"); err == nil {
		t.Error("the admin's identity could be replaced")
	}
	if _, err := c.Kubeconfig("joiner"); err != nil {
		t.Fatal(err)
	}
	set := clients(t, c, "joiner")
	const asked = 3
	for range asked {
		if _, err := set.CoreV1().Nodes().List(bounded(t), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Fatalf("listing nodes as a user without rights: %v", err)
		}
	}
	// The audit log is written before the answer is sent.
	counts, err := cluster.CountRequests(c.AuditLog(), func(e cluster.Event) bool { return e.Code == 403 })
	if err != nil {
		t.Fatal(err)
	}
	got := counts.Total(func(k cluster.RequestKind) bool {
		return k.User == "joiner" && k.Verb == "list" && k.Resource == "nodes" && k.UserAgent != ""
	})
	if got != asked {
		t.Errorf("the audit log has %d refused lists of nodes by joiner, want %d: %v", got, asked, counts)
	}
}

// Components can be killed and started again one by one; a cluster whose etcd
// and API server crashed still runs pods, and a crash that nobody asked for is
// reported.
func TestComponentsStartAgainAfterACrash(t *testing.T) {
	t.Parallel()
	c := start(t, cluster.Options{})
	for _, component := range []cluster.Component{cluster.APIServer, cluster.Etcd} {
		if err := c.KillComponent(component); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.StopComponent(cluster.Etcd); err == nil {
		t.Error("stopping a component that does not run was no error")
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.AdminKubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(config.Host, "https://")
	if taken, err := net.Listen("tcp", address); err == nil {
		t.Errorf("the port of an API server that is down was given away: %v", taken.Close())
	}
	if open, err := net.Dial("tcp", address); err == nil {
		t.Errorf("an API server that is down takes connections: %v", open.Close())
	}
	for _, component := range []cluster.Component{cluster.Etcd, cluster.APIServer} {
		if err := c.StartComponent(bounded(t), component); err != nil {
			t.Fatal(err)
		}
	}
	set := clients(t, c, "admin")
	addNodes(t, set, "node-a")
	addDeployment(t, set, "web", 2)
	waitAvailable(t, set, "web", 2)

	if err := syscall.Kill(c.PIDs()[cluster.Scheduler], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-c.Failed():
		if !strings.Contains(err.Error(), "kube-scheduler ended: signal: killed") {
			t.Errorf("the report of the crash: %v", err)
		}
	case <-bounded(t).Done():
		t.Fatal("the crash of the scheduler was not reported")
	}
	if err := c.StartComponent(bounded(t), cluster.Scheduler); err != nil {
		t.Error(err)
	}
}

// A process that embeds the library may die by SIGKILL, which it cannot
// notice. Its components end all the same.
func TestAKilledParentLeavesNoProcess(t *testing.T) {
	t.Parallel()
	binary(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	helper := exec.Command(self)
	helper.Env = append(os.Environ(), helperDirEnv+"="+filepath.Join(t.TempDir(), "cluster"))
	helper.Stderr = os.Stderr
	out, err := helper.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := helper.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = helper.Process.Kill() })
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	var pids map[cluster.Component]int
	if err := json.Unmarshal(line, &pids); err != nil {
		t.Fatalf("the helper printed %q: %v", line, err)
	}
	if len(pids) != 5 {
		t.Fatalf("the helper started %v, want 5 components", pids)
	}
	for component, pid := range pids {
		if !alive(pid) {
			t.Errorf("%s (process %d) is not alive before the kill", component, pid)
		}
	}
	if err := helper.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(context.Context) (bool, error) {
		for component, pid := range pids {
			if alive(pid) {
				return false, errors.New(string(component) + " is alive")
			}
		}
		return true, nil
	})
	_ = helper.Wait() // It was killed; the error says so.
}
