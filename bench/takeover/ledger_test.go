package takeover

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// stays is our annotation that stays on NodeClaims and their nodes, and means nothing to Karpenter. By it a later
// Joiner recognises its own.
const stays = "joiner.sh/launched-with"

// ledger follows every NodeClaim and Node through all changes of controllers. When a change of definitions ends its
// watches, it starts new ones.
type ledger struct {
	mu sync.Mutex
	// claims has all that ever existed, by name; hosts are the nodes of each, by UID.
	claims map[string]*entry
	hosts  map[string]map[string]bool
	gone   map[string]bool // nodes, by the name of their claim
	owner  map[string]string
	faults []string
	lists  int
}

type entry struct {
	pool, provider string
	going          bool
}

func newLedger() *ledger {
	return &ledger{claims: map[string]*entry{}, hosts: map[string]map[string]bool{}, gone: map[string]bool{},
		owner: map[string]string{}}
}

// lost returns the claims whose node went although nobody was removing them.
func (l *ledger) lost() (names []string) {
	for host := range l.gone {
		if known := l.claims[host]; known == nil || !known.going {
			names = append(names, host)
		}
	}
	slices.Sort(names)
	return names
}

// openLedger begins with the cluster as it is.
func openLedger(t *testing.T, api client.WithWatch) *ledger {
	t.Helper()
	l := newLedger()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, list := range []client.ObjectList{&karpenterv1.NodeClaimList{}, &corev1.NodeList{}} {
		running.Go(func() {
			for ctx.Err() == nil {
				if err := l.follow(ctx, api, list); err != nil {
					select { // definitions are changing
					case <-ctx.Done():
					case <-time.After(200 * time.Millisecond):
					}
				}
			}
		})
	}
	t.Cleanup(func() { cancel(); running.Wait() })
	return l
}

// follow lists objects and watches them until the watch ends.
func (l *ledger) follow(ctx context.Context, api client.WithWatch, list client.ObjectList) error {
	if err := api.List(ctx, list); err != nil {
		return err
	}
	events, err := api.Watch(ctx, list,
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}})
	if err != nil {
		return err
	}
	defer events.Stop()
	switch list := list.(type) {
	case *karpenterv1.NodeClaimList:
		for i := range list.Items {
			l.write(watch.Event{Type: watch.Modified, Object: &list.Items[i]})
		}
	case *corev1.NodeList:
		for i := range list.Items {
			l.write(watch.Event{Type: watch.Modified, Object: &list.Items[i]})
		}
	}
	l.mu.Lock()
	l.lists++
	l.mu.Unlock()
	for event := range events.ResultChan() {
		l.write(event)
	}
	return nil
}

func (l *ledger) fault(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(l.faults, text) {
		l.faults = append(l.faults, text)
	}
}

func (l *ledger) write(event watch.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch object := event.Object.(type) {
	case *karpenterv1.NodeClaim:
		l.claim(object, event.Type == watch.Deleted)
	case *corev1.Node:
		host := object.Labels[corev1.LabelHostname]
		if l.hosts[host] == nil {
			l.hosts[host] = map[string]bool{}
		}
		l.hosts[host][string(object.UID)] = true
		if len(l.hosts[host]) > 1 {
			l.fault("NodeClaim %s has had %d nodes: it was launched twice", host, len(l.hosts[host]))
		}
		if event.Type == watch.Deleted {
			l.gone[host] = true
		}
	}
}

func (l *ledger) claim(object *karpenterv1.NodeClaim, gone bool) {
	known := l.claims[object.Name]
	if known == nil {
		known = &entry{pool: object.Labels[karpenterv1.NodePoolLabelKey]}
		l.claims[object.Name] = known
	}
	known.going = known.going || gone || object.DeletionTimestamp != nil
	if id := object.Status.ProviderID; id != "" {
		if known.provider != "" && known.provider != id {
			l.fault("NodeClaim %s had machine %s and has %s", object.Name, known.provider, id)
		}
		if owner := l.owner[id]; owner != "" && owner != object.Name {
			l.fault("machine %s is of NodeClaims %s and %s", id, owner, object.Name)
		}
		known.provider, l.owner[id] = id, object.Name
	}
	for _, condition := range object.Status.Conditions {
		if condition.Type == karpenterv1.ConditionTypeDrifted && condition.Status == metav1.ConditionTrue {
			l.fault("NodeClaim %s has drifted: %s", object.Name, condition.Message)
		}
	}
}

// wentOf counts the claims of a pool that went, or are going.
func (l *ledger) wentOf(pool string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, known := range l.claims {
		if known.pool == pool && known.going {
			n++
		}
	}
	return n
}

