package operator

import (
	"context"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// seenEvery is how often to ask whether the operator may still read.
	seenEvery = time.Minute
	// seenAgainAfter is the same while something is refused.
	seenAgainAfter = 10 * time.Second
)

// SightConfig is the configuration of a [SightController]. All fields are required.
type SightConfig struct {
	Live  client.Reader                // asks the guest's API server
	Kinds map[string]client.ObjectList // an empty list of each kind that the operator watches in the guest
	Board *Board
	Now   func() time.Time
}

// SightController finds out whether the operator may still read the guest. An informer does not tell: when its lists
// are refused it keeps what it had, and everything looks as it did for ever. It has one worker.
type SightController struct {
	config  SightConfig
	refused map[string]refusals
}

// NewSightController returns the controller.
func NewSightController(config SightConfig) *SightController {
	return &SightController{config: config, refused: map[string]refusals{}}
}

// Reconcile asks for one object of each kind. What is refused for [ConfirmAfter] is told by [Board.setBlind].
func (c *SightController) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if c.config.Board.Released() {
		return reconcile.Result{}, nil
	}
	var blind []string
	for _, kind := range slices.Sorted(maps.Keys(c.config.Kinds)) {
		list := c.config.Kinds[kind].DeepCopyObject().(client.ObjectList)
		switch err := c.config.Live.List(ctx, list, client.Limit(1)); {
		case err == nil:
			delete(c.refused, kind)
		case apierrors.IsForbidden(err):
			c.refused[kind] = c.refused[kind].next(c.config.Now())
		default: // it says nothing about the right
			if before, known := c.refused[kind]; known {
				before.broken = true
				c.refused[kind] = before
			}
		}
		if c.refused[kind].lasted >= ConfirmAfter {
			blind = append(blind, kind)
		}
	}
	c.config.Board.setBlind(blind)
	if len(c.refused) > 0 {
		return reconcile.Result{RequeueAfter: seenAgainAfter}, nil
	}
	return reconcile.Result{RequeueAfter: seenEvery}, nil
}
