package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/kube/event"
)

// Config is the configuration of a [Controller]. All fields except Foreign are required.
type Config struct {
	Kind    Kind
	Guest   GuestClient   // reads from a cache that watches wrappers and products
	Live    client.Reader // reads from the guest's API server
	Board   *Board
	Foreign ForeignRule // "" reports
	Events  event.Recorder
	Metrics Metrics
	Now     func() time.Time
	Log     logr.Logger
}

// Controller makes the product of each wrapper of one kind and keeps it as wanted: gather, decide, act, one name for
// each step. It remembers only its last writes, to distinguish them from those of others. It shares its results on the
// board.
type Controller struct {
	config  Config
	written *written // products
	answers *answers // wrappers

	patience  patience  // of pools with their class
	failing   patience  // with failed writes
	trusted   trusted   // classes of pools
	standings standings // of products
}

// New returns the controller.
func New(config Config) *Controller {
	return &Controller{config: config, written: newWritten(), answers: newAnswers()}
}

// scene is the input of a step.
type scene struct {
	name             string
	wrapper, product client.Object // nil when they do not exist
	reading          Reading
}

// Reconcile brings the product of that name in line with its wrapper and the policy.
func (c *Controller) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if c.config.Kind.Shared && c.config.Board.leavesClasses() { // as HyperShift's operator does
		c.forget(request.Name)
		return reconcile.Result{}, nil
	}
	s, err := c.gather(ctx, request.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	switch {
	case s.wrapper == nil:
		c.forget(s.name)
		c.config.Board.unmade(c.config.Kind.Product, s.name)
		result, err := c.orphan(ctx, s)
		if errors.Is(err, errBehind) {
			return reconcile.Result{RequeueAfter: behindAgainAfter}, nil
		}
		return result, err
	case s.wrapper.GetDeletionTimestamp() != nil:
		err := c.retire(ctx, s)
		c.config.Board.Forget(c.config.Kind.Wrapper, s.name)
		if errors.Is(err, errBehind) {
			return reconcile.Result{RequeueAfter: behindAgainAfter}, nil
		}
		return reconcile.Result{}, err
	case !c.config.Board.Protected(): // G22: protection wakes everybody
		return reconcile.Result{}, nil
	}
	result, out, err := c.apply(ctx, s)
	if err != nil { // its state is unknown: it may have changed, and the write failed
		c.config.Board.Forget(c.config.Kind.Wrapper, s.name)
		return reconcile.Result{}, err
	}
	if out == nil {
		return result, nil
	}
	c.config.Board.made(c.config.Kind.Product, s.name, s.reading, *out)
	again, err := c.report(ctx, s, *out)
	if err := errors.Join(err, out.unheld); err != nil {
		return reconcile.Result{}, err
	}
	if again > 0 && (result.RequeueAfter == 0 || again < result.RequeueAfter) {
		result.RequeueAfter = again
	}
	return result, nil
}

// forget removes what is remembered about a wrapper that is gone, or that another operator follows now.
func (c *Controller) forget(name string) {
	c.config.Board.Forget(c.config.Kind.Wrapper, name)
	c.failing.forget(name)
	c.trusted.forget(name)
	c.standings.forget(name)
}

func (c *Controller) gather(ctx context.Context, name string) (scene, error) {
	s := scene{name: name, reading: c.config.Board.Reading()}
	kind := c.config.Kind
	for _, read := range []struct {
		name   string
		object client.Object
		into   *client.Object
	}{{kind.Wrapper, kind.NewWrapper(), &s.wrapper}, {kind.Product, kind.NewProduct(), &s.product}} {
		err := c.config.Guest.Get(ctx, client.ObjectKey{Name: name}, read.object)
		switch {
		case err == nil:
			*read.into = read.object
		case !apierrors.IsNotFound(err):
			return s, fmt.Errorf("reading %s %s: %w", read.name, name, err)
		}
	}
	if s.wrapper != nil {
		s.wrapper = c.answers.newest(s.wrapper)
	} else {
		c.answers.forget(name)
	}
	if s.product != nil {
		s.product = c.written.newest(s.product)
	}
	return s, nil
}

// orphan deletes a product whose wrapper is gone, if the product is the operator's (R25). Others are strangers.
func (c *Controller) orphan(ctx context.Context, s scene) (reconcile.Result, error) {
	if s.product == nil {
		c.written.forget(s.name)
		return reconcile.Result{}, nil
	}
	if s.product.GetDeletionTimestamp() != nil {
		return reconcile.Result{}, nil
	}
	if !c.own(s.product) {
		return c.stranger(ctx, s)
	}
	if err := c.reallyGone(ctx, s.name); err != nil {
		return reconcile.Result{}, err
	}
	c.config.Log.Info("deleting what lost its wrapper", "kind", c.config.Kind.Product, "name", s.name)
	return reconcile.Result{}, c.delete(ctx, s.product)
}

