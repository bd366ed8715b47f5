package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

// binary returns the control plane binary. A test without it fails rather than
// skips: a green run must mean that a control plane was started.
func binary(t *testing.T) string {
	t.Helper()
	path, err := cluster.BinaryFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// bounded returns a context that ends with the test, or after startLimit.
func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startLimit)
	t.Cleanup(cancel)
	return ctx
}

// start starts a cluster that is stopped with the test.
func start(t *testing.T, options cluster.Options) *cluster.Cluster {
	t.Helper()
	options.Binary = binary(t)
	options.Log = testLog{t}
	c, err := cluster.Start(bounded(t), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// testLog writes the progress of a cluster into the log of its test.
type testLog struct{ t *testing.T }

var _ io.Writer = testLog{}

func (l testLog) Write(line []byte) (int, error) {
	l.t.Log(strings.TrimRight(string(line), "\n"))
	return len(line), nil
}

func clients(t *testing.T, c *cluster.Cluster, identity string) kubernetes.Interface {
	t.Helper()
	config, err := c.RESTConfig(identity)
	if err != nil {
		t.Fatal(err)
	}
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// eventually polls the cluster until done returns true; its error is shown if
// that takes too long.
func eventually(t *testing.T, done func(context.Context) (bool, error)) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(bounded(t), 50*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (bool, error) {
			var ok bool
			ok, last = done(ctx)
			return ok, nil
		})
	if err != nil {
		t.Fatalf("%v; last: %v", err, last)
	}
}

// addNodes creates fake nodes with four cores each.
func addNodes(t *testing.T, set kubernetes.Interface, names ...string) {
	t.Helper()
	size := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("4"),
		corev1.ResourceMemory: resource.MustParse("16Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	for _, name := range names {
		_, err := set.CoreV1().Nodes().Create(bounded(t), &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{
				Name:        name,
				Labels:      map[string]string{corev1.LabelHostname: name},
				Annotations: map[string]string{cluster.FakeNodeAnnotation: cluster.FakeNodeValue},
			},
			Status: corev1.NodeStatus{Capacity: size, Allocatable: size},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// addDeployment creates a deployment whose pods request one core.
func addDeployment(t *testing.T, set kubernetes.Interface, name string, replicas int32) {
	t.Helper()
	labels := map[string]string{"app": name}
	_, err := set.AppsV1().Deployments(metav1.NamespaceDefault).Create(bounded(t), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "main", Image: "fake",
					Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
						corev1.ResourceCPU: resource.MustParse("1"),
					}},
				}}},
			},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// waitAvailable waits until all replicas of a deployment are available.
func waitAvailable(t *testing.T, set kubernetes.Interface, name string, replicas int32) {
	t.Helper()
	eventually(t, func(ctx context.Context) (bool, error) {
		d, err := set.AppsV1().Deployments(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return d.Status.AvailableReplicas == replicas, fmt.Errorf("status: %+v", d.Status)
	})
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z")
}

func mustBeGone(t *testing.T, dir string) {
	t.Helper()
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("directory %s is still there (%v)", dir, err)
	}
}

// occupy listens on an address until the test ends.
func occupy(t *testing.T, address string) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
}

// processesWith returns the command lines of all processes that mention text, without this one.
func processesWith(t *testing.T, text string) []string {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range paths {
		line, err := os.ReadFile(path) // The process may have ended since.
		if err == nil && strings.Contains(string(line), text) && path != fmt.Sprintf("/proc/%d/cmdline", os.Getpid()) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}
