package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// How long each step may take. All but the scale-down, which waits for the pool's consolidateAfter, take seconds.
const (
	placing  = 90 * time.Second
	refusing = 30 * time.Second
	leaving  = 2 * time.Minute
)

//go:embed manifests/*.yaml
var manifests embed.FS

func manifest(name string) string {
	content, err := manifests.ReadFile("manifests/" + name + ".yaml")
	if err != nil {
		panic(err) // embedded files cannot be missing
	}
	return string(content)
}

// story is a demo in progress.
type story struct {
	*rig.Rig   // the cluster with Joiner; from its second chapter on, a hosted one
	management *rig.Rig
	options    rig.Options     // of the cluster with Joiner
	binary     string          // of joiner-operator
	joinerctl  string          // path of its binary
	kubeconfig string          // of joiner-operator, for the management cluster
	operator   *rig.Controller // nil: not started yet
	began      time.Time
	step       int
}

// tell runs the story, or one chapter of it, starting from nothing.
func tell(ctx context.Context, with settings) (err error) {
	fmt.Println("Starting two real control planes, KWOK's machines and Joiner ...")
	s, err := begin(ctx, with)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.end()) }()
	s.done("etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok and joiner are ready; " +
		"so is a second etcd with its kube-apiserver, for later")
	pause := onward
	if with.pause {
		pause = pressed(os.Stdin, os.Stdout)
	}
	if err := (teller{only: with.chapter, out: os.Stdout, pause: pause}).tell(ctx, s.chapters()); err != nil {
		s.showAll(ctx)
		return err
	}
	fmt.Printf("\nEverything held. %s in all. Next: make up, and docs/quickstart.md\n",
		time.Since(s.began).Round(time.Second))
	return nil
}

// showAll prints what readers of a failure want to see first. After Ctrl-C it prints nothing.
func (s *story) showAll(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	_ = s.show(ctx, "get", "nodepools,nodeclaims,nodes,pods", "-o", "wide")
	if s.operator != nil {
		_ = show(ctx, s.Rig, "tenant$", "get", "openshiftnodepools", "-o", "wide")
		_ = show(ctx, s.management, "provider$", "get", "autonodepolicies", "-A", "-o", "yaml")
	}
}

func (s *story) done(format string, args ...any) {
	s.step++
	head := fmt.Sprintf("%2d. [%5.1fs] ", s.step, time.Since(s.began).Seconds())
	fmt.Printf("\n%s\n", foldedStep(head, fmt.Sprintf(format, args...)))
}

// show runs kubectl and prints its output as users would see it.
func (s *story) show(ctx context.Context, args ...string) error {
	return show(ctx, s.Rig, "$", args...)
}

// show runs kubectl in a cluster and prints its output, with a prompt.
func show(ctx context.Context, in *rig.Rig, prompt string, args ...string) error {
	output, err := in.Kubectl(ctx, "", args...)
	if err != nil {
		return err
	}
	printed(prompt, args, output)
	return nil
}

// printed prints a kubectl command and its output. Arguments with special characters are quoted.
func printed(prompt string, args []string, output string) {
	typed := slices.Clone(args)
	for i, arg := range typed {
		if strings.ContainsAny(arg, "[]{}()\"* ") {
			typed[i] = "'" + arg + "'"
		}
	}
	said := strings.ReplaceAll(strings.TrimRight(output, "\n"), "\n", "\n    ")
	fmt.Printf("\n    %s kubectl %s\n    %s\n", prompt, strings.Join(typed, " "), said)
}

// pool applies a NodePool and its class and waits until it is ready.
func (s *story) pool(ctx context.Context) error {
	if err := s.Apply(ctx, manifest("pool")); err != nil {
		return err
	}
	err := s.Eventually(ctx, refusing, "the NodePool to be Ready", func(ctx context.Context) (bool, string, error) {
		var pool karpenterv1.NodePool
		if err := s.Client.Get(ctx, client.ObjectKey{Name: "default"}, &pool); err != nil {
			return false, "", err
		}
		return conditionTrue(pool.Status.Conditions, "Ready"), fmt.Sprintf("%+v", pool.Status.Conditions), nil
	})
	if err != nil {
		return err
	}
	s.done("A NodePool and a KWOKNodeClass, as a Karpenter user writes them, are accepted and Ready")
	return s.show(ctx, "get", "nodepools", "-o", "wide")
}

