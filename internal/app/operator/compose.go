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
	"github.com/joiner-autoscaler/joiner/internal/autonode/conformance"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/autonode/operator"
	"github.com/joiner-autoscaler/joiner/internal/kube"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// Names of the operator's controllers that exist once. Controllers of wrappers are named by their kind.
const (
	PolicyStatus = "autonodepolicy"
	Protection   = "protection"
	DefaultClass = "defaultnodeclass"
	Teardown     = "teardown"
	Approval     = "kubeletcsr"
	HandOver     = "handover"
	Dismantling  = "dismantling"
	Conformance  = "conformance"
	Sight        = "sight"
)

const (
	// wrapperWorkers is how many wrappers of a kind are worked on at the same time.
	wrapperWorkers = 10
	// policyAfter is how long reports of wrappers are gathered before the policy's status is written.
	policyAfter = time.Second
	// conformanceAfter is how long changes in the guest are gathered before everything is compared with the policy
	//
	conformanceAfter = 10 * time.Second
)

// bells wake controllers by name; see [serve.Bells].
type bells interface {
	Ring(name string, request reconcile.Request, after time.Duration)
}

// operatorDeps is what the operator's controllers are made of.
type operatorDeps struct {
	kinds       []operator.Kind // pools first
	others      []operator.Kind // written by another operator
	owning      operator.Owning
	guest       operator.GuestClient
	live        client.Reader
	management  operator.ManagementClient
	board       *operator.Board
	protections []merge.Protection
	ofOthers    []merge.Protection // written by another operator
	unwanted    []merge.Protection
	unwrapped   []schema.GroupKind // kinds of node classes that NodeClaims may refer to freely
	events      event.Recorder
	metrics     operator.Metrics
	bells       bells
	foreign     operator.ForeignRule
	claimsOpen  bool
	aws         bool
	hosted      bool   // the infrastructure comes from the HostedControlPlane
	infraID     string // of AWS, from a flag
	profile     string // the instance profile of all nodes; "" when none is given
	teardown    bool
	release     bool
	done        func() // after a teardown or a release
	now         func() time.Time
	log         logr.Logger

	bootstrapper  string                 // the user whose certificate requests may be approved; "" for no approvals
	instanceNames operator.InstanceNames // with a bootstrapper
}

// split separates kinds that the operator writes from those that it only reads.
func split(all []operator.Kind) (own, others []operator.Kind) {
	for _, kind := range all {
		if kind.ByOther {
			others = append(others, kind)
		} else {
			own = append(own, kind)
		}
	}
	return own, others
}

// byOthers reports whether another operator writes a kind of product.
func (d operatorDeps) byOthers(product string) bool {
	return slices.ContainsFunc(d.others, func(kind operator.Kind) bool { return kind.Product == product })
}

// kinds returns the wrappers of the platforms, also those that another operator writes. Pools come first, since every
// platform has them (G25).
func (c Config) kinds(management operator.ManagementClient, board *operator.Board,
	now func() time.Time) ([]operator.Kind, error) {
	owning, err := operator.NewOwning(c.Own)
	if err != nil {
		return nil, err
	}
	var settings merge.NodePoolSettings
	settings.NodeClasses = c.unwrapped()
	pools := operator.NodePools(settings)
	pools.ByOther = !owning.Has(operator.PartNodePools)
	if !slices.Contains(c.Platforms, PlatformAWS) {
		return []operator.Kind{pools.OnlyManaged(nil)}, nil
	}
	volume, err := c.rootVolume()
	if err != nil {
		return nil, err
	}
	bootstrap := operator.BootstrapFromFile(c.UserDataFile, c.AMIs, os.ReadFile)
	if c.UserDataSecrets {
		bootstrap = operator.BootstrapFromSecrets(management, now)
	}
	aws := operator.AWSConfig{
		Infra: merge.Infra{InfraID: c.InfraID, InstanceProfile: c.InstanceProfile,
			ResourceTags: c.resourceTags()},
		RootVolume: volume, Bootstrap: bootstrap, VersionsFromStatus: c.UserDataSecrets,
		ReleaseVersion: c.ReleaseVersion,
	}
	if c.InfraFrom == InfraFromHosted {
		aws.Hosted = func() (merge.Infra, bool) { hosted := board.Hosted(); return hosted.Infra, hosted.Known }
	}
	classes := operator.EC2NodeClasses(aws)
	classes.ByOther = !owning.Has(operator.PartEC2NodeClasses)
	return []operator.Kind{pools.OnlyManaged(&classes), classes}, nil
}

// resourceTags returns the hosted cluster's tags, in the order of their names.
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

