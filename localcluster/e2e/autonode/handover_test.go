package autonode

import (
	"context"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
	"github.com/joiner-autoscaler/joiner/localcluster/shared"
)

const (
	// handOverNodesEnv and alongsideEnv name how many nodes a hand-over must leave alone, and for how many minutes two
	// operators work beside each other; `make e2e` sets the numbers of the specification.
	handOverNodesEnv = "JOINER_HANDOVER_NODES"
	alongsideEnv     = "JOINER_ALONGSIDE_MINUTES"
)

// numberFromEnv reads a number from 1 that make sets.
func numberFromEnv(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s is %q: want a number from 1", name, text)
	}
	return n
}

// hypershiftCluster starts a hosted cluster as HyperShift runs it: with an autoscaler and simulated machines, without
// our operator.
func hypershiftCluster(t *testing.T) *world {
	t.Helper()
	own := sharedFixture.Get(t)
	options, err := rig.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	options.Log, options.Audit = io.Discard, true
	ctx, cancel := context.WithTimeout(t.Context(), shared.StartTimeout)
	defer cancel()
	guest, err := rig.Start(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{mgmt: own.mgmt, guest: guest, namespace: "hcp-handover", binary: own.binary}
	w := &world{fixture: f, t: t, ctx: context.WithoutCancel(t.Context())}
	t.Cleanup(func() {
		if t.Failed() {
			w.printLog()
			w.printJoinersLog()
		}
		w.halt()
		if err := guest.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := f.prepare(ctx); err != nil {
		t.Fatal(err)
	}
	return w
}

// refusedBy reports whether an answer is a refusal by an admission policy.
func refusedBy(err error, policy string) bool {
	return (apierrors.IsForbidden(err) || apierrors.IsInvalid(err)) && strings.Contains(err.Error(), "'"+policy+"'")
}

// owns gives the operator the rights for what it owns, and runs it.
func (w *world) owns(word string, parts ...string) {
	w.t.Helper()
	w.halt()
	if err := w.guest.InstallHostedFor(w.ctx, parts...); err != nil {
		w.t.Fatal(err)
	}
	w.run("--own="+word, "--platform=AWS,KWOK", "--operand-user-name="+rig.User)
}

// uids returns the UIDs of what a hand-over must not replace.
func (w *world) uids() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, kind := range []kindOfObject{nodePoolKind, nodeClassKind, classWrapper, nodeClaimKind, nodeKind} {
		for _, o := range w.list(w.guest.Client, kind) {
			all[kind.Kind+" "+o.GetName()] = string(o.GetUID())
		}
	}
	return all
}

// release runs joiner-operator --release to its end.
func (w *world) release() {
	w.t.Helper()
	w.halt()
	if output, err := w.once("--release", "--platform=AWS,KWOK", "--operand-user-name="+rig.User); err != nil {
		w.t.Fatalf("--release: %v\n%s", err, output)
	}
}

// once runs joiner-operator until it ends by itself, and returns what it printed.
func (w *world) once(flags ...string) (output string, err error) {
	w.t.Helper()
	program := w.program(flags)
	kubeconfig, err := w.guest.Cluster.KubeconfigFor(cluster.Identity{Name: program.Name, User: program.User,
		Groups: program.Groups})
	if err != nil {
		w.t.Fatal(err)
	}
	args, env := program.Command(rig.Place{Kubeconfig: kubeconfig})
	ctx, cancel := context.WithTimeout(w.ctx, nodePatience)
	defer cancel()
	command := exec.CommandContext(ctx, program.Path,
		append(args, "--metrics-bind-address=0", "--health-probe-bind-address=0")...)
	command.Env = slices.Concat(os.Environ(), program.Env, env)
	text, err := command.CombinedOutput()
	return string(text), err
}

// besideEachOther demands that neither operator has written to the other's objects, and that nothing changes while
// both run.
func (w *world) besideEachOther(since time.Time, minutes int) {
	w.t.Helper()
	still := []kindOfObject{nodeClassKind, classWrapper, vapKind, bindingKind}
	before, from := w.versions(still...), time.Now()
	w.eventuallyIn(time.Duration(minutes+5)*time.Minute, "both to have run beside each other", func() (bool, string) {
		return time.Since(from) > time.Duration(minutes)*time.Minute, "not yet"
	})
	if after := w.versions(still...); show(after) != show(before) {
		w.t.Errorf("the resource versions went from %s to %s", show(before), show(after))
	}
	writes := func(e cluster.Event) bool {
		return !slices.Contains([]string{"get", "list", "watch"}, e.Verb) && e.Code < 400
	}
	own, looks := 0, 0 // the log must show both
	for _, e := range w.events(w.guest, func(e cluster.Event) bool { return e.ReceivedAt.After(since) }) {
		if e.UserAgent == standInAgent {
			looks++
		}
		if !strings.HasPrefix(e.UserAgent, operatorAgent) {
			continue
		}
		if writes(e) {
			own++
		}
		others := e.Resource == "ec2nodeclasses" || e.Resource == "openshiftec2nodeclasses" ||
			strings.Contains(e.Name, "ec2nodeclass")
		if others && !slices.Contains([]string{"get", "list", "watch"}, e.Verb) || e.Code == 403 {
			w.t.Errorf("the operator asked for %s %s, answered with %d", e.Verb, e.URI, e.Code)
		}
	}
	if own == 0 || looks == 0 {
		w.t.Errorf("the audit log has %d writes of the operator's and %d requests of the stand-in's", own, looks)
	}
	restored := w.events(w.guest, func(e cluster.Event) bool {
		return e.UserAgent == standInAgent && writes(e) && e.ReceivedAt.After(since)
	})
	if len(restored) > 0 {
		w.t.Errorf("the stand-in had to write %d times, first %s %s", len(restored), restored[0].Verb, restored[0].URI)
	}
}

// a hosted cluster goes from an operator like HyperShift's to ours and back, with a time in which both
// run. No node, pool or class is replaced, and node classes are protected at every moment.
func TestA33_A30_AClusterIsHandedOverBothWays(t *testing.T) {
	t.Parallel() // its guest is its own
	n, minutes := numberFromEnv(t, handOverNodesEnv, 5), numberFromEnv(t, alongsideEnv, 1)
	w := hypershiftCluster(t)
	theirs := w.hypershiftRuns()
	w.rooted(standInVolume, "default")
	w.eventually("their admission policy to be in force", func() (bool, string) {
		err := w.cadmin.Create(w.ctx, handMadeClass("probe"), client.DryRunAll)
		return refusedBy(err, classVAP), "an EC2NodeClass by hand is accepted"
	})
	w.put(w.cadmin, newObject(nodePoolKind, "", "web", simulated("web", typeB)))
	nodes := w.watchNodes()
	w.deploy("web", n)
	w.settledOn("web", typeB, n)
	end, before := w.probe(), w.uids()

	since := time.Now()
	w.owns("Alongside", charts.Alongside()...)
	policy := w.policy(both(restrict(in(instanceType, typeA, typeB)), root("{volumeSize: 90Gi}")))
	w.pool("web", simulated("web", typeB)) // adopts the one that is there
	w.poolSays("web", "PolicyApplied", "True", "Applied")
	w.policySays("False", "RootVolumeNotOwned", "spec.ec2NodeClassDefaults.rootVolume", "applied to 1 of 1")
	w.eventuallyIn(conformancePatience, "Conforming to tell the root volume", func() (bool, string) {
		said := condition(w.get(policyKind, "default"), "Conforming")
		return said != nil && said["status"] == "False" && strings.Contains(show(said), "1 NotOwned (Service): "+
			"EC2NodeClass default"), show(said)
	})
	w.says(func() *unstructured.Unstructured { return w.get(policyKind, "default") }, "Protected", "True", "")
	w.besideEachOther(since, minutes)

	theirs.stop()
	w.owns("Full", charts.Full()...)
	w.rooted("{volumeSize: 90Gi, volumeType: gp3, encrypted: true}", "default")
	w.policySays("True", "Applied", "applied to 2 of 2")

	w.release()
	w.says(func() *unstructured.Unstructured { return w.get(policyKind, "default") }, "Ready", "Unknown", "Released")
	back := w.hypershiftRuns()
	w.rooted(standInVolume, "default")
	w.givenBack()
	back.stop()

	asked, wrong := end()
	t.Logf("%d nodes; asked %d times whether node classes are protected", n, asked)
	if asked == 0 || len(wrong) > 0 {
		t.Errorf("of %d answers %d were no refusals: %q", asked, len(wrong), wrong[:min(len(wrong), 10)])
	}
	if after := w.uids(); show(after) != show(before) {
		t.Errorf("there was %s and is %s", show(before), show(after))
	}
	if replaced := len(nodes.types) - n; replaced != 0 || nodes.most > 0 {
		t.Errorf("%d nodes came beyond the %d, %d went at once", replaced, n, nodes.most)
	}
	w.remove(w.sre, policy)
}

// givenBack demands that nothing is left that only our operator knows, and that users may write NodePools again.
func (w *world) givenBack() {
	w.t.Helper()
	for _, kind := range []kindOfObject{vapKind, bindingKind} {
		for _, o := range w.list(w.guest.Client, kind) {
			if name := o.GetName(); strings.Contains(name, "hypershift") && name != classVAP &&
				name != classBinding || len(o.GetLabels()) > 0 {
				w.t.Errorf("%s %s is left, with labels %v", kind.Kind, name, o.GetLabels())
			}
		}
	}
	pool, wrapper := w.get(nodePoolKind, "web"), w.get(poolWrapper, "web")
	if len(pool.GetLabels())+len(pool.GetOwnerReferences())+len(wrapper.GetFinalizers()) > 0 {
		w.t.Errorf("the NodePool has labels %v and owners %v, its wrapper the finalizers %v", pool.GetLabels(),
			pool.GetOwnerReferences(), wrapper.GetFinalizers())
	}
	if held := w.get(classWrapper, "default").GetFinalizers(); !slices.Equal(held, []string{classHold}) {
		w.t.Errorf("the class default has the finalizers %v", held)
	}
	w.eventually("users to write NodePools again", func() (bool, string) {
		err := w.patch(w.cadmin, pool, object{"spec": object{"weight": 7}})
		return err == nil, show(err)
	})
	w.remove(w.cadmin, wrapper)
	w.stays("the NodePool", func() any {
		return w.get(nodePoolKind, "web") != nil && w.get(nodePoolKind, "web").GetDeletionTimestamp() == nil
	})
}
