package autonode

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

const (
	// fleetEnv names how many hosted clusters run beside each other; `make e2e` sets the number of the specification.
	fleetEnv    = "JOINER_HOSTED_CLUSTERS"
	smallFleet  = 3
	fleetStarts = 2 // clusters that are started at once
	fleetLimit  = 3 * time.Minute
)

func fleetFromEnv(t *testing.T) int {
	t.Helper()
	text := os.Getenv(fleetEnv)
	if text == "" {
		return smallFleet
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 2 {
		t.Fatalf("%s is %q: want a number from 2", fleetEnv, text)
	}
	return n
}

// fleet starts n hosted clusters on one management cluster, each with a namespace and an operator of its own.
func fleet(t *testing.T, n int) []*world {
	t.Helper()
	own := sharedFixture.Get(t)
	controlPlane, err := cluster.BinaryFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	worlds := make([]*world, n)
	failed := make([]error, n)
	slots := make(chan struct{}, fleetStarts)
	var wg sync.WaitGroup
	for i := range worlds {
		f := &fixture{mgmt: own.mgmt, namespace: fmt.Sprintf("hcp-fleet-%02d", i), binary: own.binary}
		worlds[i] = &world{fixture: f, t: t, ctx: context.WithoutCancel(t.Context())}
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(t.Context(), shared.StartTimeout)
			defer cancel()
			options := rig.Options{ControlPlane: controlPlane, Audit: true, Log: io.Discard, WithoutJoiner: true,
				WithoutManifests: true, Components: []cluster.Component{cluster.Etcd, cluster.APIServer}}
			f.guest, failed[i] = rig.Start(ctx, options)
		})
	}
	wg.Wait()
	t.Cleanup(func() {
		for _, w := range worlds {
			w.halt()
			if w.guest != nil {
				if err := w.guest.Cluster.Stop(); err != nil {
					t.Error(err)
				}
			}
		}
	})
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	for _, w := range worlds {
		ctx, cancel := context.WithTimeout(w.ctx, shared.StartTimeout)
		err := w.prepare(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		w.run()
	}
	return worlds
}

// A-10, R40: hosted clusters share one management cluster, each with a Role, a kubeconfig and a policy of its own. No
// read, write, event or count of one reaches another.
func TestR40_HostedClustersDoNotTouchEachOther(t *testing.T) {
	n := fleetFromEnv(t)
	if n == smallFleet { // many of them take the machine for themselves
		t.Parallel() // their guests are their own
	}
	began := time.Now()
	worlds := fleet(t, n)
	t.Logf("%d hosted clusters started within %s", n, time.Since(began).Round(time.Second))
	for i, w := range worlds {
		w.policy(restrict(in(instanceType, fmt.Sprintf("type-%02d", i), "all")))
		w.pool(fmt.Sprintf("pool-%02d", i), wants(in(instanceType, "all")))
	}
	for i, w := range worlds {
		name := fmt.Sprintf("pool-%02d", i)
		w.eventuallyIn(fleetLimit, "the NodePool of "+w.namespace,
			func() (bool, string) { return w.get(nodePoolKind, name) != nil, "none yet" })
		w.merged(name, in(instanceType, fmt.Sprintf("type-%02d", i), "all"), in(instanceType, "all"))
		w.policySays("True", "Applied", "applied to 2 of 2")
		if pools, classes := w.list(w.cadmin, nodePoolKind), w.list(w.cadmin, nodeClassKind); len(pools) != 1 ||
			len(classes) != 1 {
			t.Errorf("%s has %d NodePools and %d EC2NodeClasses, want its own", w.namespace, len(pools), len(classes))
		}
		counted := w.metric("autonode_wrappers{")
		for _, line := range []string{`autonode_wrappers{applied="True",kind="OpenshiftNodePool",party=""} 1`,
			`autonode_wrappers{applied="True",kind="OpenshiftEC2NodeClass",party=""} 1`} {
			if !slices.Contains(counted, line) {
				t.Errorf("%s counts %q, which lacks %s", w.namespace, counted, line)
			}
		}
	}
	// One changes; the others stay.
	before := map[string]string{}
	for _, w := range worlds[1:] {
		before[w.namespace] = w.get(policyKind, "default").GetResourceVersion()
	}
	worlds[0].policy(restrict(in(instanceType, "type-00")))
	worlds[0].merged("pool-00", in(instanceType, "type-00"), in(instanceType, "all"))
	for i, w := range worlds[1:] {
		w.merged(fmt.Sprintf("pool-%02d", i+1), in(instanceType, fmt.Sprintf("type-%02d", i+1), "all"),
			in(instanceType, "all"))
		if now := w.get(policyKind, "default").GetResourceVersion(); now != before[w.namespace] {
			t.Errorf("the status of %s was written, though another policy changed", w.namespace)
		}
	}
	asked := map[string]map[string]bool{} // namespaces by operator
	for _, e := range worlds[0].events(worlds[0].mgmt,
		func(e cluster.Event) bool { return strings.HasPrefix(e.User, "system:serviceaccount:hcp-fleet-") }) {
		if asked[e.User] == nil {
			asked[e.User] = map[string]bool{}
		}
		asked[e.User][e.Namespace] = true
		if e.Code == 403 {
			t.Errorf("%s was refused %s %s", e.User, e.Verb, e.URI)
		}
	}
	for _, w := range worlds {
		user := "system:serviceaccount:" + w.namespace + ":" + account
		if got := asked[user]; len(got) != 1 || !got[w.namespace] {
			t.Errorf("%s asked the management cluster for the namespaces %v, want its own", user, got)
		}
		w.remove(w.sre, w.get(policyKind, "default"))
	}
}
