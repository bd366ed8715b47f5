package autonode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/internal/app/operator"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/machinetime"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

const (
	// feedsEnv names how many operators have a feed of their policy on one management cluster; `make bench-feeds` sets
	// the number of the specification.
	feedsEnv   = "JOINER_POLICY_FEEDS"
	fewFeeds   = 20
	manyFeeds  = 1000        // the full size; the bound of the latency holds from here on
	changesFor = time.Minute // how long changes of manyFeeds policies take; fewer take as much less

	// What the specification allows, in machine time.
	writtenWithin, againWithin = 2 * time.Minute, time.Minute
	slowestStatus              = time.Second // of 99 in 100 writes
	// refusedEvery is how often one feed may get 429 while the API server starts. Until its cache of the kind is
	// filled, the server refuses lists and tells clients to retry after a second. More often would be a storm.
	refusedEvery = time.Second

	feedsPatience = 10 * time.Minute
	feedsAtOnce   = 16 // namespaces that are made, and policies that are changed, at a time
)

func feedsFromEnv(t *testing.T) int {
	t.Helper()
	text := os.Getenv(feedsEnv)
	if text == "" {
		return fewFeeds
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: want a number from 1", feedsEnv, text)
	}
	return n
}

// feeds are the parts of many operators that speak with one management cluster. Each has a namespace, an account and a
// connection of its own. There are no hosted clusters.
type feeds struct {
	*world
	n       int
	rules   []rbacv1.PolicyRule
	admin   *rest.Config
	configs []*rest.Config // of the operators
}

// what many operators cost one management cluster, when their policies change one after another, and when all
// their connections break at once.
func TestA47_OneManagementClusterBearsManyFeeds(t *testing.T) {
	f := newFeeds(t, feedsFromEnv(t))
	f.each(f.install)
	f.follow()
	f.eventuallyIn(feedsPatience, "all policies to have a status", f.allWritten)
	f.eventuallyIn(feedsPatience, "all feeds to watch", f.allWatch)
	f.change()
	f.reconnect()
}

func newFeeds(t *testing.T, n int) *feeds {
	t.Helper()
	controlPlane, err := cluster.BinaryFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), shared.StartTimeout)
	defer cancel()
	mgmt, err := rig.StartManagement(ctx, rig.Options{ControlPlane: controlPlane, Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := mgmt.Cluster.Stop(); err != nil {
			t.Error(err)
		}
	})
	w := &world{fixture: &fixture{mgmt: mgmt, sre: mgmt.Client}, t: t, ctx: context.WithoutCancel(t.Context())}
	f := &feeds{world: w, n: n, configs: make([]*rest.Config, n)}
	if f.admin, err = mgmt.Cluster.RESTConfig("admin"); err != nil {
		t.Fatal(err)
	}
	text, err := charts.ManagementRules()
	if err == nil {
		err = yaml.Unmarshal(text, &f.rules)
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// each does something for every feed, some at a time, and no faster than the ticks, if there are any.
func (f *feeds) each(do func(i int) error, ticks ...<-chan time.Time) {
	f.t.Helper()
	numbers, failed := make(chan int), make([]error, f.n)
	var wg sync.WaitGroup
	for range feedsAtOnce {
		wg.Go(func() {
			for i := range numbers {
				failed[i] = do(i)
			}
		})
	}
	for i := range f.n {
		for _, tick := range ticks {
			<-tick
		}
		numbers <- i
	}
	close(numbers)
	wg.Wait()
	if err := errors.Join(failed...); err != nil {
		f.t.Fatal(err)
	}
}

func feedNamespace(i int) string { return fmt.Sprintf("hcp-feed-%04d", i) }

// install makes what the chart of one operator installs on the management cluster, and a policy.
func (f *feeds) install(i int) error {
	meta := metav1.ObjectMeta{Namespace: feedNamespace(i), Name: account}
	owner := &corev1.ServiceAccount{ObjectMeta: meta}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: meta.Namespace}}, owner,
		&rbacv1.Role{ObjectMeta: meta, Rules: f.rules},
		&rbacv1.RoleBinding{ObjectMeta: meta,
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: meta.Namespace, Name: account}}},
		newObject(policyKind, meta.Namespace, "default", restrict(in(instanceType, "a"))),
	} {
		if err := f.sre.Create(f.ctx, o); err != nil {
			return err
		}
	}
	token := &authenticationv1.TokenRequest{}
	if err := f.sre.SubResource("token").Create(f.ctx, owner, token); err != nil {
		return err
	}
	f.configs[i] = rest.AnonymousClientConfig(f.admin)
	f.configs[i].BearerToken = token.Status.Token
	f.configs[i].Dial = (&net.Dialer{}).DialContext // a function of its own is a connection of its own
	return nil
}

