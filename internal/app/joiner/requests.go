package joiner

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
)

// countingCalls returns a copy of config that counts each call by verb and kind (U-10). Reads from a cache are no
// calls.
func countingCalls(config *rest.Config, requests *prometheus.CounterVec) *rest.Config {
	own := rest.CopyConfig(config)
	own.Wrap(func(next http.RoundTripper) http.RoundTripper { return &counting{next, requests, kindsCalled()} })
	return own
}

// counting counts the calls that go through it.
type counting struct {
	next     http.RoundTripper
	requests *prometheus.CounterVec
	kinds    map[string]string
}

// RoundTrip implements http.RoundTripper.
func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	verb, kind := c.callOf(r)
	c.requests.WithLabelValues(verb, kind).Inc()
	return c.next.RoundTrip(r)
}

// WrappedRoundTripper is how client-go finds the transport below.
func (c *counting) WrappedRoundTripper() http.RoundTripper { return c.next }

// otherKind stands for kinds that our controllers do not use, and for paths without a kind.
const otherKind = "other"

// kindsCalled maps resources in paths to kinds. It is a closed set, so that no path creates a metric series.
func kindsCalled() map[string]string {
	return map[string]string{
		"pods": "Pod", "nodes": "Node", "namespaces": "Namespace", "configmaps": "ConfigMap", "events": "Event",
		"secrets": "Secret", "persistentvolumes": "PersistentVolume",
		"persistentvolumeclaims": "PersistentVolumeClaim",
		"daemonsets":             "DaemonSet", "deployments": "Deployment", "replicasets": "ReplicaSet",
		"statefulsets": "StatefulSet", "runtimeclasses": "RuntimeClass", "poddisruptionbudgets": "PodDisruptionBudget",
		"storageclasses": "StorageClass", "csinodes": "CSINode", "volumeattachments": "VolumeAttachment",
		"csidrivers": "CSIDriver", "csistoragecapacities": "CSIStorageCapacity",
		"leases": "Lease", "nodepools": "NodePool", "nodeclaims": "NodeClaim", "nodeoverlays": "NodeOverlay",
		"ec2nodeclasses": "EC2NodeClass", "kwoknodeclasses": "KWOKNodeClass",
		"customresourcedefinitions": "CustomResourceDefinition", "pods/eviction": "Eviction",
		"replicationcontrollers": "ReplicationController",
		"resourceclaims":         "ResourceClaim", "resourceslices": "ResourceSlice", "deviceclasses": "DeviceClass",
	}
}

// callOf returns the verb and kind of a call, each from a closed set.
func (c *counting) callOf(r *http.Request) (verb, kind string) {
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return verbOf(r, false), otherKind
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	resource := parts[0]
	if len(parts) > 2 && resource == "pods" && parts[2] == "eviction" {
		resource += "/eviction"
	}
	if kind = c.kinds[resource]; kind == "" {
		kind = otherKind
	}
	return verbOf(r, len(parts) > 1), kind
}

// verbOf returns the verb as RBAC names it; named says that the path ends in a name.
func verbOf(r *http.Request, named bool) string {
	switch r.Method {
	case http.MethodGet:
		switch watch := r.URL.Query().Get("watch"); {
		case watch == "true" || watch == "1":
			return "watch"
		case named:
			return "get"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	return otherKind
}
