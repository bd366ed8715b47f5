package nodescheduling

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/api/crd"
	configv1 "github.com/joiner-autoscaler/joiner/api/openshiftconfig/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
)

// sample is the admission section of the design's example, as it is written there, in the file that kube-apiserver reads.
const sample = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: scheduling.openshift.io/NodeSchedulingPolicy
  configuration:
    apiVersion: scheduling.openshift.io/alphav1
    kind: NodeSchedulingPolicyConfig
    groups:
    - name: ControlPlane
      labelSelector:
        matchLabels:
          node-role.kubernetes.io/control-plane: ""
      mode: Inform
      authorizedUsers:
      - openshift-kube-scheduler/openshift-kube-scheduler-sa
      - ...
`

// sampleScheduler is the design's example of the object.
const sampleScheduler = `apiVersion: config.openshift.io/v1
kind: Scheduler
metadata:
   name: cluster
spec:
   mastersSchedulable: false
   schedulingGroups:
   - name: ControlPlane
     mode: Inform
     authorizedUsers:
     - "system:vendor:xxx-serviceaccount"
     - "system:vendor:yyy-serviceaccount"
`

// server starts an API server of its own with these flags, without the world of the scripts: there are no nodes, and no
// kind Scheduler.
func server(t *testing.T, options cluster.Options) (*guarded, error) {
	t.Helper()
	binary, err := cluster.BinaryFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	options.Binary, options.Components = binary, []cluster.Component{cluster.Etcd, cluster.APIServer}
	running, err := cluster.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
	})
	g := &guarded{Cluster: running}
	if g.admin, err = running.RESTConfig("admin"); err != nil {
		t.Fatal(err)
	}
	people, _, _ := strings.Cut(placing.World, "---")
	accounts := ""
	for _, namespace := range []string{"app", "ops"} {
		accounts += "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}\n"
	}
	if err := g.apply(t.Context(), people+accounts); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"app", "ops"} {
		if _, err := g.kubectl(t.Context(), "", "create", "serviceaccount", "default", "--namespace="+namespace); err != nil {
			t.Fatal(err)
		}
	}
	return g, nil
}

// N1, H2, N12: the design's own YAML, as it is written, is what a server runs with. N40: mode Inform lets pass and warns.
func TestN1_TheSampleOfTheDesignLoads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "admission.yaml")
	if err := os.WriteFile(file, []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := server(t, cluster.Options{ExtraArgs: map[cluster.Component][]string{cluster.APIServer: {
		"--enable-admission-plugins=scheduling.openshift.io/NodeSchedulingPolicy", "--feature-gates=OpenShiftNodeSchedulingPolicy=true",
		"--admission-control-config-file=" + file,
	}}})
	if err != nil {
		t.Fatal(err)
	}
	g.expect(t, "warn ControlPlane/UnknownNode", "alice create pod app/a node=cp1")
}

// N7: the design's own Scheduler, as it is written. It says Inform.
func TestN7_TheSampleSchedulerIsTaken(t *testing.T) {
	g := begin(t, bare)
	if err := g.apply(t.Context(), sampleScheduler); err != nil {
		t.Fatal(err)
	}
	g.eventually(t, "warn ControlPlane/NodeName", "alice create pod app/- node=cp1 dry-run")
}

// N12, N61: without nodes and without the kind Scheduler the server becomes ready, ordinary and static pods come up, and
// the list of the file holds.
func TestN61_AClusterWithoutNodesComesUp(t *testing.T) {
	g, err := server(t, cluster.Options{NodeSchedulingPolicy: placing.Policy})
	if err != nil {
		t.Fatal(err)
	}
	g.expect(t, "allow", "alice create pod app/ordinary")
	g.expect(t, "allow", "alice create pod app/tolerant tolerate=*")
	g.expect(t, "allow", "system:node:cp1 create pod ops/etcd node=cp1 mirror")
	g.expect(t, "allow", "system:admin create pod ops/admin node=cp1")
	g.expect(t, "deny ControlPlane/UnknownNode", "alice create pod app/early node=cp1")
}

// N5, N4: enabled and configured, but the gate is off; or enabled and not configured: nothing happens.
func TestN5_WithoutTheGateNothingHappens(t *testing.T) {
	for name, options := range map[string]cluster.Options{
		"no gate": {NodeSchedulingPolicy: placing.Policy, ExtraArgs: map[cluster.Component][]string{cluster.APIServer: {"--feature-gates=OpenShiftNodeSchedulingPolicy=false"}}},
		"no configuration": {ExtraArgs: map[cluster.Component][]string{cluster.APIServer: {
			"--enable-admission-plugins=scheduling.openshift.io/NodeSchedulingPolicy", "--feature-gates=OpenShiftNodeSchedulingPolicy=true"}}},
	} {
		g, err := server(t, options)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		g.expect(t, "allow", "alice create pod app/a node=cp1")
	}
}

// N2: a server with a wrong configuration ends and names the field. The rest of what can be wrong is in the script
// 13_config.
func TestN2_AWrongConfigurationStopsTheStart(t *testing.T) {
	for want, change := range map[string][2]string{
		"groups[0].mode":          {"mode: Enable", "mode: Enabled"},
		"groups[0].labelSelector": {"{matchLabels: {node-role.kubernetes.io/control-plane: \"\"}}", "{}"},
		"unknown field":           {"authorizedUsers", "authorisedUsers"},
	} {
		wrong := strings.Replace(placing.Policy, change[0], change[1], 1)
		if wrong == placing.Policy {
			t.Fatalf("%q is not in the policy", change[0])
		}
		if _, err := server(t, cluster.Options{NodeSchedulingPolicy: wrong}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that names %s", err, want)
		}
	}
}

// N60, N10: the file says Disable, and Scheduler says Enable. From its first answer on, a server that starts again holds to
// Scheduler, which it must read first.
func TestN60_ARestartOpensNoGap(t *testing.T) {
	g, err := server(t, cluster.Options{NodeSchedulingPolicy: strings.Replace(placing.Policy, "mode: Enable", "mode: Disable", 1)})
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := crd.OpenShift()
	if err != nil {
		t.Fatal(err)
	}
	for _, manifest := range manifests {
		if err := g.apply(t.Context(), string(manifest)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := g.kubectl(t.Context(), "", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"); err != nil {
		t.Fatal(err)
	}
	const line, want = "alice create pod app/- node=cp1 dry-run", "deny ControlPlane/UnknownNode"
	g.expect(t, "allow", line)
	g.set(t, configv1.Enable)
	g.eventually(t, want, line)
	if err := g.KillComponent(cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	ready := make(chan error, 1)
	go func() { ready <- g.StartComponent(t.Context(), cluster.APIServer) }()
	answers := 0
	for up := false; !up; {
		select {
		case err := <-ready:
			if err != nil {
				t.Fatal(err)
			}
			up = true
		default:
		}
		// While the server does not answer, or not yet as it should, that is an error.
		if got, err := placing.Ask(t.Context(), g.admin, line, placing.People); err == nil {
			answers++
			if got != want && got != "deny ControlPlane/NodesNotReady" {
				t.Fatalf("answer %d is %s, want %s", answers, got, want)
			}
		}
	}
	if answers == 0 {
		t.Error("no answer")
	}
	g.eventually(t, want, line)
}
