// Package charts installs the charts with Helm's own commands, of versions 3 and 4, on a real API server (U-11):
// tools/helm builds the commands. There are no controllers, so there is only what a release makes; no pod runs. The
// charts have cluster-wide objects with fixed names, so the tests run one after another.
//
// The binaries come from the environment: JOINER_CONTROLPLANE, and those of helmEnv. Without them the tests fail.
package charts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"github.com/joiner-autoscaler/joiner/charts/chartstest"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

// space is the namespace of all releases, as chartstest renders them.
const space = chartstest.Namespace

// soon is generous: it only matters when something is wrong, or the machine is busy with something else.
const soon = time.Minute

// versions are those of Helm, by the environment variable with the path of the command.
var versions = []struct{ name, env string }{{"Helm 3", "JOINER_HELM3"}, {"Helm 4", "JOINER_HELM4"}}

// plain is an API server with the kinds of Prometheus' operator, so that monitors are rendered.
type plain struct {
	*rig.Rig
	discovery discovery.DiscoveryInterface
	client    dynamic.Interface
}

var sharedCluster = shared.New(start, func(p *plain) error { return p.Stop() })

func TestMain(m *testing.M) { shared.Main(m, sharedCluster) }

func start(ctx context.Context) (*plain, error) {
	binary, err := cluster.BinaryFromEnv()
	if err != nil {
		return nil, err
	}
	r, err := rig.Start(ctx, rig.Options{ControlPlane: binary, WithoutJoiner: true, WithoutManifests: true,
		Components: []cluster.Component{cluster.Etcd, cluster.APIServer}})
	if err != nil {
		return nil, err
	}
	p := &plain{Rig: r}
	if err := p.prepare(ctx); err != nil {
		return nil, fmt.Errorf("%w; stopping: %v", err, r.Stop())
	}
	return p, nil
}

// prepare makes the namespace and the kinds of Prometheus' operator, and the clients.
func (p *plain) prepare(ctx context.Context) error {
	manifests := "{apiVersion: v1, kind: Namespace, metadata: {name: " + space + "}}\n"
	for kind, plural := range map[string]string{"PodMonitor": "podmonitors", "ServiceMonitor": "servicemonitors",
		"PrometheusRule": "prometheusrules"} {
		manifests += fmt.Sprintf(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: %[1]s, plural: %[2]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, kind, plural)
	}
	if err := p.Apply(ctx, manifests); err != nil {
		return err
	}
	if _, err := p.Kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=60s", "crd",
		"--all"); err != nil {
		return err
	}
	config, err := p.Cluster.RESTConfig("admin")
	if err != nil {
		return err
	}
	config.QPS = -1
	if p.discovery, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		return err
	}
	p.client, err = dynamic.NewForConfig(config)
	return err
}

// served returns the kinds that the charts look for, besides those of Kubernetes 1.30.
func served() chartstest.Served {
	return chartstest.Served{"monitoring.coreos.com/v1/PodMonitor", "monitoring.coreos.com/v1/ServiceMonitor",
		"monitoring.coreos.com/v1/PrometheusRule", "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy"}
}

// helm is a version of Helm on the cluster of the package.
type helm struct {
	*plain
	t    *testing.T
	path string
	name string
}

// eachHelm runs a test with each version of Helm.
func eachHelm(t *testing.T, test func(h *helm)) {
	for _, version := range versions {
		t.Run(strings.ReplaceAll(version.name, " ", ""),
			func(t *testing.T) { test(newHelm(t, version.name, version.env)) })
	}
}

func newHelm(t *testing.T, name, env string) *helm {
	t.Helper()
	path := os.Getenv(env)
	if path == "" {
		t.Fatalf("%s is not set: run `make bin/helm3 bin/helm4` and set it to the absolute path of that file", env)
	}
	return &helm{plain: sharedCluster.Get(t), t: t, path: path, name: name}
}

// try runs Helm in the namespace of the releases.
func (h *helm) try(args ...string) (string, error) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 2*soon)
	defer cancel()
	command := h.Cluster.Program(ctx, h.path, append(args, "--namespace", space)...)
	home := h.t.TempDir()
	command.Env = append(command.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %v: %w\n%s", h.name, args, err, output)
	}
	return string(output), err
}

// run is try for a command that has to succeed.
func (h *helm) run(args ...string) string {
	h.t.Helper()
	output, err := h.try(args...)
	if err != nil {
		h.t.Fatal(err)
	}
	return output
}

// source is where a chart is.
func source(chart string) string { return "../../../charts/" + chart }

// put installs a chart, or upgrades its release. The release has the chart's name.
func (h *helm) put(verb, chart string, set map[string]any, more ...string) string {
	h.t.Helper()
	text, err := json.Marshal(chartstest.Nested(set))
	if err != nil {
		h.t.Fatal(err)
	}
	values := h.t.TempDir() + "/values.json"
	if err := os.WriteFile(values, text, 0o600); err != nil {
		h.t.Fatal(err)
	}
	return h.run(append([]string{verb, chart, source(chart), "--values", values}, more...)...)
}

// itsOwn returns the resources that the API server writes itself, also for others' objects.
func itsOwn() []string {
	return []string{"events", "leases", "apiservices", "endpoints", "endpointslices", "componentstatuses",
		"ipaddresses"}
}

// inventory returns all objects of the cluster except those, by kind and name.
func (p *plain) inventory(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	lists, err := p.discovery.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*unstructured.Unstructured{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") || slices.Contains(itsOwn(), resource.Name) {
				continue
			}
			found, err := p.client.Resource(resourceOf(list.GroupVersion, resource)).List(t.Context(),
				metav1.ListOptions{})
			if err != nil {
				t.Fatalf("%s: %v", resource.Name, err)
			}
			for i := range found.Items {
				object := &found.Items[i]
				all[object.GetKind()+"/"+object.GetName()] = object
			}
		}
	}
	return all
}
