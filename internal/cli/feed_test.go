package cli_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	clienttesting "k8s.io/client-go/testing"

	"github.com/joiner-autoscaler/joiner/internal/cli"
)

// until is an output that says when a text stands in it.
type until struct {
	mutex sync.Mutex
	text  bytes.Buffer
	want  map[string]func()
}

func (u *until) Write(data []byte) (int, error) {
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.text.Write(data)
	for want, then := range u.want {
		if strings.Contains(u.text.String(), want) {
			delete(u.want, want)
			then()
		}
	}
	return len(data), nil
}

// TestU05_TopWatches: later changes are shown. Each resource but the leases is listed once, however often top looks at
// it.
func TestU05_TopWatches(t *testing.T) {
	t.Parallel()
	client := live(t)
	nodes := schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	watched := make(chan struct{})
	client.PrependWatchReactor("nodes", func(clienttesting.Action) (bool, watch.Interface, error) {
		events, err := client.Tracker().Watch(nodes, "")
		close(watched)
		return true, events, err
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := make(chan struct{})
	out, failures := &until{want: map[string]func(){"pods: ": func() { close(begun) }, "later": cancel}}, &until{}
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, cli.Config{In: strings.NewReader(""), Out: out, Err: failures,
			Beside: func(do func()) { go do() },
			Client: func(cli.Connection) (dynamic.Interface, error) { return client, nil }},
			[]string{"top", "--watch", "--every", "1ms"})
	}()
	<-begun
	<-watched
	_, err := client.Resource(nodes).Create(t.Context(),
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1",
			"kind": "Node", "metadata": map[string]any{"name": "later", "resourceVersion": "7"}}},
		metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != cli.CodeInterrupted || failures.text.String() != "joinerctl: interrupted\n" {
		t.Errorf("exit code %d, %s", code, failures.text.String())
	}
	lists := map[string]int{}
	for _, action := range client.Actions() {
		if action.GetVerb() == "list" {
			lists[action.GetResource().Resource]++
		}
	}
	for _, resource := range []string{"pods", "nodes", "nodepools", "nodeclaims"} {
		if lists[resource] != 1 {
			t.Errorf("%s were listed %d times", resource, lists[resource])
		}
	}
	if lists["leases"] < 2 {
		t.Error("it looked once")
	}
}
