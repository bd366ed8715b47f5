package placingtest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/localcluster/attack"
	"github.com/joiner-autoscaler/joiner/localcluster/machinetime"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
)

const (
	// Within is how long a change may take to be in force by the specification (N7, N10, N54, N55).
	Within = 5 * time.Second
	// Poll is how often that is checked.
	Poll = 50 * time.Millisecond
)

// Expect sends a line of the script language as a member of placing.People, and checks the answer.
func (g *Guarded) Expect(t *testing.T, want, line string) {
	t.Helper()
	got, err := g.Ask(t.Context(), line, placing.People)
	if err != nil || got != want {
		t.Errorf("%s: %s (%v), want %s", line, got, err, want)
		return
	}
	g.saw(t, want, line, 0)
}

// saw records how a request was answered, unless it was allowed without a warning.
func (g *Guarded) saw(t *testing.T, answer, line string, after time.Duration) {
	t.Helper()
	by := "the " + string(g.Door)
	verb, _, _ := strings.Cut(answer, " ")
	switch verb {
	case "deny":
		attack.Saw(t, attack.Seen{How: attack.Refused, By: by, Text: line + ": " + answer, After: after})
	case "warn":
		attack.Saw(t, attack.Seen{How: attack.Told, By: by, Text: line + ": " + answer, After: after})
	}
}

// ExpectAll sends all lines, in their order.
func (g *Guarded) ExpectAll(t *testing.T, cases []placing.Case) {
	t.Helper()
	for _, c := range cases {
		g.Expect(t, c.Want, c.Line)
	}
}

// Eventually repeats a line until the answer is as wanted, for as long as the specification allows.
func (g *Guarded) Eventually(t *testing.T, want, line string) {
	t.Helper()
	g.EventuallyWithin(t, Within, want, line)
}

// EventuallyWithin is Eventually with another limit, in machine time.
func (g *Guarded) EventuallyWithin(t *testing.T, limit time.Duration, want, line string) {
	t.Helper()
	var got string
	var err error
	since := time.Now()
	for began := machinetime.Now(); machinetime.Now()-began < limit; time.Sleep(Poll) {
		if got, err = g.Ask(t.Context(), line, placing.People); err == nil && got == want {
			g.saw(t, want, line, time.Since(since))
			return
		}
	}
	t.Errorf("%s: still %s (%v) after %s, want %s", line, got, err, limit, want)
}

// Set writes Scheduler with one group.
func (g *Guarded) Set(t *testing.T, mode configv1.GroupMode, users ...string) {
	t.Helper()
	err := g.Apply(t.Context(),
		fmt.Sprintf(
			"apiVersion: config.openshift.io/v1\nkind: Scheduler\nmetadata: {name: %s}\n"+
				"spec: {schedulingGroups: [{name: %s, mode: %q, authorizedUsers: [%s]}]}\n",
			configv1.SchedulerName, configv1.ControlPlane, mode, strings.Join(users, ", ")))
	if err != nil {
		t.Fatal(err)
	}
}

// Clear removes the pods and workloads of the namespaces, and Scheduler. It does so again at the end of the test.
func (g *Guarded) Clear(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, namespace := range placing.Namespaces() {
		for _, kind := range []client.Object{
			&appsv1.Deployment{}, &appsv1.DaemonSet{}, &appsv1.StatefulSet{}, &appsv1.ReplicaSet{}, &batchv1.CronJob{},
			&batchv1.Job{}, &corev1.ReplicationController{}, &corev1.Pod{},
		} {
			if err := g.Client.DeleteAllOf(ctx, kind, client.InNamespace(namespace), client.GracePeriodSeconds(0),
				client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				t.Error(err)
			}
		}
	}
	objects, err := dynamic.NewForConfig(g.admin)
	if err != nil {
		t.Fatal(err)
	}
	err = objects.Resource(configv1.GroupVersion().WithResource("schedulers")).Delete(ctx, configv1.SchedulerName,
		metav1.DeleteOptions{})
	if client.IgnoreNotFound(err) != nil && !apimeta.IsNoMatchError(err) {
		t.Error(err)
	}
}

// ShowLog prints the end of the judging program's log, if the test has failed.
func (g *Guarded) ShowLog(t *testing.T) {
	t.Helper()
	if !t.Failed() {
		return
	}
	const tail = 4000
	if log, err := os.ReadFile(g.Log()); err == nil {
		t.Logf("the end of %s:\n%s", g.Log(), log[max(0, len(log)-tail):])
	}
}