// scaleUp creates Deployments and waits until every pod runs on a node that Joiner launched.
func (s *story) scaleUp(ctx context.Context) error {
	if err := s.Apply(ctx, manifest("workload")); err != nil {
		return err
	}
	const pods = 20
	err := s.Eventually(ctx, refusing, "20 pods to pend", func(ctx context.Context) (bool, string, error) {
		list, err := s.pods(ctx)
		return err == nil && len(list) == pods, fmt.Sprintf("%d pods", len(list)), err
	})
	if err != nil {
		return err
	}
	s.done("20 pods of three Deployments pend: the cluster has no node")
	start := time.Now()
	err = s.Eventually(ctx, placing, "20 pods to run", func(ctx context.Context) (bool, string, error) {
		list, err := s.pods(ctx)
		running := 0
		for _, pod := range list {
			if pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return running == pods, fmt.Sprintf("%d of %d run", running, pods), err
	})
	if err != nil {
		return err
	}
	if err := s.checkClaims(ctx); err != nil {
		return err
	}
	s.done(
		"All 20 run, %.1f s later: NodeClaims launched, nodes registered and initialized, pods bound by kube-scheduler",
		time.Since(start).Seconds())
	if err := s.show(ctx, "get", "nodeclaims", "-o", "wide"); err != nil {
		return err
	}
	if err := s.checkPlacement(ctx); err != nil {
		return err
	}
	price, err := s.price(ctx, "default")
	if err != nil {
		return err
	}
	s.done(
		"Checked: web is spread evenly over its zones, no two cache pods share a node, workers are on on-demand. Price: $%.3f/h",
		price)
	return s.show(ctx, "get", "nodepools", "-o", "wide")
}

// checkClaims checks that every claim is launched, registered and initialized, and that its node exists.
func (s *story) checkClaims(ctx context.Context) error {
	return s.Eventually(ctx, refusing, "all NodeClaims to be Launched, Registered, Initialized and Ready",
		func(ctx context.Context) (bool, string, error) {
			var claims karpenterv1.NodeClaimList
			if err := s.Client.List(ctx, &claims); err != nil {
				return false, "", err
			}
			for _, claim := range claims.Items {
				for _, condition := range []string{"Launched", "Registered", "Initialized", "Ready"} {
					if !conditionTrue(claim.Status.Conditions, condition) {
						return false, fmt.Sprintf("%s is not %s", claim.Name, condition), nil
					}
				}
			}
			return len(claims.Items) > 0, "no NodeClaim", nil
		})
}

// checkPlacement checks where the pods actually are.
func (s *story) checkPlacement(ctx context.Context) error {
	list, err := s.pods(ctx)
	if err != nil {
		return err
	}
	nodes, err := s.nodes(ctx)
	if err != nil {
		return err
	}
	zones, caches := map[string]int{}, map[string]int{}
	for _, pod := range list {
		node := nodes[pod.Spec.NodeName]
		switch pod.Labels["app"] {
		case "web":
			zones[node.Labels[corev1.LabelTopologyZone]]++
		case "cache":
			caches[node.Name]++
		case "worker":
			if got := node.Labels[karpenterv1.CapacityTypeLabelKey]; got != "on-demand" {
				return fmt.Errorf("%s stands on %s, whose capacity type is %q; it asked for on-demand", pod.Name,
					node.Name, got)
			}
		}
	}
	low, high := 1<<30, 0
	for _, n := range zones {
		low, high = min(low, n), max(high, n)
	}
	if high-low > 1 {
		return fmt.Errorf("web is spread %v over zones; maxSkew is 1", zones)
	}
	for name, n := range caches {
		if n > 1 {
			return fmt.Errorf("%d cache pods share %s; their anti-affinity forbids it", n, name)
		}
	}
	return nil
}

// explain creates a pod that cannot be placed and waits for the event that says why.
func (s *story) explain(ctx context.Context) error {
	if err := s.Apply(ctx, manifest("impossible")); err != nil {
		return err
	}
	message, err := s.event(ctx, "impossible", "pool default")
	if err != nil {
		return err
	}
	if !strings.Contains(message, "cpu=1000") {
		return fmt.Errorf("the event does not name what is in the way, cpu=1000: %s", message)
	}
	s.done("A pod that asks for 1000 cpus waits, and says why:\n\n    %s", message)
	if err := s.explained(ctx, "default/impossible", "PodTooLarge"); err != nil {
		return err
	}
	_, err = s.Kubectl(ctx, "", "delete", "pod", "impossible", "--wait=true")
	return err
}

// event waits for an event about a pod that says why no node can be launched for it.
func (s *story) event(ctx context.Context, pod, part string) (message string, err error) {
	err = s.Eventually(ctx, refusing, "an event that says why pod "+pod+" cannot be placed",
		func(ctx context.Context) (bool, string, error) {
			var events corev1.EventList
			if err := s.Client.List(ctx, &events, client.InNamespace("default")); err != nil {
				return false, "", err
			}
			i := slices.IndexFunc(events.Items, func(e corev1.Event) bool {
				return e.InvolvedObject.Kind == "Pod" && e.InvolvedObject.Name == pod &&
					strings.Contains(e.Message, part)
			})
			if i >= 0 {
				message = events.Items[i].Message
			}
			return i >= 0, "no such event", nil
		})
	return message, err
}

// scaleDown removes the work and waits until nothing is left.
func (s *story) scaleDown(ctx context.Context) error {
	before, err := s.price(ctx, "default")
	if err != nil {
		return err
	}
	if _, err := s.Kubectl(ctx, "", "scale", "deployment", "--all", "--replicas=0"); err != nil {
		return err
	}
	s.done(
		"Scaled to zero. Once a node has been quiet for the pool's consolidateAfter (5s) it is tainted, drained and gone")
	start := time.Now()
	err = s.Eventually(ctx, leaving, "all nodes to go", func(ctx context.Context) (bool, string, error) {
		var claims karpenterv1.NodeClaimList
		if err := s.Client.List(ctx, &claims); err != nil {
			return false, "", err
		}
		nodes, err := s.nodes(ctx)
		return len(claims.Items)+len(nodes) == 0, fmt.Sprintf("%d NodeClaims, %d nodes", len(claims.Items),
			len(nodes)), err
	})
	if err != nil {
		return err
	}
	took := time.Since(start)
	err = s.Eventually(ctx, refusing, "the NodePool to count no node",
		func(ctx context.Context) (bool, string, error) {
			var pool karpenterv1.NodePool
			err := s.Client.Get(ctx, client.ObjectKey{Name: "default"}, &pool)
			return err == nil && (pool.Status.Nodes == nil || *pool.Status.Nodes == 0),
				fmt.Sprint(pool.Status.Resources), err
		})
	if err != nil {
		return err
	}
	s.done("No NodeClaim, no node and no finalizer is left, %.1f s later. Price: $%.3f/h before, $0 now",
		took.Seconds(), before)
	return s.show(ctx, "get", "nodepools", "-o", "wide")
}

func (s *story) pods(ctx context.Context) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := s.Client.List(ctx, &list, client.InNamespace("default"))
	return list.Items, err
}

func (s *story) nodes(ctx context.Context) (map[string]corev1.Node, error) {
	var list corev1.NodeList
	err := s.Client.List(ctx, &list)
	byName := map[string]corev1.Node{}
	for _, node := range list.Items {
		byName[node.Name] = node
	}
	return byName, err
}
