package kwok

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/joiner-autoscaler/joiner/internal/provider"
)

// Boot creates the nodes of all machines that are due, and returns when the next one is due: zero when none is
// waiting. Call it at start, at the returned time, and after a launch; an extra call does nothing. It is idempotent: a
// node is created before its record is deleted, and names are unique. So after a crash at any point the next call
// continues. A failure of one machine does not hold up the others; the error joins all.
//
// A machine that is terminated while Boot creates its node may remain without a claim. It is in List, and the
// collector for all providers ends such machines (P-32).
func (p *Provider) Boot(ctx context.Context, now time.Time) (next time.Time, err error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, err
	}
	records, err := p.cluster.BootRecords(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("listing boot records: %w", err)
	}
	records = slices.DeleteFunc(records, func(r BootRecord) bool { return r.Never })
	slices.SortFunc(records, func(a, b BootRecord) int {
		return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Node.Name, b.Node.Name))
	})
	var failures []error
	for _, record := range records {
		if record.Due.After(now) {
			return record.Due, errors.Join(failures...)
		}
		if err := p.join(ctx, record.Node.Name); err != nil {
			failures = append(failures, fmt.Errorf("booting %s: %w", record.Node.Name, err))
		}
	}
	return time.Time{}, errors.Join(failures...)
}

// join creates the node of a booting machine. It reads the record again because the machine may have been terminated
// since the listing.
func (p *Provider) join(ctx context.Context, name string) error {
	record, err := p.cluster.BootRecord(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("getting boot record: %w", err)
	}
	err = p.cluster.CreateNode(ctx, record.Node)
	if apierrors.IsAlreadyExists(err) {
		err = p.sameMachine(ctx, record)
	}
	if err != nil {
		return fmt.Errorf("creating node: %w", err)
	}
	if err := p.cluster.DeleteBootRecord(ctx, name); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting boot record: %w", err)
	}
	return nil
}

// sameMachine returns nil when the node with the record's name belongs to the record, created by an earlier call.
func (p *Provider) sameMachine(ctx context.Context, record BootRecord) error {
	node, err := p.cluster.Node(ctx, record.Node.Name)
	if err != nil {
		return err
	}
	owner, own := node.Annotations[ClaimUIDAnnotationKey], record.Node.Annotations[ClaimUIDAnnotationKey]
	if owner != own {
		return &provider.LaunchError{ConditionReason: ReasonNodeNameTaken, Message: fmt.Sprintf(
			"node %s exists and belongs to another claim (UID %q, this one is %q); the machine joins once that node is gone",
			node.Name, owner, own)}
	}
	return nil
}
