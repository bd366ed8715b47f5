package template

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/refusal"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/tag"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/timer"
)

// Bounds of a collection.
const (
	pageSize = 200 // EC2's most
	maxPages = 100 // for 5,000 templates, as pages may be shorter
	// deletePause is the pause between two deletions of any collections.
	deletePause = time.Second
	// maxRefused is how many deletions may fail before a collection gives up: then the templates are not the reason.
	maxRefused = 5
)

// Collect deletes the launch templates of the cluster that no launch has used for unusedFor, and returns their names
// (E-56). It deletes the oldest first, at most one a second. It finds them by listing, including those of other
// processes, leaders and classes. Creation counts as use. So does the start of this process, since it does not know of
// earlier launches. The names are right even with an error. A failure for one template does not stop the others.
// Throttling and trouble of AWS end the collection, and the next one continues.
func (k *Keeper) Collect(ctx context.Context, now time.Time, unusedFor time.Duration) ([]string, error) {
	return k.collect(ctx, now, unusedFor, func() {})
}

// CollectOf deletes the launch templates of a class that is gone, like Collect, no matter when a launch last used them
// (E-04).
func (k *Keeper) CollectOf(ctx context.Context, class string, now time.Time) ([]string, error) {
	listed, err := k.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing launch templates: %w", err)
	}
	listed = slices.DeleteFunc(listed, func(t ec2types.LaunchTemplate) bool {
		return !slices.ContainsFunc(t.Tags, func(each ec2types.Tag) bool {
			return aws.ToString(each.Key) == tag.Class && aws.ToString(each.Value) == class
		})
	})
	return k.deleteUnused(ctx, listed, now, -1<<62, func() {})
}

// collect is Collect, and calls deleted after each deletion.
func (k *Keeper) collect(ctx context.Context, now time.Time, unusedFor time.Duration,
	deleted func()) ([]string, error) {
	asked := k.clock.Now()
	listed, err := k.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing launch templates: %w", err)
	}
	k.forgetOthers(listed, asked, unusedFor)
	return k.deleteUnused(ctx, listed, now, unusedFor, deleted)
}

// deleteUnused deletes the listed templates that no launch has used for unusedFor.
func (k *Keeper) deleteUnused(ctx context.Context, listed []ec2types.LaunchTemplate, now time.Time,
	unusedFor time.Duration, deleted func()) (
	[]string, error,
) {
	var names []string
	var refused []error
	for _, t := range listed {
		if !k.unused(t, now, unusedFor) {
			continue
		}
		if err := k.pause(ctx); err != nil {
			return names, errors.Join(append(refused, err)...)
		}
		gone, err := k.delete(ctx, t, now, unusedFor)
		if gone {
			names = append(names, aws.ToString(t.LaunchTemplateName))
			deleted()
		}
		if err == nil {
			continue
		}
		refused = append(refused, fmt.Errorf("deleting launch template %s: %w", aws.ToString(t.LaunchTemplateName),
			err))
		class := refusal.Of(err).Class
		if class == refusal.Throttle || class == refusal.Server || len(refused) == maxRefused {
			return names, errors.Join(refused...)
		}
	}
	return names, errors.Join(refused...)
}