// follow runs all feeds until the test ends.
func (f *feeds) follow() {
	f.t.Helper()
	ctx, stop := context.WithCancel(f.ctx)
	ended := make([]error, f.n)
	var wg sync.WaitGroup
	before := residentMemory(f.t, os.Getpid())
	silent := funcr.New(func(string, string) {}, funcr.Options{})
	for i, config := range f.configs {
		wg.Go(func() { ended[i] = operator.RunPolicyOnly(ctx, config, feedNamespace(i), silent) })
	}
	f.t.Cleanup(func() {
		f.t.Logf("%d feeds and the test have %d MiB in memory, %d of them before the feeds", f.n,
			residentMemory(f.t, os.Getpid())>>20, before>>20)
		stop()
		wg.Wait()
		if err := errors.Join(ended...); err != nil {
			f.t.Error(err)
		}
	})
}

// allWritten reports whether every policy's status is about its present generation.
func (f *feeds) allWritten() (bool, string) {
	f.t.Helper()
	written := 0
	for _, policy := range f.list(f.sre, policyKind) {
		if ready := condition(&policy, "Ready"); ready != nil &&
			ready["observedGeneration"] == policy.GetGeneration() {
			written++
		}
	}
	return written == f.n, fmt.Sprintf("%d of %d", written, f.n)
}

// allWatch reports whether every feed watches, by the API server's count.
func (f *feeds) allWatch() (bool, string) {
	f.t.Helper()
	watching := f.scrape().sum("apiserver_longrunning_requests", `resource="autonodepolicies"`, `verb="WATCH"`)
	return int(watching) == f.n, fmt.Sprintf("%v of %d", watching, f.n)
}

// change changes every policy, at the rate of the specification, and waits for the operators' statuses.
func (f *feeds) change() {
	f.t.Helper()
	before, began, since := f.scrape(), time.Now(), machinetime.Now()
	ticks := time.NewTicker(changesFor / manyFeeds)
	defer ticks.Stop()
	f.each(func(i int) error {
		return f.patch(f.sre, newObject(policyKind, feedNamespace(i), "default", nil),
			object{"spec": restrict(in(instanceType, "a", "b"))})
	}, ticks.C)
	changed := time.Since(began)
	f.eventuallyIn(writtenWithin-(machinetime.Now()-since), "all status to be written", f.allWritten)
	written, machine := time.Since(began), machinetime.Now()-since
	after := f.scrape()
	slowest := after.quantile(0.99, before, `resource="autonodepolicies"`, `subresource="status"`, `verb="PATCH"`)
	writes := after.count(before, `resource="autonodepolicies"`, `subresource="status"`, `verb="PATCH"`)
	refused := after.refused() - before.refused()
	f.t.Logf("%d policies changed within %s, all status written %s after the first (%s of machine time); "+
		"%v writes, 99 in 100 within %s; %v answers 429; load %s", f.n, changed.Round(time.Second),
		written.Round(100*time.Millisecond), machine.Round(100*time.Millisecond), writes,
		slowest.Round(time.Millisecond), refused, load(f.t))
	if int(writes) < f.n {
		f.t.Errorf("%v writes of the status of %d policies", writes, f.n)
	}
	if refused > 0 {
		f.t.Errorf("%v requests were answered 429", refused)
	}
	if f.n >= manyFeeds && slowest > slowestStatus {
		f.t.Errorf("99 in 100 writes took up to %s, want %s", slowest, slowestStatus)
	}
}

// reconnect kills the API server, and waits until a new one has all feeds again.
func (f *feeds) reconnect() {
	f.t.Helper()
	if err := f.mgmt.Cluster.KillComponent(cluster.APIServer); err != nil {
		f.t.Fatal(err)
	}
	killed := time.Now()
	if err := f.mgmt.Cluster.StartComponent(f.ctx, cluster.APIServer); err != nil {
		f.t.Fatal(err)
	}
	ready, since := time.Now(), machinetime.Now()
	f.eventuallyIn(againWithin, "all feeds to watch again", f.allWatch)
	again, machine := time.Since(ready), machinetime.Now()-since
	now := f.scrape()
	f.t.Logf("an API server was ready %s after the kill, and had %d watches %s later (%s of machine time); "+
		"%v answers 429, %v of them since it had too much to do; load %s", ready.Sub(killed).Round(time.Second), f.n,
		again.Round(100*time.Millisecond), machine.Round(100*time.Millisecond), now.refused(), now.tooMuch(),
		load(f.t))
	if most := float64(f.n) * float64(time.Since(killed)/refusedEvery); now.refused() > most {
		f.t.Errorf("%v requests were answered 429, want at most %v: one a second for each feed", now.refused(), most)
	}
}

// load returns the machine's load of the last minute and the last five.
func load(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text))[:2], " and ")
}
