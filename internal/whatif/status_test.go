package whatif_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

const statusFiles = `apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: default}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec: {template: {spec: {requirements: [], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: elsewhere}
spec: {template: {spec: {requirements: [], nodeClassRef: {group: karpenter.azure.com, kind: AKSNodeClass, name: default}}}}
status: {conditions: [{type: Ready, status: "True", reason: Ready, lastTransitionTime: "2026-01-01T00:00:00Z"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: a-small, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {containers: [{name: main, image: main, resources: {requests: {cpu: "1"}}}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, lastTransitionTime: "SINCE"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: b-huge, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {containers: [{name: main, image: main, resources: {requests: {cpu: "6400"}}}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, lastTransitionTime: "SINCE"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: c-huge, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {containers: [{name: main, image: main, resources: {requests: {cpu: "6400"}}}]}
status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, lastTransitionTime: "SINCE"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: daemon-x, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: d, uid: d, controller: true}]}
spec: {containers: [{name: main, image: main}]}
status: {phase: Pending}
`

func statusAt(t *testing.T, since time.Duration, waiting time.Duration) whatif.Status {
	t.Helper()
	text := strings.ReplaceAll(statusFiles, "SINCE",
		time.Unix(1_800_000_000, 0).Add(-since).UTC().Format(time.RFC3339))
	world, err := pictured(t, documentsOf(t, &datadriven.TestData{Cmd: "status", Input: text}))
	if err != nil {
		t.Fatal(err)
	}
	return world.Status(whatif.StatusInput{PodsWaiting: waiting, Draining: time.Hour})
}

// TestU24_WhatIsUrgentComesFirst: causes that last until somebody acts come before those that end by themselves. A pod
// must wait long enough. Pods of DaemonSets do not wait for a node. Objects that are not planned for are reported
// (U-42).
func TestU24_WhatIsUrgentComesFirst(t *testing.T) {
	t.Parallel()
	s := statusAt(t, 5*time.Minute, 5*time.Minute)
	var codes []string
	for _, a := range s.Attention {
		codes = append(codes, a.Code+" "+a.Text)
	}
	if len(codes) != 2 || !strings.HasPrefix(codes[0], "PodTooLarge 2 pods wait: ") ||
		!strings.HasPrefix(codes[1], "LaunchPlanned 1 pod waits: ") ||
		s.Next != "joinerctl explain pod default/b-huge" || s.Clean() {
		t.Errorf("%q, next %s", codes, s.Next)
	}
	if len(s.Waiting) != 2 || s.Waiting[0].Count != 2 || s.Waiting[1].Count != 1 {
		t.Errorf("%+v", s.Waiting)
	}
	if !slices.Equal(s.Names(), []string{"pod/b-huge -n default", "pod/a-small -n default"}) {
		t.Errorf("%q", s.Names())
	}
	if !strings.Contains(strings.Join(s.Notes, "\n"),
		"NodePool elsewhere: nothing is planned for node classes of the kind AKSNodeClass") {
		t.Errorf("%q", s.Notes)
	}
	if s = statusAt(t, 5*time.Minute-time.Second, 5*time.Minute); !s.Clean() || len(s.Waiting) != 2 || s.Next != "" {
		t.Errorf("a second earlier: %+v", s.Attention)
	}
}
