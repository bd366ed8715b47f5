package kwok

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// noticeEvery is how often callers should ask for notices while faults may bring new ones.
const noticeEvery = 5 * time.Second

// faultsOf returns the faults of a node class with those of all classes. If they cannot be read, the class is not
// ready: a trial with other faults than intended would be worthless.
func (p *Provider) faultsOf(class *kwokv1alpha1.KWOKNodeClass) (Faults, error) {
	text := class.Annotations[FaultsAnnotationKey]
	if text == "" {
		return p.faults, nil
	}
	own, err := ParseFaults([]byte(text))
	if err == nil {
		err = own.check(p.inventory.catalog)
	}
	if err != nil {
		return Faults{}, &provider.NodeClassNotReadyError{
			Class: class.Name, Reason: fmt.Sprintf("annotation %s: %v", FaultsAnnotationKey, err),
		}
	}
	return p.faults.and(own), nil
}

// throttled returns an error when a call is refused because of its rate. Clouds count calls for an account, so the
// throttling of one node class applies to all.
func (p *Provider) throttled(ctx context.Context, call, subject string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	classes, err := p.cluster.NodeClasses(ctx)
	if err != nil {
		return fmt.Errorf("listing KWOKNodeClasses: %w", err)
	}
	rules := p.faults
	for _, class := range classes {
		// otherwise the class is not ready, and says why
		if own, err := ParseFaults([]byte(class.Annotations[FaultsAnnotationKey])); err == nil {
			rules = rules.and(own)
		}
	}
	if rules.throttled(call, subject, p.now()) {
		return fmt.Errorf("%s: %w", call, provider.ErrThrottled)
	}
	return nil
}

// Drifted returns the drift by the faults of the claim's node class: apart from these, a simulated machine always
// matches its class. It also checks that the instance type still exists. The machine counts as old as the claim.
func (p *Provider) Drifted(ctx context.Context, claim *karpenterv1.NodeClaim) (provider.Drift, error) {
	class, err := p.classOf(ctx, claim)
	var notReady *provider.NodeClassNotReadyError
	if errors.Is(err, provider.ErrNodeClassNotFound) || errors.As(err, &notReady) {
		return provider.Drift{}, nil
	}
	if err != nil {
		return provider.Drift{}, err
	}
	faults, err := p.faultsOf(class)
	if err != nil {
		return provider.Drift{}, nil // the class is not ready, and says why
	}
	if kind := claim.Labels[string(catalog.LabelInstanceType)]; kind != "" && !p.inventory.has(kind) {
		return provider.TypeNotFound(kind), nil
	}
	reason := faults.drifted(provider.Instance{
		ClaimUID: string(claim.UID), Type: claim.Labels[string(catalog.LabelInstanceType)],
		Zone:         claim.Labels[string(catalog.LabelZone)],
		CapacityType: claim.Labels[karpenterv1.CapacityTypeLabelKey], Launched: claim.CreationTimestamp.Time,
	}, p.now())
	if reason == "" {
		return provider.Drift{}, nil
	}
	return provider.Drift{Reason: reason, Message: "a fault of KWOKNodeClass " + class.Name + " says so"}, nil
}