// faultless demands that nothing has gone wrong so far.
func (r *release) faultless() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.faults) > 0 {
		r.t.Fatalf("the fleet did not come through:\n%s", strings.Join(r.faults, "\n"))
	}
}

// settledWatches gives the watches of the ledger the moment that they need after a change of definitions.
func (r *release) settledWatches() {
	r.t.Helper()
	_, err := r.Kubectl(r.t.Context(), "", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	r.must(err)
}

// settled demands that in the end each claim has one node, that the claim of each lost node was being removed, and
// that there was something to see.
func (r *release) settled() {
	r.t.Helper()
	r.onePerClaim()
	r.faultless()
	r.mu.Lock()
	defer r.mu.Unlock()
	lost, removed := r.lost(), len(r.gone)
	if len(lost) > 0 {
		r.t.Errorf("the nodes of the NodeClaims %v are gone, and nobody has removed these", lost)
	}
	if len(r.ledger.claims) < 10 || removed < 5 {
		r.t.Errorf("%d claims were seen, and %d nodes that went: there was no load", len(r.ledger.claims), removed)
	}
	r.t.Logf("%d claims came, %d nodes went, watches began %d times", len(r.ledger.claims), removed, r.lists)
}

// nothingOfOurs demands that no finalizer of ours is left, and no annotation but that one.
func (r *release) nothingOfOurs() {
	r.t.Helper()
	var pools karpenterv1.NodePoolList
	var nodes corev1.NodeList
	r.must(r.Client.List(r.t.Context(), &pools))
	r.must(r.Client.List(r.t.Context(), &nodes))
	var all []client.Object
	for i := range pools.Items {
		all = append(all, &pools.Items[i])
	}
	for i := range nodes.Items {
		all = append(all, &nodes.Items[i])
	}
	claims := r.cluster.claims()
	for i := range claims {
		all = append(all, &claims[i])
	}
	for _, object := range all {
		for _, finalizer := range object.GetFinalizers() {
			if strings.Contains(finalizer, "joiner") {
				r.t.Errorf("%T %s has the finalizer %s", object, object.GetName(), finalizer)
			}
		}
		_, isPool := object.(*karpenterv1.NodePool)
		for key := range object.GetAnnotations() {
			if strings.HasPrefix(key, "joiner.sh/") && (isPool || key != stays) {
				r.t.Errorf("%T %s has the annotation %s", object, object.GetName(), key)
			}
		}
	}
}

// The ledger must not accept everything.
func TestTheLedgerFindsWhatGoesWrong(t *testing.T) {
	t.Parallel()
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: "a"}}
	}
	claim := func(name, id string, conditions ...karpenterv1.Condition) *karpenterv1.NodeClaim {
		return &karpenterv1.NodeClaim{ObjectMeta: named(name), Status: karpenterv1.NodeClaimStatus{
			ProviderID: id, Conditions: conditions,
		}}
	}
	node := func(uid types.UID) *corev1.Node {
		of := named("kwok-a-" + string(uid))
		of.UID = uid
		return &corev1.Node{ObjectMeta: of}
	}
	for says, objects := range map[string][]client.Object{
		"": {claim("a", "kwok://1"), node("1"), node("1"), claim("a", "kwok://1"),
			claim("b", "kwok://2")},
		"launched twice":           {claim("a", "kwok://1"), node("1"), node("2")},
		"had machine kwok://1":     {claim("a", "kwok://1"), claim("a", "kwok://2")},
		"is of NodeClaims a and b": {claim("a", "kwok://1"), claim("b", "kwok://1")},
		"NodeClaim a has drifted: hash": {
			claim("a", "", karpenterv1.Condition{Type: karpenterv1.ConditionTypeDrifted, Status: "True",
				Message: "hash"}),
		},
	} {
		l := newLedger()
		for _, object := range objects {
			l.write(watch.Event{Type: watch.Modified, Object: object})
		}
		if got := strings.Join(l.faults, "; "); !strings.Contains(got, says) || (says == "") != (got == "") {
			t.Errorf("want %q, the ledger has %q", says, got)
		}
	}
	l := newLedger()
	l.write(watch.Event{Type: watch.Modified, Object: claim("a", "kwok://1")})
	l.write(watch.Event{Type: watch.Deleted, Object: node("1")})
	if lost := l.lost(); len(lost) != 1 || lost[0] != "a" {
		t.Errorf("a node went whose claim stays: the ledger has lost %v", lost)
	}
}
