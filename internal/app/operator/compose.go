package operator

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/kube"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// Names of the operator's controllers that are there once; those of wrappers have the name of their kind.
const (
	PolicyStatus = "autonodepolicy"
	Protection   = "protection"
	DefaultClass = "defaultnodeclass"
	Teardown     = "teardown"
	Approval     = "kubeletcsr"
	Conformance  = "conformance"
)

const (
	// wrapperWorkers is how many wrappers of a kind are worked on at the same time.
	wrapperWorkers = 10
	// policyAfter gathers what wrappers report before the policy's status is written.
	policyAfter = time.Second
	// conformanceAfter gathers what changes in the guest before everything is compared with the policy.
	conformanceAfter = 10 * time.Second
)

// operatorDeps are what the operator's controllers are made of.
type operatorDeps struct {
	kinds       []operator.Kind // pools first
	guest       operator.GuestClient
	live        client.Reader
	management  operator.ManagementClient
	board       *operator.Board
	protections []merge.Protection
	unwanted    []merge.Protection
	unwrapped   []schema.GroupKind // node classes of which NodeClaims may refer to any
	events      event.Recorder
	metrics     operator.Metrics
	bells       *serve.Bells
	foreign     operator.ForeignRule
	claimsOpen  bool
	infraID     string // of AWS; "" when its node classes are not served
	profile     string // the instance profile of all nodes; "" when none is given
	teardown    bool
	done        func() // after a teardown
	now         func() time.Time
	log         logr.Logger

	bootstrapper  string                 // whose certificate requests may be approved; "" when none are
	instanceNames operator.InstanceNames // with a bootstrapper
}

// kinds are the wrappers of the platforms: pools first, which every platform has (G25).
func (c Config) kinds(management operator.ManagementClient) ([]operator.Kind, error) {
	var pools merge.NodePoolSettings
	pools.NodeClasses = c.unwrapped()
	if !slices.Contains(c.Platforms, PlatformAWS) {
		return []operator.Kind{operator.NodePools(pools).OnlyManaged(nil)}, nil
	}
	volume, err := c.rootVolume()
	if err != nil {
		return nil, err
	}
	bootstrap := operator.BootstrapFromFile(c.UserDataFile, c.AMIs, os.ReadFile)
	if c.UserDataSecrets {
		bootstrap = operator.BootstrapFromSecrets(management)
	}
	classes := operator.EC2NodeClasses(operator.AWSConfig{
		Infra:      merge.Infra{InfraID: c.InfraID, InstanceProfile: c.InstanceProfile, ResourceTags: c.resourceTags()},
		RootVolume: volume, Bootstrap: bootstrap, VersionsFromStatus: c.UserDataSecrets, ReleaseVersion: c.ReleaseVersion,
	})
	return []operator.Kind{operator.NodePools(pools).OnlyManaged(&classes), classes}, nil
}

// resourceTags are the hosted cluster's tags, in the order of their names.
func (c Config) resourceTags() []merge.ResourceTag {
	var tags []merge.ResourceTag
	for _, group := range []struct {
		tags        map[string]string
		overridable bool
	}{{c.ResourceTags, false}, {c.OverridableTags, true}} {
		for key, value := range group.tags {
			tags = append(tags, merge.ResourceTag{Key: key, Value: value, Overridable: group.overridable})
		}
	}
	slices.SortFunc(tags, func(a, b merge.ResourceTag) int { return strings.Compare(a.Key, b.Key) })
	return tags
}