// controllers returns the step functions with what wakes them.
func (d operatorDeps) controllers() []kube.Controller {
	if d.release {
		return []kube.Controller{d.handOver()}
	}
	status := d.policyStatus()
	var controllers []kube.Controller
	for _, kind := range d.kinds {
		controller := kube.Controller{
			Name: kind.Wrapper, Workers: wrapperWorkers,
			Reconciler: operator.New(operator.Config{
				Kind: kind, Guest: d.guest, Live: d.live, Board: d.board, Foreign: d.foreign, Events: d.events,
				Metrics: d.metrics, Now: d.now, Log: d.log.WithName(kind.Wrapper),
			}),
			// By the time the last write of a step is seen, the event of its first write brings nothing new.
			Watches: []kube.Watch{
				{Object: kind.NewWrapper(), After: kube.OwnPatches, Requests: kube.Itself},
				{Object: kind.NewProduct(), After: kube.OwnPatches, Requests: kube.Itself},
			},
		}
		if kind.Product == conformance.NodePool {
			controller.Watches = append(controller.Watches, d.classesOfOthers()...)
		}
		controllers = append(controllers, controller)
		status.Watches = append(status.Watches,
			kube.Watch{Object: kind.NewWrapper(), After: policyAfter, Requests: always},
			kube.Watch{Object: kind.NewProduct(), After: policyAfter, Requests: bornOrGone})
	}
	protector := operator.NewProtectionController(operator.ProtectionConfig{
		Guest: d.guest, Wanted: d.protections, Unwanted: d.unwanted, Others: d.ofOthers, Board: d.board,
		Wake:   d.guestProtected,
		Events: d.events, Metrics: d.metrics, Now: d.now, Log: d.log.WithName(Protection),
	})
	protection := kube.Controller{Name: Protection, Workers: 1, Start: true, Reconciler: protector,
		Watches: []kube.Watch{
			{Object: &admissionv1.ValidatingAdmissionPolicy{}, Requests: d.ownProtection},
			{Object: &admissionv1.ValidatingAdmissionPolicyBinding{}, Requests: d.ownProtection},
		}}
	controllers = append([]kube.Controller{protection, status}, controllers...)
	if d.owning.Has(operator.PartNodeClaimRules) {
		controllers = append(controllers, d.claimRule())
	}
	if d.teardown {
		teardown := operator.TeardownConfig{
			Guest: d.guest, Kinds: d.kinds, Protections: d.allProtections(),
			Board: d.board, Done: d.done, Log: d.log.WithName(Teardown),
		}
		controllers = append(controllers,
			kube.Controller{Name: Teardown, Workers: 1, Start: true, Reconciler: operator.NewTeardown(teardown)})
	} else {
		controllers = append(controllers, d.lasting()...)
	}
	for i, c := range controllers {
		if d.hosted && c.Name != PolicyStatus && c.Name != Sight {
			controllers[i].Reconciler = pausing{c.Reconciler, d.board, d.now}
		}
		controllers[i].Reconciler = serve.NewCalm(controllers[i].Reconciler)
	}
	return controllers
}

// policyStatus returns the controller of the policy's status, without the watches of the kinds.
func (d operatorDeps) policyStatus() kube.Controller {
	config := operator.PolicyConfig{
		Management: d.management, Guest: d.guest, Kinds: d.kinds, Board: d.board, ClaimsOpen: d.claimsOpen,
		Metrics: d.metrics, Now: d.now, Log: d.log.WithName(PolicyStatus),
		PoolsOfOthers: d.byOthers(conformance.NodePool), ClassesOfOthers: d.byOthers(conformance.EC2NodeClass),
	}
	return kube.Controller{Name: PolicyStatus, Workers: 1, Start: true,
		Reconciler: operator.NewPolicyController(config)}
}

// handOver returns the only controller of a release.
func (d operatorDeps) handOver() kube.Controller {
	return kube.Controller{Name: HandOver, Workers: 1, Start: true,
		Reconciler: serve.NewCalm(operator.NewHandOver(operator.HandOverConfig{
			Guest: d.guest, Live: d.live, Management: d.management, Kinds: d.kinds, Protections: d.allProtections(),
			Done:    d.done,
			Metrics: d.metrics, Now: d.now, Log: d.log.WithName(HandOver),
		}))}
}

