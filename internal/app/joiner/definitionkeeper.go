package joiner

import (
	"context"
	"time"

	"github.com/go-logr/logr"
	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	// definitionsEvery is how often the leader looks at the CRDs.
	definitionsEvery = 10 * time.Second
	// definitionsMost is the longest pause after a change that somebody else undoes again and again.
	definitionsMost = 10 * time.Minute
)

// definitionKeeper keeps the versions in the CRDs as this replica is configured, while it leads (V-20). Only the
// leader does so: during a rolling change replicas with different settings would undo each other's changes for ever.
// The settings of the last leader hold. Against another program that writes the same fields it backs off more and
// more, but never gives up.
type definitionKeeper struct {
	// write brings the CRDs to the wanted state, and returns the names of those that it changed.
	write func(context.Context) (changed []string, err error)
	// optional ends the keeper when the rights are missing.
	optional bool
	log      logr.Logger

	pause         time.Duration // after the last change: twice the one before, unless that change lasted
	changed, next time.Time     // when the last change was, and when the next is allowed
	said          string        // the last failure that was logged
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*definitionKeeper) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (k *definitionKeeper) Start(ctx context.Context) error {
	ticks := time.NewTicker(definitionsEvery)
	defer ticks.Stop()
	for !k.step(ctx, time.Now()) {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
	return nil
}

// step looks once, and reports whether the keeper can end.
func (k *definitionKeeper) step(ctx context.Context, now time.Time) (done bool) {
	if now.Before(k.next) {
		return false
	}
	bounded, cancel := context.WithTimeout(ctx, serve.ReachWithin)
	defer cancel()
	changed, err := k.write(bounded)
	if len(changed) > 0 {
		if k.pause = min(2*k.pause, definitionsMost); k.pause == 0 || now.Sub(k.changed) > 2*k.pause {
			k.pause = definitionsEvery
		}
		k.changed, k.next = now, now.Add(k.pause)
		k.log.Info("changed CustomResourceDefinitions", "names", changed, "pause", k.pause.String())
	}
	switch {
	case err == nil:
		k.said = ""
	case k.optional && serve.All(err, apierrors.IsForbidden):
		return true
	case ctx.Err() == nil && serve.OneLine(err) != k.said:
		k.said = serve.OneLine(err)
		k.log.Error(err, "CustomResourceDefinitions cannot be kept")
	}
	return false
}
