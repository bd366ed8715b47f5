package nodescheduling

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

// sample is the admission section of the design's example, as written there, in the file that kube-apiserver reads.
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

const (
	enable = "--enable-admission-plugins=scheduling.openshift.io/NodeSchedulingPolicy"
	gate   = "--feature-gates=OpenShiftNodeSchedulingPolicy="
)

// serve starts an API server of its own with a policy and flags. There are no nodes, and no kind Scheduler.
func serve(t *testing.T, policy string, args ...string) (guarded, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), shared.StartTimeout)
	defer cancel()
	started, err := placingtest.Start(ctx, placingtest.Options{
		Door: placingtest.Plugin, Policy: policy, Args: args, Components: []cluster.Component{
			cluster.Etcd, cluster.APIServer,
		},
	})
	if err != nil {
		return guarded{}, err
	}
	t.Cleanup(func() {
		if err := started.Stop(); err != nil {
			t.Error(err)
		}
	})
	return guarded{started}, nil
}

// N1, H2, N12: a server runs with the design's own YAML, as written. N40: mode Inform allows and warns.
func TestN1_TheSampleOfTheDesignLoads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "admission.yaml")
	if err := os.WriteFile(file, []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := serve(t, "", enable, gate+"true", "--admission-control-config-file="+file)
	if err != nil {
		t.Fatal(err)
	}
	g.Expect(t, "warn ControlPlane/UnknownNode", "alice create pod app/a node=cp1")
	binary, err := cluster.BinaryFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	help, err := exec.CommandContext(t.Context(), binary, "kube-apiserver", "--help").Output()
	if err != nil || !strings.Contains(string(help), "scheduling.openshift.io/NodeSchedulingPolicy") {
		t.Errorf("--enable-admission-plugins does not list the plugin (%v)", err)
	}
}

// N6: no API shows the configuration or accepts one.
func TestN6_NoAPIServesTheConfiguration(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		groups, resources, err := g.Clients.Discovery().ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range groups {
			if group.Name == "scheduling.openshift.io" {
				t.Errorf("the group %s is served", group.Name)
			}
		}
		for _, list := range resources {
			for _, resource := range list.APIResources {
				if strings.Contains(resource.Kind, "NodeSchedulingPolicy") {
					t.Errorf("the kind %s is served", resource.Kind)
				}
			}
		}
	})
}

// N5, N4: enabled and configured, but the gate is off; or enabled and not configured: nothing happens.
func TestN5_WithoutTheGateNothingHappens(t *testing.T) {
	for name, given := range map[string]struct {
		policy string
		args   []string
	}{
		"no gate":          {placing.Policy, []string{gate + "false"}},
		"no configuration": {"", []string{enable, gate + "true"}},
	} {
		g, err := serve(t, given.policy, given.args...)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		g.Expect(t, "allow", "alice create pod app/a node=cp1")
	}
}

// N2: a server with a wrong configuration ends and names the field. The script 13_config has the other mistakes.
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
		if _, err := serve(t, wrong); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that names %s", err, want)
		}
	}
}
