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

// definitionKeeper keeps the versions in the CRDs as this replica is set to, while it leads (V-20). Only the leader does:
// replicas with different settings, as in a rolling change, would undo each other's changes for ever. What the last leader is
// set to holds. Against another program that writes the same fields it gives way more and more, and never quite.
type definitionKeeper struct {
	// write makes the CRDs what they are to be, and returns the names of those that it changed.
	write func(context.Context) (changed []string, err error)
	// optional ends the keeper when it lacks the rights.
	optional bool
	log      logr.Logger

	pause         time.Duration // after the last change: twice the one before, unless that has lasted
	changed, next time.Time     // the last change, and when there may be another
	said          string        // the last failure
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

// step looks once, and says whether there is nothing left to do for good.
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