// controllers are the step functions with what wakes them.
func (d operatorDeps) controllers() []kube.Controller {
	status := kube.Controller{Name: PolicyStatus, Workers: 1, Start: true, Reconciler: operator.NewPolicyController(operator.PolicyConfig{
		Management: d.management, Guest: d.guest, Kinds: d.kinds, Board: d.board, ClaimsOpen: d.claimsOpen, Metrics: d.metrics, Now: d.now, Log: d.log.WithName(PolicyStatus),
	})}
	var controllers []kube.Controller
	for _, kind := range d.kinds {
		controllers = append(controllers, kube.Controller{
			Name: kind.Wrapper, Workers: wrapperWorkers,
			Reconciler: operator.New(operator.Config{
				Kind: kind, Guest: d.guest, Live: d.live, Board: d.board, Foreign: d.foreign, Events: d.events, Metrics: d.metrics, Now: d.now, Log: d.log.WithName(kind.Wrapper),
			}),
			// Once the last write of a step is seen, the event of its first one brings nothing new.
			Watches: []kube.Watch{
				{Object: kind.NewWrapper(), After: kube.OwnPatches, Requests: kube.Itself},
				{Object: kind.NewProduct(), After: kube.OwnPatches, Requests: kube.Itself},
			},
		})
		status.Watches = append(status.Watches,
			kube.Watch{Object: kind.NewWrapper(), After: policyAfter, Requests: always},
			kube.Watch{Object: kind.NewProduct(), After: policyAfter, Requests: bornOrGone})
	}
	protector := operator.NewProtectionController(operator.ProtectionConfig{
		Guest: d.guest, Wanted: d.protections, Unwanted: d.unwanted, Board: d.board, Wake: d.guestProtected,
		Events: d.events, Metrics: d.metrics, Now: d.now, Log: d.log.WithName(Protection),
	})
	protection := kube.Controller{Name: Protection, Workers: 1, Start: true, Reconciler: protector, Watches: []kube.Watch{
		{Object: &admissionv1.ValidatingAdmissionPolicy{}, Requests: d.ownProtection},
		{Object: &admissionv1.ValidatingAdmissionPolicyBinding{}, Requests: d.ownProtection},
	}}
	controllers = append([]kube.Controller{protection, d.claimRule(), status}, controllers...)
	if d.teardown {
		teardown := operator.TeardownConfig{
			Guest: d.guest, Kinds: d.kinds, Protections: slices.Concat(d.protections, d.unwanted, []merge.Protection{operator.ClaimRule()}),
			Board: d.board, Done: d.done, Log: d.log.WithName(Teardown),
		}
		controllers = append(controllers,
			kube.Controller{Name: Teardown, Workers: 1, Start: true, Reconciler: operator.NewTeardown(teardown)})
	}
	if d.infraID != "" && !d.teardown {
		class := operator.DefaultClassConfig{Guest: d.guest, InfraID: d.infraID, Board: d.board, Metrics: d.metrics}
		controllers = append(controllers, kube.Controller{
			Name: DefaultClass, Workers: 1, Start: true, Reconciler: operator.NewDefaultClassController(class),
			Watches: []kube.Watch{{Object: &hypershiftv1.OpenshiftEC2NodeClass{}, Requests: defaultClassGone}},
		})
	}
	if d.bootstrapper != "" && !d.teardown {
		controllers = append(controllers, d.approval())
	}
	if !d.teardown {
		controllers = append(controllers, d.conformance())
	}
	for i := range controllers {
		controllers[i].Reconciler = serve.NewCalm(controllers[i].Reconciler)
	}
	return controllers
}

// guestProtected wakes everybody: until then nobody writes (G22).
func (d operatorDeps) guestProtected(ctx context.Context) {
	d.bells.Ring(DefaultClass, kube.Singleton(), 0)
	d.bells.Ring(Conformance, kube.Singleton(), 0)
	d.policyChanged(ctx, true)
}

// verdictReached wakes the policy's status, which is made from what the controllers found out, and the pools of a node
// class of which there is news.
func (d operatorDeps) verdictReached(kind, name string) {
	d.bells.Ring(PolicyStatus, kube.Singleton(), policyAfter)
	d.bells.Ring(Conformance, kube.Singleton(), conformanceAfter)
	if kind != hypershiftv1.OpenshiftEC2NodeClassKind {
		return
	}
	var pools hypershiftv1beta1.OpenshiftNodePoolList
	if d.guest.List(context.Background(), &pools, client.UnsafeDisableDeepCopy) != nil {
		return // a cache fails only while it is not started, and then everything is listed again
	}
	for i := range pools.Items {
		if operator.ClassOf(&pools.Items[i]) != name {
			continue
		}
		for _, request := range kube.Requests(pools.Items[i].Name) {
			d.bells.Ring(d.kinds[0].Wrapper, request, 0)
		}
	}
}

// policyChanged wakes who has to look again after the policy was read: the policy's status always, the wrappers when what
// is asked of them is different.
func (d operatorDeps) policyChanged(ctx context.Context, forWrappers bool) {
	d.bells.Ring(PolicyStatus, kube.Singleton(), policyAfter)
	d.bells.Ring(Conformance, kube.Singleton(), conformanceAfter)
	if !forWrappers {
		return
	}
	for _, kind := range d.kinds {
		list := kind.NewWrapperList()
		if d.guest.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
			continue // a cache fails only while it is not started, and then everything is listed again
		}
		_ = meta.EachListItem(list, func(item runtime.Object) error { // the function returns none
			for _, request := range kube.Requests(item.(client.Object).GetName()) {
				d.bells.Ring(kind.Wrapper, request, 0)
			}
			return nil
		})
	}
}

// ownProtection wakes the controller of the admission policies for its own ones.
func (d operatorDeps) ownProtection(_ context.Context, old, fresh client.Object) []reconcile.Request {
	if fresh == nil {
		fresh = old
	}
	for _, wanted := range slices.Concat(d.protections, d.unwanted) {
		if name := fresh.GetName(); name == wanted.Policy.Name || name == wanted.Binding.Name {
			return []reconcile.Request{kube.Singleton()}
		}
	}
	return nil
}

func always(context.Context, client.Object, client.Object) []reconcile.Request {
	return []reconcile.Request{kube.Singleton()}
}

func bornOrGone(_ context.Context, old, fresh client.Object) []reconcile.Request {
	if old != nil && fresh != nil {
		return nil
	}
	return []reconcile.Request{kube.Singleton()}
}

func defaultClassGone(_ context.Context, old, fresh client.Object) []reconcile.Request {
	if fresh != nil || old.GetName() != operator.DefaultClassName {
		return nil
	}
	return []reconcile.Request{kube.Singleton()}
}