// Notices returns the interruptions of joined machines, by faults or by hand with [InterruptedAnnotationKey]. Each
// stays until it is acknowledged or its machine is gone. Calling it also advances the simulation: it ends machines
// whose notice has run out.
func (p *Provider) Notices(ctx context.Context) (provider.Notices, error) {
	if err := ctx.Err(); err != nil {
		return provider.Notices{}, err
	}
	classes, err := p.cluster.NodeClasses(ctx)
	if err != nil {
		return provider.Notices{}, fmt.Errorf("listing KWOKNodeClasses: %w", err)
	}
	var notices provider.Notices
	rules := map[string]Faults{} // by class
	for _, class := range classes {
		faults, err := p.faultsOf(class)
		if err != nil {
			continue // it is not ready, and says why
		}
		rules[class.Name] = faults
		if len(faults.interruptions) > 0 {
			notices.Again = noticeEvery
		}
	}
	nodes, err := p.cluster.Nodes(ctx)
	if err != nil {
		return provider.Notices{}, fmt.Errorf("listing nodes: %w", err)
	}
	now := p.now()
	for _, node := range nodes {
		notice, noticed := p.noticeOf(node, rules[node.Annotations[ClassAnnotationKey]], now)
		if !noticed {
			continue
		}
		if left := notice.Gone.Sub(now); notice.Gone.IsZero() || left > 0 {
			notices.List = append(notices.List, notice)
			if left > 0 && (notices.Again == 0 || left < notices.Again) {
				notices.Again = left
			}
		} else if err := p.end(ctx, node); err != nil && !apierrors.IsNotFound(err) {
			return provider.Notices{}, fmt.Errorf("taking %s away: %w", notice.ProviderID, err)
		}
	}
	notices.List = p.handled.without(notices.List)
	slices.SortFunc(notices.List, func(a, b provider.Notice) int { return strings.Compare(a.ID, b.ID) })
	return notices, nil
}

// noticeOf returns the notice for a machine, if there is one.
func (p *Provider) noticeOf(node *corev1.Node, faults Faults, now time.Time) (provider.Notice, bool) {
	if !p.isMachine(node) {
		return provider.Notice{}, false
	}
	if value, found := node.Annotations[InterruptedAnnotationKey]; found {
		gone, _ := time.Parse(time.RFC3339, value) // any other value gives zero: unknown
		return provider.Notice{ID: node.Spec.ProviderID, Kind: provider.SpotInterrupted,
			ProviderID: node.Spec.ProviderID, Gone: gone}, true
	}
	return faults.interrupted(instanceOf(node), now)
}

// Acknowledge ends a notice. A new process gets it again, until the machine is gone.
func (p *Provider) Acknowledge(ctx context.Context, notice provider.Notice) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p.handled.add(notice.ID)
	return nil
}

// handled remembers acknowledged notices while their machines exist. The zero value is ready for use; it is safe for
// concurrent use.
type handled struct {
	mu  sync.Mutex
	ids map[string]bool
}

func (h *handled) add(id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ids == nil {
		h.ids = map[string]bool{}
	}
	h.ids[id] = true
}

// without removes acknowledged notices, and forgets those that no longer occur.
func (h *handled) without(notices []provider.Notice) []provider.Notice {
	h.mu.Lock()
	defer h.mu.Unlock()
	standing := map[string]bool{}
	for _, notice := range notices {
		standing[notice.ID] = h.ids[notice.ID]
	}
	maps.DeleteFunc(h.ids, func(id string, _ bool) bool { return !standing[id] })
	return slices.DeleteFunc(notices, func(n provider.Notice) bool { return h.ids[n.ID] })
}

// MarkUnavailable makes an offering unavailable in the catalogues of all node classes for a while.
func (p *Provider) MarkUnavailable(offering provider.Offering) {
	p.shortages.everywhere.Note(offering, p.now())
}

// shortages are the offerings without capacity: each node class has faults of its own, and so shortages of its own.
// The zero value is ready for use; it is safe for concurrent use.
type shortages struct {
	everywhere provider.Shortages

	mu      sync.Mutex
	byClass map[string]*provider.Shortages // bounded by the classes that were ever used
}

// of returns the shortages of a node class.
func (s *shortages) of(class string) *provider.Shortages {
	s.mu.Lock()
	defer s.mu.Unlock()
	own, found := s.byClass[class]
	if !found {
		if s.byClass == nil {
			s.byClass = map[string]*provider.Shortages{}
		}
		own = &provider.Shortages{}
		s.byClass[class] = own
	}
	return own
}

// without returns the catalogue of a node class with the offerings unavailable that are short at now.
func (s *shortages) without(class string, c catalog.Catalog, now time.Time) catalog.Catalog {
	return s.everywhere.Without(s.of(class).Without(c, now), now)
}
