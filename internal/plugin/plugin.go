// Package plugin defines what a provider adds to a program beside machines: the kind of its node classes, settings,
// watches and controllers. The port to the machines is package provider, which knows no Kubernetes client.
//
// A provider is a folder below internal/provider. Its folder plug implements [Plugin]. Package app lists the plug-ins
// in one place and names none of them elsewhere.
package plugin

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/kube"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// Plugin is a provider that a program can have. Its methods are called in the order in which they are declared.
type Plugin interface {
	// Name is the provider's short name, as in provider.Provider and --providers.
	Name() string
	// Class is the kind of its node classes.
	Class() Class
	// Flags adds its settings.
	Flags(flags *pflag.FlagSet)
	// Load reads the files that its settings name. Each line of an error names a flag, its value and what is allowed.
	Load() error
	// AddToScheme registers its kinds.
	AddToScheme(scheme *runtime.Scheme) error
	// Cached restricts the caches of kinds that nobody else reads. The keys are empty objects of the kinds. namespace
	// is where the program keeps its own objects.
	Cached(namespace string) map[client.Object]cache.ByObject
	// Lacks returns a required setting that is missing, "" when there is none. A program leaves out a provider that
	// lacks one, unless the user named it.
	Lacks() string
	// New creates the provider. Its goroutines end with ctx. The error names what is wrong with the settings.
	New(ctx context.Context, deps Deps) (Parts, error)
}

// Class is a kind of node classes.
type Class struct {
	Resource schema.GroupVersionResource // such as kwoknodeclasses of karpenter.kwok.sh/v1alpha1
	Object   client.Object               // an empty one
}

// Deps are what the program offers to a provider.
type Deps struct {
	Client    client.Client // reads from caches, writes to the API server
	Live      client.Reader // reads from the API server
	Namespace string        // for objects of its own
	// Lease is the leader's lease, for events about the whole program; empty without leader election.
	Lease types.NamespacedName
	// Correct returns the catalogue for a claim, with the corrections of users (NodeOverlay).
	Correct    func(claim *karpenterv1.NodeClaim, c catalog.Catalog) catalog.Catalog
	Events     event.Recorder
	Registerer prometheus.Registerer
	// Version returns the version of the API server, such as 1.34.
	Version func(ctx context.Context) (string, error)
	// Wake wakes a controller of the provider by its name, or with an empty name the controller that reads notices
	// (P-43).
	Wake func(controller string)
	Now  func() time.Time
	Log  logr.Logger
}

// Parts are the parts of a running provider.
type Parts struct {
	Provider provider.Provider
	// Class is an empty node class.
	Class client.Object
	// Reads are the kinds that it reads from caches, beside node classes and the kinds of its watches.
	Reads []client.Object
	// Indexes are fields that it lists by.
	Indexes []kube.Index
	// Controllers are its own ones, such as that of its node classes. Their names begin with the provider's name.
	Controllers []kube.Controller
	// Notices are watches after whose events the provider may have new notices (P-43). Their requests do not matter.
	Notices []kube.Watch
	// Drifts reports whether a change of a node class, not counting its annotations, may make machines drift. Their
	// claims are then checked. Nil means never.
	Drifts func(old, fresh client.Object) bool
	// NodeLabels are keys of its nodes' labels that become metric labels, beside those of all nodes.
	NodeLabels []string
	// Held is how long a launch sent in time may be delayed and still create a machine; 0 if the cloud itself refuses
	// late calls. Only after that time is a hard limit in force for machines (L-14).
	Held time.Duration
	// Ready says why the provider cannot work yet, for people; "" when it can. Nil means that it always can.
	Ready func() string
}
