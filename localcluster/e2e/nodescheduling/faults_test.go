package nodescheduling

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/machinetime"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
	"github.com/joiner-autoscaler/joiner/localcluster/placing/placingtest"
	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
)

// Each row of "When something fails" in docs/control-plane-protection.md names a test of this file or of package
// protection.

const (
	// promptly bounds a verdict that waits for nothing, in machine time.
	promptly = 3 * time.Second
	// watched is how long the test watches an answer that must not change: longer than it takes to read Scheduler
	// again.
	watched = 3 * time.Second
	// ordinary aims at nothing.
	ordinary = "alice create pod app/- dry-run"
	// anybody aims at a node of the group Infra, as somebody without rights to it.
	anybody = "alice create pod app/- node=infra-1 dry-run"
	// entitled is the same from somebody who is authorized for it.
	entitled = "system:admin create pod ops/- node=infra-1 dry-run"
	// brokenNode is the record of a node in etcd.
	brokenNode = "/registry/minions/broken"
)

// throughout sends a line for a while and wants the same answer each time.
func (g guarded) throughout(t *testing.T, want, line string) {
	t.Helper()
	for began := time.Now(); time.Since(began) < watched && !t.Failed(); time.Sleep(poll) {
		g.Expect(t, want, line)
	}
}

// quickly sends a line, and demands the wanted answer without any waiting.
func (g guarded) quickly(t *testing.T, want, line string) {
	t.Helper()
	began := machinetime.Now()
	g.Expect(t, want, line)
	if took := machinetime.Now() - began; took > promptly {
		t.Errorf("%s: it took %s", line, took)
	}
}

// judgeAnew kills the judging program like a crash and restarts it. The channel gets the end of its start: before that
// it may answer without being ready.
func (g guarded) judgeAnew(t *testing.T) <-chan error {
	t.Helper()
	ready := make(chan error, 1)
	if g.Door == placingtest.Plugin {
		return g.restartAPIServer(t)
	}
	if err := g.KillWebhook(); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	go func() { ready <- g.StartWebhook(ctx) }()
	return ready
}

func (g guarded) restartAPIServer(t *testing.T) <-chan error {
	t.Helper()
	ready := make(chan error, 1)
	if err := g.Cluster.KillComponent(cluster.APIServer); err != nil {
		t.Fatal(err)
	}
	ctx := context.WithoutCancel(t.Context())
	go func() { ready <- g.Cluster.StartComponent(ctx, cluster.APIServer) }()
	return ready
}

// neverPasses sends dry and ordinary pods until ready. Each answer to the first is a refusal, no answer to the second
// is one.
func (g guarded) neverPasses(t *testing.T, ready <-chan error) {
	t.Helper()
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
		// It is an error while the API server does not answer, or not yet as it should.
		got, err := g.Ask(t.Context(), dry, placing.People)
		if err == nil {
			answers++
			if !strings.HasPrefix(got, "deny ControlPlane/") && (got != "unanswered" || g.Door == placingtest.Plugin) {
				t.Fatalf("answer %d is %s, want a refusal", answers, got)
			}
		}
		if got, err := g.Ask(t.Context(), ordinary, placing.People); err == nil && got != "allow" {
			t.Errorf("an ordinary pod: %s", got)
		}
	}
	if answers == 0 {
		t.Error("no answer")
	}
}

// N10, N60: the file says nothing and Scheduler says Enable. The API server and the webhook restart. From their first
// answer on they follow Scheduler, which they must read first. Ordinary pods pass whenever there is an answer. With an
// unreadable Scheduler at the start, the lists of the file count, with every group enabled.
func TestN60_ARestartOpensNoGap(t *testing.T) {
	onEmpty(t, func(t *testing.T, g guarded) {
		g.node(t, "cp1", "node-role.kubernetes.io/control-plane=")
		g.loose(t)
		g.Eventually(t, "allow", dry)
		g.Set(t, configv1.Enable)
		g.Eventually(t, "deny ControlPlane/NodeName", dry)
		g.neverPasses(t, g.restartAPIServer(t))
		if g.Door == placingtest.Webhook {
			g.neverPasses(t, g.judgeAnew(t))
		}
		g.Eventually(t, "deny ControlPlane/NodeName", dry)

		g.says(t, `{"schedulingGroups": "none"}`)
		g.neverPasses(t, g.judgeAnew(t))
		g.Eventually(t, "deny ControlPlane/NodeName", dry)
		g.quickly(t, "allow", "system:admin create pod ops/- node=cp1 dry-run")
		g.quickly(t, "allow", ordinary)
		g.says(t, `{"schedulingGroups": [{"name": "ControlPlane", "mode": "Disable"}]}`)
		g.Eventually(t, "allow", dry)
	})
}

// N60: an unreadable record prevents a list of the nodes. Requests that need them wait, and are refused as not yet
// ready. Ordinary pods and authorized pairs pass at once. It goes on by itself once the record is gone.
func TestN60_NodesThatCannotBeListed(t *testing.T) {
	onEmpty(t, func(t *testing.T, g guarded) {
		g.node(t, "infra-1", "role=infra")
		g.Eventually(t, "deny Infra/NodeName", anybody)
		if err := g.Cluster.WriteEtcd(t.Context(), brokenNode, []byte("no node")); err != nil {
			t.Fatal(err)
		}
		mended := false
		mend := func() {
			if err := g.Cluster.RemoveEtcd(context.WithoutCancel(t.Context()), brokenNode); err != nil && !mended {
				t.Error(err)
			}
			mended = true
		}
		t.Cleanup(mend)
		ready := g.judgeAnew(t)
		g.EventuallyWithin(t, workloadsWithin, "deny Infra/NodesNotReady", anybody)
		g.quickly(t, "allow", ordinary)
		g.quickly(t, "allow", entitled)
		select {
		case err := <-ready:
			t.Errorf("it is ready: %v", err)
			return
		default:
		}
		mend()
		if err := <-ready; err != nil {
			t.Fatal(err)
		}
		g.EventuallyWithin(t, workloadsWithin, "deny Infra/NodeName", anybody)
		g.Eventually(t, "allow", entitled)
	})
}

// While the storage does not answer, what aims at a group is refused as always, by what is known. An ordinary pod is
// not refused, and not stored either. It goes on by itself.
func TestAStorageThatHangs(t *testing.T) {
	onEmpty(t, func(t *testing.T, g guarded) {
		g.node(t, "infra-1", "role=infra")
		g.Eventually(t, "deny Infra/NodeName", anybody)
		etcd := g.Cluster.PIDs()[cluster.Etcd]
		if err := syscall.Kill(etcd, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		resume := func() error { return syscall.Kill(etcd, syscall.SIGCONT) }
		t.Cleanup(func() {
			if err := resume(); err != nil {
				t.Error(err)
			}
		})
		g.quickly(t, "deny Infra/NodeName", anybody)
		short, cancel := context.WithTimeout(t.Context(), promptly)
		defer cancel()
		if got, err := g.Ask(short, "alice create pod app/stored", placing.People); !errors.Is(err,
			context.DeadlineExceeded) {
			t.Errorf("an ordinary pod: %s, %v", got, err)
		}
		if err := resume(); err != nil {
			t.Fatal(err)
		}
		g.Eventually(t, "deny Infra/NodeName", anybody)
		g.Eventually(t, "allow", ordinary)
	})
}
