package nodescheduling

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/joiner-autoscaler/joiner/localcluster/placing"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
)

// a pod that has its node never gets the annotation of the override, by any path or door.
func TestA16_TheOverrideComesOntoNoPodThatRuns(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		g.Expect(t, "allow", "alice create pod app/bound node=w1")
		g.ExpectAll(t, []placing.Case{
			{Want: "deny ControlPlane/OverrideMisused", Line: "alice update pod app/bound -> override=mine"},
			{Want: "deny ControlPlane/OverrideMisused", Line: "alice update pod/status app/bound -> override=mine"},
			{Want: "deny ControlPlane/OverrideMisused", Line: "system:admin update pod app/bound -> override=mine"},
			{Want: "allow", Line: "alice update pod app/bound -> label=a=b"},
		})
		if pod, err := g.Clients.CoreV1().Pods("app").Get(t.Context(), "bound", metav1.GetOptions{}); err != nil ||
			len(pod.Annotations) > 0 {
			t.Errorf("the pod has %v (%v)", pod.Annotations, err)
		}
	})
}

// an administrator's pod waits with the override, and then runs on a protected node. Neither before nor after
// may editors of its namespace change what runs in it, or enter it. The administrator may, and so may the kubelet of
// its node. Other pods stay open to all.
func TestA17_AnOverriddenPodIsFrozenForOthers(t *testing.T) {
	onPeopled(t, func(t *testing.T, g guarded) {
		g.ExpectAll(t, []placing.Case{
			{Want: "allow", Line: "system:admin create pod tmp/debug override=must-gather"},
			{Want: "allow", Line: "alice create pod tmp/plain"},
		})
		get := func() any {
			pod, err := g.Clients.CoreV1().Pods("tmp").Get(t.Context(), "debug", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return pod.Spec
		}
		tampering := func() {
			t.Helper()
			before := get()
			for _, line := range []string{
				"alice update pod tmp/debug override=must-gather -> image=evil",
				"alice update pod tmp/debug override=must-gather -> no-override",
				"alice update pod/status tmp/debug override=must-gather -> no-override",
				"alice update pod/ephemeralcontainers tmp/debug override=must-gather",
				"alice connect pod/exec tmp/debug", "alice connect pod/attach tmp/debug",
				"alice connect pod/portforward tmp/debug",
				"sa:ops/default update pod tmp/debug override=must-gather -> image=evil",
			} {
				g.Expect(t, "deny ControlPlane/OverrideTampered", line)
			}
			if after := get(); !reflect.DeepEqual(before, after) {
				t.Errorf("the pod has changed from %+v to %+v", before, after)
			}
			g.ExpectAll(t, []placing.Case{
				{Want: "allow", Line: "alice update pod tmp/debug override=must-gather -> label=a=b"},
				{Want: "allow", Line: "system:admin connect pod/exec tmp/debug"},
				{Want: "allow", Line: "alice update pod tmp/plain -> image=other"},
				{Want: "allow", Line: "alice connect pod/exec tmp/plain"},
			})
		}
		tampering()
		g.Expect(t, "warn ControlPlane/Binding", "system:kube-scheduler bind tmp/debug to=cp1")
		tampering()
		g.ExpectAll(t, []placing.Case{
			{Want: "allow", Line: "system:admin update pod tmp/debug override=must-gather -> image=other"},
			{Want: "allow",
				Line: "system:admin update pod/ephemeralcontainers tmp/debug override=must-gather image=other"},
			{Want: "allow",
				Line: "system:node:cp1 update pod/status tmp/debug override=must-gather image=other -> label=a=b"},
			{Want: "allow", Line: "alice update pod/ephemeralcontainers tmp/plain image=other"},
		})
		g.Set(t, configv1.Disable)
		g.Eventually(t, "allow", dry)
		g.Expect(t, "deny ControlPlane/OverrideTampered", "alice connect pod/exec tmp/debug")
		g.Expect(t, "allow", "system:admin update pod tmp/debug override=must-gather image=other -> no-override")
		g.Expect(t, "allow", "alice connect pod/exec tmp/debug")
	})
}