// list returns the cluster's templates with our prefix, oldest first. It checks the tag again: a server that is not
// AWS may ignore the filter, and we must not delete another cluster's templates (E-64).
func (k *Keeper) list(ctx context.Context) ([]ec2types.LaunchTemplate, error) {
	in := &ec2.DescribeLaunchTemplatesInput{MaxResults: aws.Int32(pageSize), Filters: []ec2types.Filter{
		{Name: aws.String("tag:" + tag.ClusterName), Values: []string{k.cluster}}}}
	var list []ec2types.LaunchTemplate
	for range maxPages {
		out, err := k.api.DescribeLaunchTemplates(ctx, in)
		if err != nil {
			return nil, err
		}
		list = append(list, out.LaunchTemplates...)
		if aws.ToString(out.NextToken) == "" {
			break
		}
		in.NextToken = out.NextToken
	}
	list = slices.DeleteFunc(list, func(t ec2types.LaunchTemplate) bool {
		ours := slices.ContainsFunc(t.Tags, func(have ec2types.Tag) bool {
			return aws.ToString(have.Key) == tag.ClusterName && aws.ToString(have.Value) == k.cluster
		})
		return !ours || !strings.HasPrefix(aws.ToString(t.LaunchTemplateName), Prefix) ||
			aws.ToString(t.LaunchTemplateId) == ""
	})
	slices.SortFunc(list, func(a, b ec2types.LaunchTemplate) int {
		return cmp.Or(aws.ToTime(a.CreateTime).Compare(aws.ToTime(b.CreateTime)),
			strings.Compare(aws.ToString(a.LaunchTemplateName), aws.ToString(b.LaunchTemplateName)))
	})
	return list, nil
}

// forgetOthers forgets templates that are not in the listing and that nobody has used for unusedFor, so that memory
// does not grow for ever.
func (k *Keeper) forgetOthers(listed []ec2types.LaunchTemplate, asked time.Time, unusedFor time.Duration) {
	there := map[string]bool{}
	for _, t := range listed {
		there[aws.ToString(t.LaunchTemplateName)] = true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, t := range k.known {
		if !there[name] && t.busy == nil && asked.Sub(t.used) >= unusedFor {
			delete(k.known, name)
		}
	}
}

// unused reports whether no launch has used a template for unusedFor.
func (k *Keeper) unused(t ec2types.LaunchTemplate, now time.Time, unusedFor time.Duration) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mayGo(t, now, unusedFor)
}

// mayGo is unused for callers that hold the lock.
func (k *Keeper) mayGo(t ec2types.LaunchTemplate, now time.Time, unusedFor time.Duration) bool {
	last := k.started
	if made := aws.ToTime(t.CreateTime); made.After(last) {
		last = made
	}
	if known := k.known[aws.ToString(t.LaunchTemplateName)]; known != nil {
		if known.busy != nil || known.deleted == aws.ToString(t.LaunchTemplateId) {
			return false
		}
		if known.used.After(last) {
			last = known.used
		}
	}
	return now.Sub(last) >= unusedFor
}

// pause waits until the next template may be deleted.
func (k *Keeper) pause(ctx context.Context) error {
	k.mu.Lock()
	now := k.clock.Now()
	at := now
	if k.nextDelete.After(at) {
		at = k.nextDelete
	}
	k.nextDelete = at.Add(deletePause)
	k.mu.Unlock()
	if !at.After(now) {
		return ctx.Err()
	}
	due := make(chan struct{})
	stop := k.clock.AfterFunc(at.Sub(now), func() { close(due) })
	defer stop()
	return timer.Await(ctx, k.clock, due)
}

// delete deletes a template unless a launch has used it since it was listed. gone is true if it was deleted, or did
// not exist any more.
func (k *Keeper) delete(ctx context.Context, t ec2types.LaunchTemplate, now time.Time, unusedFor time.Duration) (
	gone bool, err error) {
	name := aws.ToString(t.LaunchTemplateName)
	k.mu.Lock()
	if !k.mayGo(t, now, unusedFor) {
		k.mu.Unlock()
		return false, nil
	}
	if k.known[name] == nil {
		k.known[name] = &known{}
	}
	b := &busy{done: make(chan struct{})}
	k.known[name].busy = b
	k.mu.Unlock()
	// By id: somebody may create another template of the same name meanwhile.
	_, err = k.api.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: t.LaunchTemplateId})
	if refusal.Of(err).Code == "InvalidLaunchTemplateId.NotFound" {
		err = nil
	}
	if err == nil {
		k.mu.Lock()
		k.known[name].deleted = aws.ToString(t.LaunchTemplateId) // another collection may have listed it too
		k.mu.Unlock()
	}
	// After an error it may or may not exist. The next launch that needs it creates it.
	k.settle(name, b, false)
	return err == nil, err
}
