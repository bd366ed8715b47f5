package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// leading makes joiner take its lease although it is alone: joinerctl status finds the leader by it.
const leading = "--disable-leader-election=false"

// settings are the options of the command line.
type settings struct {
	rig.Options
	operator  string // path of the joiner-operator binary
	joinerctl string // path of the joinerctl binary
	chapter   string // the only chapter to tell; "" means all
	pause     bool   // wait for Enter before each step
}

// begin starts the cluster with Joiner and, at the same time, the management cluster. After an error nothing is left
// behind.
func begin(ctx context.Context, with settings) (*story, error) {
	if _, err := exec.LookPath(with.operator); err != nil { // otherwise it would fail in the middle of the story
		return nil, fmt.Errorf("--operator: %w: run make bin/joiner-operator", err)
	}
	if _, err := exec.LookPath(with.joinerctl); err != nil {
		return nil, fmt.Errorf("--joinerctl: %w: run make bin/joinerctl", err)
	}
	s := &story{began: time.Now(), options: with.Options, binary: with.operator, joinerctl: with.joinerctl}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed [2]error
	var both sync.WaitGroup
	both.Go(func() {
		options := with.Options
		options.Args = append(options.Args, leading)
		options.Log, options.NodeSchedulingPolicy = os.Stdout, manifest("protection")
		if s.Rig, failed[0] = rig.Start(ctx, options); failed[0] != nil {
			cancel()
		}
	})
	both.Go(func() {
		options := with.Options
		options.Log = prefixed{os.Stdout, "management: "}
		if s.management, failed[1] = rig.StartManagement(ctx, options); failed[1] == nil {
			s.kubeconfig, failed[1] = s.management.InstallHostedControlPlane(ctx, namespace)
		}
		if failed[1] != nil {
			cancel()
		}
	})
	both.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

// end stops everything that begin and the story have started.
func (s *story) end() error {
	var failed [3]error
	if s.operator != nil {
		failed[0] = s.operator.Stop()
	}
	var both sync.WaitGroup
	for i, r := range []*rig.Rig{s.Rig, s.management} {
		if r != nil {
			both.Go(func() { failed[1+i] = r.Stop() })
		}
	}
	both.Wait()
	return errors.Join(failed[:]...)
}

// prefixed marks the lines of one cluster. Each write must be whole lines.
type prefixed struct {
	to     io.Writer
	prefix string
}

func (p prefixed) Write(line []byte) (int, error) {
	_, err := fmt.Fprintf(p.to, "%s%s", p.prefix, line)
	return len(line), err
}
