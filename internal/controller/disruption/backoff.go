package disruption

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// This file records on a NodePool that it is left alone for a while after its command was taken back (D-06). Otherwise
// a new process would try at once. The annotation stays until a command succeeds, so that the next pause is longer.

// recall reads the record of an earlier process. An unreadable record is ignored: that costs one try.
func (c *Controller) recall(pool *karpenterv1.NodePool) {
	untilText, lengthText, _ := strings.Cut(pool.Annotations[karpenterv1.DisruptionBackoffAnnotationKey], " ")
	until, err := time.Parse(time.RFC3339, untilText)
	length, lengthErr := time.ParseDuration(lengthText)
	if err == nil && lengthErr == nil {
		c.memory.recall(pool.Name, pause{length: min(lastPause, max(0, length)), until: until})
	}
}

// backOff records that a command of the pool was taken back. The pool pauses for first or longer.
func (c *Controller) backOff(ctx context.Context, r round, name string, first time.Duration) error {
	p, begins := c.memory.failed(name, first, r.now)
	if !begins {
		return nil
	}
	return c.note(ctx, r, name, p.until.UTC().Format(time.RFC3339)+" "+p.length.String())
}

// succeeded records that a command of the pool was carried out.
func (c *Controller) succeeded(ctx context.Context, r round, name string) error {
	c.memory.settled(name)
	return c.note(ctx, r, name, "")
}

// note writes the annotation; "" removes it.
func (c *Controller) note(ctx context.Context, r round, name, text string) error {
	pool := r.pools[name]
	if pool == nil || pool.Annotations[karpenterv1.DisruptionBackoffAnnotationKey] == text {
		return nil
	}
	own := pool.DeepCopy()
	if text == "" {
		delete(own.Annotations, karpenterv1.DisruptionBackoffAnnotationKey)
	} else {
		if own.Annotations == nil {
			own.Annotations = map[string]string{}
		}
		own.Annotations[karpenterv1.DisruptionBackoffAnnotationKey] = text
	}
	if err := c.config.Client.Patch(ctx, own, client.MergeFrom(pool)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("noting on NodePool %s that it is left alone for a while: %w", name, err)
	}
	r.pools[name] = own // for the next call in this round
	return nil
}
