package churn

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/machinetime"
)

func limited(version, nodes string) *karpenterv1.NodePool {
	pool := &karpenterv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: version}}
	if nodes != "" {
		pool.Spec.HardLimits = amounts("nodes", nodes)
	}
	return pool
}

func claimOf(name, version string) *karpenterv1.NodeClaim {
	return &karpenterv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: name, ResourceVersion: version, Labels: map[string]string{karpenterv1.NodePoolLabelKey: "p"},
	}}
}

// A new claim at the limit is a violation. It is none if the limit was higher just before, or if the watch of pools
// has not yet shown that it is higher now.
func TestHardLimitsAreCountedInTheOrderOfTheAPI(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		events func(*limits)
		want   int
	}{
		{"at the limit", func(l *limits) {
			l.pool(limited("1", "1"))
			l.age()
			l.born(claimOf("a", "2"))
			l.born(claimOf("b", "3"))
		}, 1},
		{"a claim has gone", func(l *limits) {
			l.pool(limited("1", "1"))
			l.age()
			l.born(claimOf("a", "2"))
			l.gone(claimOf("a", "3"))
			l.born(claimOf("b", "4"))
		}, 0},
		{"just lowered", func(l *limits) {
			l.pool(limited("1", "2"))
			l.age()
			l.pool(limited("2", "0"))
			l.born(claimOf("a", "3"))
		}, 0},
		{"just set", func(l *limits) {
			l.pool(limited("1", ""))
			l.age()
			l.pool(limited("2", "0"))
			l.born(claimOf("a", "3"))
		}, 0},
		{"lowered long ago", func(l *limits) {
			l.pool(limited("1", "2"))
			l.pool(limited("2", "0"))
			l.age()
			l.born(claimOf("a", "3"))
		}, 1},
		{"raised, but not enough", func(l *limits) {
			l.pool(limited("1", "0"))
			l.age()
			l.pool(limited("2", "1"))
			l.born(claimOf("a", "3"))
			l.born(claimOf("b", "4"))
		}, 1},
		{"raised, and the watch of pools is late", func(l *limits) {
			l.pool(limited("1", "0"))
			l.age()
			l.born(claimOf("a", "3"))
			l.pool(limited("2", "1"))
		}, 0},
		{"taken away", func(l *limits) {
			l.pool(limited("1", "0"))
			l.age()
			l.pool(limited("2", ""))
			l.born(claimOf("a", "3"))
		}, 0},
	} {
		l := newLimits()
		c.events(l)
		if found := l.broken(time.Now().Add(2 * settled)); len(found) != c.want {
			t.Errorf("%s: %q, want %d violations", c.name, found, c.want)
		}
	}
}

// age makes all limits old.
func (l *limits) age() {
	for _, history := range l.hard {
		for i := range history {
			history[i].lowered = history[i].lowered.Add(-time.Hour)
		}
	}
}

// The log is read once, whole lines only. Errors and panics are trouble; two that differ only in names count as the
// same.
func TestTroubleInTheLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	line := func(level, err string) string {
		return fmt.Sprintf(`{"level":%q,"message":"m","controller":"l","error":%q}`, level, err) + "\n"
	}
	text := line("INFO", "") + line("ERROR", "pod a/b-1 is stuck") + line("ERROR", "pod a/b-2 is stuck") +
		"panic: no\n" +
		`{"level":"ERROR","message":"m","controller":"events","error":"forbidden because it is being terminated"}` +
		"\n" + line("ERROR", "launch: throttled by the provider")
	write(text + `{"level":"ERR`)
	reader := &logReader{path: path}
	found, err := reader.trouble()
	if err != nil || len(found) != 3 || found[0].about != found[1].about ||
		!strings.HasPrefix(found[2].text, "panic") {
		t.Fatalf("found %+v (%v)", found, err)
	}
	write(text + line("ERROR", "more"))
	if found, err := reader.trouble(); err != nil || len(found) != 1 || !strings.Contains(found[0].text, "more") {
		t.Errorf("found %+v then (%v)", found, err)
	}
}

// A pod for which nodes are launched again and again that hold no pod is reported. Nodes that users deleted do not
// count.
func TestLoopsAreSeen(t *testing.T) {
	t.Parallel()
	v := &view{clock: &machinetime.Clock{}, lives: map[string]*life{}, nominated: map[string][]string{}}
	for i := range mostInVain + 2 {
		name := fmt.Sprintf("n%d", i)
		v.order = append(v.order, &life{name: name, pool: "p", gone: time.Second, byHand: i == 0})
		v.nominated["a/web"] = append(v.nominated["a/web"], name)
		j := newJudge(v, v.clock, nil, nil)
		j.loops()
		if want := i > mostInVain; (len(j.faults) > 0) != want {
			t.Errorf("after %d launches: %q", i+1, j.faults)
		}
	}
}
