// Package plugin is what a provider brings to a program beside its machines: the kind of its node classes, settings,
// watches and controllers. The port to the machines themselves is package provider, which knows no Kubernetes client.
//
// A provider is a folder below internal/provider. Its folder plug implements [Plugin]; package app lists the plug-ins and
// names none of them anywhere else.
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

// Plugin is a provider that a program can have. It is called in the order of its methods.
type Plugin interface {
	// Name is the provider's short name: that of provider.Provider, and of --providers.
	Name() string
	// Class is the kind of its node classes.
	Class() Class
	// Flags adds its settings.
	Flags(flags *pflag.FlagSet)
	// Load reads the files that its settings name. Each line of an error names a flag, its value and what is allowed.
	Load() error
	// AddToScheme registers its kinds.
	AddToScheme(scheme *runtime.Scheme) error
	// Cached narrows the caches of kinds that nobody else reads, by an empty object of the kind. namespace is where the
	// program keeps its own objects.
	Cached(namespace string) map[client.Object]cache.ByObject
	// Lacks names the setting without which the provider can do nothing and that nobody has given; "" when it has all. A program
	// leaves such a provider out, unless it was asked for by name.
	Lacks() string
	// New makes the provider. What runs for it ends with ctx. The error names what is wrong with the settings.
	New(ctx context.Context, deps Deps) (Parts, error)
}

// Class is a kind of node classes.
type Class struct {
	Resource schema.GroupVersionResource // such as kwoknodeclasses of karpenter.kwok.sh/v1alpha1
	Object   client.Object               // an empty one
}

// Deps are the ports of a provider to the program that it is part of.
type Deps struct {
	Client    client.Client // reads from caches, writes to the API server
	Live      client.Reader // reads from the API server
	Namespace string        // for objects of its own
	// Lease is that of the leader, for events about the whole program; empty where one process leads without.
	Lease types.NamespacedName
	// Correct returns the catalogue as it holds for a claim, where users have said better (NodeOverlay).
	Correct    func(claim *karpenterv1.NodeClaim, c catalog.Catalog) catalog.Catalog
	Events     event.Recorder
	Registerer prometheus.Registerer
	// Version returns the version of the API server, such as 1.34.
	Version func(ctx context.Context) (string, error)
	// Wake calls a controller of the provider's, by its name; or, with an empty name, whoever asks for notices (P-43).
	Wake func(controller string)
	Now  func() time.Time
	Log  logr.Logger
}

// Parts are a provider that runs.
type Parts struct {
	Provider provider.Provider
	// Class is an empty node class.
	Class client.Object
	// Reads are the kinds that it reads from caches, beside node classes and what its watches name.
	Reads []client.Object
	// Indexes are fields that it lists by.
	Indexes []kube.Index
	// Controllers are its own: the life of its node classes, for instance. Their names begin with the provider's.
	Controllers []kube.Controller
	// Notices are changes upon which the provider may have notices at once (P-43). Their requests do not matter.
	Notices []kube.Watch
	// Drifts reports whether a change of a node class, beside that of its annotations, may have made machines drift: their claims
	// are looked at. Nil: none does.
	Drifts func(old, fresh client.Object) bool
	// NodeLabels are the label keys of its nodes that metrics of nodes have as labels, beside those of every node.
	NodeLabels []string
	// Held is how long a launch that was sent in time may be held up on its way and still make a machine; 0 where the cloud itself
	// refuses what comes too late. A hard limit is in force for machines only after that (L-14).
	Held time.Duration
	// Ready says why the provider cannot work yet, for people; "" when it can. Nil: it always can.
	Ready func() string
}
