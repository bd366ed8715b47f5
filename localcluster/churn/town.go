package churn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/joiner-autoscaler/joiner/localcluster/machinetime"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// Town is a control plane with Joiner on which seeds run one after another. Each seed has its own namespaces,
// NodePools and node class, and has to leave nothing behind.
type Town struct {
	*rig.Rig
	clock  *machinetime.Clock
	view   *view
	could  *feasibility
	down   atomic.Bool // users have killed joiner, and it is not ready again yet
	log    *logReader
	cancel context.CancelFunc
}

// FreshSeeds bounds random seeds, so that the names of objects stay short.
const FreshSeeds = 1_000_000

// Start starts a town. The caller has to call Stop.
func Start(ctx context.Context, options rig.Options) (*Town, error) {
	r, err := rig.Start(ctx, options)
	if err != nil {
		return nil, err
	}
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t := &Town{Rig: r, cancel: cancel}
	if err := t.watch(watching); err != nil {
		return nil, errors.Join(err, t.Stop())
	}
	return t, nil
}

func (t *Town) watch(ctx context.Context) (err error) {
	t.clock = machinetime.New(ctx)
	config, err := t.Cluster.RESTConfig("admin")
	if err != nil {
		return err
	}
	if t.view, err = newView(ctx, config, t.Client.Scheme(), t.clock); err != nil {
		return err
	}
	t.log = &logReader{path: t.JoinerLog()}
	t.could, err = newFeasibility(ctx, t.view)
	return err
}

// Stop stops everything that was started.
func (t *Town) Stop() error {
	t.cancel()
	return t.Rig.Stop()
}

// kill kills joiner as a crash would, and starts it again.
func (t *Town) kill(ctx context.Context) error {
	t.down.Store(true)
	defer t.down.Store(false)
	return errors.Join(t.KillJoiner(), t.StartJoiner(ctx))
}

// alive returns an error if joiner or a component of the control plane has ended unexpectedly.
func (t *Town) alive() error {
	if t.down.Load() {
		return nil
	}
	select {
	case err := <-t.Cluster.Failed():
		return err
	case <-t.JoinerEnded():
		return fmt.Errorf("joiner has ended: %s", t.log.end())
	default:
		return nil
	}
}

// logReader reads joiner's log as it grows.
type logReader struct {
	path string
	read int64
}

func (l *logReader) end() string {
	content, err := os.ReadFile(l.path)
	if err != nil {
		return err.Error()
	}
	const tail = 3000
	return string(content[max(0, len(content)-tail):])
}