// reallyGone returns an error unless the API server itself says that there is no wrapper of that name. The cache is
// not enough, since nodes go with a product.
func (c *Controller) reallyGone(ctx context.Context, name string) error {
	err := c.config.Live.Get(ctx, client.ObjectKey{Name: name}, c.config.Kind.NewWrapper())
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		err = errBehind
	}
	return fmt.Errorf("looking whether %s %s is gone: %w", c.config.Kind.Wrapper, name, err)
}

// retire deletes the product of a wrapper that is being deleted. When the product is gone, it lets the wrapper go
// (R24). The cache may not show a product that was made or adopted a moment ago, so the API server itself has to say
// that there is none.
func (c *Controller) retire(ctx context.Context, s scene) error {
	product, err := s.product, error(nil)
	mine := func() bool { return product != nil && (c.own(product) || c.adopted(s.wrapper)) }
	if !mine() {
		if product, err = c.live(ctx, s.name); err != nil {
			return err
		}
	}
	if !mine() {
		c.written.forget(s.name)
		return c.dropFinalizer(ctx, s.wrapper)
	}
	if product.GetDeletionTimestamp() == nil {
		if err := c.notReplaced(ctx, s.wrapper); err != nil {
			return err
		}
		if err := c.delete(ctx, product); err != nil {
			return err
		}
	}
	if s.product == nil {
		return errBehind // the product may be gone before the cache shows it, and then its deletion wakes nobody
	}
	return nil // its deletion wakes this controller
}

// live returns the product of that name from the API server itself, nil for none. It lists, since the operator has no
// right to get one.
func (c *Controller) live(ctx context.Context, name string) (found client.Object, err error) {
	list := c.config.Kind.NewProductList()
	err = c.config.Live.List(ctx, list, client.MatchingFields{"metadata.name": name})
	if err == nil {
		err = meta.EachListItem(list, func(o runtime.Object) error {
			if product := o.(client.Object); product.GetName() == name {
				found = product
			}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("looking whether %s %s is gone: %w", c.config.Kind.Product, name, err)
	}
	return found, nil
}

// notReplaced returns an error if the API server has another wrapper of that name, which the cache does not show yet:
// its user took the finalizers off the old one and made it anew. The product becomes the new one's.
func (c *Controller) notReplaced(ctx context.Context, wrapper client.Object) error {
	live := c.config.Kind.NewWrapper()
	err := c.config.Live.Get(ctx, client.ObjectKeyFromObject(wrapper), live)
	if err == nil && live.GetUID() != wrapper.GetUID() {
		err = errBehind
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("looking whether %s %s was made anew: %w", c.config.Kind.Wrapper, wrapper.GetName(), err)
	}
	return nil
}

// delete deletes a product as it was looked at. If it has changed since, it may be that of a wrapper that was made
// meanwhile, and so errBehind asks for another look.
func (c *Controller) delete(ctx context.Context, product client.Object) error {
	uid, version := product.GetUID(), product.GetResourceVersion()
	c.config.Metrics.Writes.WithLabelValues(c.config.Kind.Product, "delete").Inc()
	err := c.config.Guest.Delete(ctx, product, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if apierrors.IsConflict(err) {
		return errBehind
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s %s: %w", c.config.Kind.Product, product.GetName(), err)
	}
	return nil
}

// own reports whether a product is the operator's: by its label or owner, or because this process knows it from
// before.
func (c *Controller) own(product client.Object) bool {
	return managed(product, c.config.Kind.Wrapper) || c.written.holds(product)
}

// adopted reports whether the product of that name was the wrapper's before, according to the wrapper's status. So
// nobody sets a product free by removing its label and owner and then deleting the wrapper. While the policy may not
// be read, products are written without one, and PolicyApplied is false. A forged status does no harm: its author only
// loses a product that no policy reaches.
func (c *Controller) adopted(wrapper client.Object) bool {
	said, found := condition.Get(*c.config.Kind.State(wrapper).Conditions,
		hypershiftv1beta1.ConditionTypePolicyApplied)
	return found && (said.Status == metav1.ConditionTrue || said.Reason == hypershiftv1beta1.ReasonPolicyUnreadable)
}

// managed reports whether a product is the operator's own, by its label or its owner.
func managed(product client.Object, wrapperKind string) bool {
	if product.GetLabels()[merge.ManagedByLabel] == merge.ManagedByValue {
		return true
	}
	return slices.ContainsFunc(product.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return owner.Kind == wrapperKind && groupOf(owner.APIVersion) == hypershiftv1beta1.Group
	})
}
