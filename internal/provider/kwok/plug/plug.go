// Package plug plugs the KWOK provider into a program: its flags, its access to the cluster, and the controller that
// lets simulated machines join when they are due.
package plug

import (
	"context"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/kube"
	"github.com/joiner-autoscaler/joiner/internal/plugin"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
)

// Boot is the name of the controller that lets machines join.
const Boot = "kwok.boot"

// Plug is the KWOK provider with its settings.
type Plug struct {
	types  string // of kwok.LoadInventory
	faults string // of kwok.LoadFaults
	loaded kwok.Config
}

var _ plugin.Plugin = (*Plug)(nil)

// New returns the plug-in with default settings.
func New() *Plug { return &Plug{} }

// Name returns "kwok".
func (p *Plug) Name() string { return "kwok" }

// Class returns KWOKNodeClass.
func (p *Plug) Class() plugin.Class {
	return plugin.Class{Resource: kwokv1alpha1.GroupVersion().WithResource("kwoknodeclasses"),
		Object: &kwokv1alpha1.KWOKNodeClass{}}
}

// Flags implements plugin.Plugin.
func (p *Plug) Flags(flags *pflag.FlagSet) {
	flags.StringVar(&p.types, "instance-types-file-path", p.types,
		"instance types of simulated nodes: a file in Karpenter's format, aws for EC2 types and prices, empty for the built-in ones")
	flags.StringVar(&p.faults, "kwok-faults-file-path", p.faults,
		"what goes wrong with simulated nodes on purpose: a file as in docs/kwok.md, empty for nothing")
}

// Load implements plugin.Plugin.
func (p *Plug) Load() (err error) {
	if p.loaded.Inventory, err = kwok.LoadInventory(p.types, os.ReadFile); err != nil {
		return fmt.Errorf("--instance-types-file-path: %w", err)
	}
	if p.loaded.Faults, err = kwok.LoadFaults(p.faults, p.loaded.Inventory, os.ReadFile); err != nil {
		return fmt.Errorf("--kwok-faults-file-path: %w", err)
	}
	return nil
}

// AddToScheme implements plugin.Plugin.
func (p *Plug) AddToScheme(scheme *runtime.Scheme) error { return kwokv1alpha1.AddToScheme(scheme) }

// Cached keeps ConfigMaps that are not boot records out of memory.
func (p *Plug) Cached(namespace string) map[client.Object]cache.ByObject {
	return map[client.Object]cache.ByObject{&corev1.ConfigMap{}: {
		Namespaces: map[string]cache.Config{namespace: {}},
		Label:      labels.SelectorFromSet(labels.Set{bootRecordLabel: "true"}),
	}}
}

// Lacks implements plugin.Plugin: simulated machines need nothing.
func (p *Plug) Lacks() string { return "" }

// New implements plugin.Plugin. Load must have been called.
func (p *Plug) New(_ context.Context, deps plugin.Deps) (plugin.Parts, error) {
	made := p.loaded
	made.Cluster, made.Now, made.Correct = NewCluster(deps.Client, deps.Live, deps.Namespace), deps.Now, deps.Correct
	machines, err := kwok.New(made)
	if err != nil {
		return plugin.Parts{}, err
	}
	return PartsOf(machines, deps.Now), nil
}

// PartsOf returns the parts of the provider. now is its clock.
func PartsOf(machines *kwok.Provider, now func() time.Time) plugin.Parts {
	return plugin.Parts{
		Provider: machines, Class: &kwokv1alpha1.KWOKNodeClass{}, Reads: []client.Object{&corev1.ConfigMap{}},
		Notices: Notices(),
		NodeLabels: []string{kwokv1alpha1.InstanceSizeLabelKey, kwokv1alpha1.InstanceFamilyLabelKey,
			kwokv1alpha1.InstanceCPULabelKey, kwokv1alpha1.InstanceMemoryLabelKey},
		Controllers: []kube.Controller{{
			Name: Boot, Workers: 1, Start: true, Reconciler: booter{machines, now}, Watches: bootWatches(),
		}},
	}
}

// booter is the step function that lets simulated machines join when they are due.
type booter struct {
	machines *kwok.Provider
	now      func() time.Time
}

// Reconcile implements reconcile.Reconciler.
func (b booter) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	next, err := b.machines.Boot(ctx, b.now())
	if err != nil || next.IsZero() {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: max(time.Millisecond, next.Sub(b.now()))}, nil
}

func bootWatches() []kube.Watch {
	return []kube.Watch{
		{Object: &corev1.ConfigMap{}, Requests: func(_ context.Context, old, fresh client.Object) []reconcile.Request {
			if old != nil || fresh == nil || fresh.GetLabels()[bootRecordLabel] == "" {
				return nil
			}
			return []reconcile.Request{kube.Singleton()}
		}}}
}

// Notices returns the watches for notices: users annotate a node, or change faults that may bring notices.
func Notices() []kube.Watch {
	return []kube.Watch{
		{Object: &corev1.Node{}, Requests: func(_ context.Context, old, fresh client.Object) []reconcile.Request {
			if fresh == nil || !noticed(fresh) || old != nil && noticed(old) {
				return nil
			}
			return []reconcile.Request{kube.Singleton()}
		}},
		{Object: &kwokv1alpha1.KWOKNodeClass{},
			Requests: func(_ context.Context, old, fresh client.Object) []reconcile.Request {
				if old == nil || fresh == nil || maps.Equal(old.GetAnnotations(), fresh.GetAnnotations()) {
					return nil
				}
				return []reconcile.Request{kube.Singleton()}
			}},
	}
}

func noticed(node client.Object) bool {
	_, found := node.GetAnnotations()[kwok.InterruptedAnnotationKey]
	return found
}