// lasting returns the controllers that a teardown does without.
func (d operatorDeps) lasting() (controllers []kube.Controller) {
	if d.aws && d.owning.Has(operator.PartDefaultClass) {
		class := operator.DefaultClassConfig{Guest: d.guest, InfraID: d.infraID, Board: d.board, Metrics: d.metrics}
		controllers = append(controllers, kube.Controller{
			Name: DefaultClass, Workers: 1, Start: true, Reconciler: operator.NewDefaultClassController(class),
			Watches: []kube.Watch{{Object: &hypershiftv1.OpenshiftEC2NodeClass{}, Requests: defaultClassGone}},
		})
	}
	if d.bootstrapper != "" {
		controllers = append(controllers, d.approval())
	}
	controllers = append(controllers, d.conformance(), d.sight())
	if d.hosted && d.owning.Has(operator.PartNodePools) {
		dismantling := operator.TeardownConfig{Guest: d.guest, Kinds: d.kinds, Board: d.board,
			Log: d.log.WithName(Dismantling)}
		controllers = append(controllers, kube.Controller{Name: Dismantling, Workers: 1, Start: true,
			Reconciler: operator.NewDismantling(dismantling)})
	}
	return controllers
}

// guestProtected wakes all controllers: nobody writes before the guest is protected (G22).
func (d operatorDeps) guestProtected(ctx context.Context) {
	d.bells.Ring(DefaultClass, kube.Singleton(), 0)
	d.bells.Ring(Conformance, kube.Singleton(), 0)
	d.policyChanged(ctx, true)
}

// verdictReached wakes the policy's status, which is made from what the controllers found. For a node class it
// also wakes the pools that use it.
func (d operatorDeps) verdictReached(kind, name string) {
	d.bells.Ring(PolicyStatus, kube.Singleton(), policyAfter)
	d.bells.Ring(Conformance, kube.Singleton(), conformanceAfter)
	if kind != hypershiftv1.OpenshiftEC2NodeClassKind {
		return
	}
	d.wakePoolsOf(name)
}

// wakePoolsOf wakes the pools that refer to a node class.
func (d operatorDeps) wakePoolsOf(name string) {
	if d.byOthers(conformance.NodePool) {
		return
	}
	var pools hypershiftv1beta1.OpenshiftNodePoolList
	if d.guest.List(context.Background(), &pools, client.UnsafeDisableDeepCopy) != nil {
		return // a cache fails only before it is started, and then everything is listed again
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

// classesOfOthers returns the watches that pools need of node classes made by another operator.
func (d operatorDeps) classesOfOthers() (watches []kube.Watch) {
	wake := func(_ context.Context, old, fresh client.Object) []reconcile.Request {
		switch {
		case fresh == nil:
			d.wakePoolsOf(old.GetName())
		case old == nil || (old.GetDeletionTimestamp() == nil) != (fresh.GetDeletionTimestamp() == nil):
			d.wakePoolsOf(fresh.GetName())
		}
		return nil
	}
	for _, kind := range d.others {
		if kind.Product == conformance.EC2NodeClass {
			watches = append(watches, kube.Watch{Object: kind.NewWrapper(), Requests: wake},
				kube.Watch{Object: kind.NewProduct(), Requests: wake})
		}
	}
	return watches
}

// allProtections returns the admission policies that the operator writes, or has written under other flags.
func (d operatorDeps) allProtections() []merge.Protection {
	all := slices.Concat(d.protections, d.unwanted)
	if d.owning.Has(operator.PartNodeClaimRules) {
		all = append(all, operator.ClaimRule())
	}
	return all
}

// policyChanged wakes the controllers that have to look again after the policy was read: always the policy's status,
// and the wrappers when their requirements changed. The policy also says since when the guest is protected, so
// products without a wrapper are looked at again, too.
func (d operatorDeps) policyChanged(ctx context.Context, forWrappers bool) {
	d.bells.Ring(PolicyStatus, kube.Singleton(), policyAfter)
	d.bells.Ring(Conformance, kube.Singleton(), conformanceAfter)
	if !forWrappers {
		return
	}
	for _, kind := range d.kinds {
		for _, list := range []client.ObjectList{kind.NewWrapperList(), kind.NewProductList()} {
			if d.guest.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
				continue // a cache fails only before it is started, and then everything is listed again
			}
			_ = meta.EachListItem(list, func(item runtime.Object) error { // the function returns no error
				for _, request := range kube.Requests(item.(client.Object).GetName()) {
					d.bells.Ring(kind.Wrapper, request, 0)
				}
				return nil
			})
		}
	}
}

// ownProtection wakes the controller of admission policies for its own policies and bindings.
func (d operatorDeps) ownProtection(_ context.Context, old, fresh client.Object) []reconcile.Request {
	if fresh == nil {
		fresh = old
	}
	for _, wanted := range slices.Concat(d.protections, d.unwanted, d.ofOthers) {
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
