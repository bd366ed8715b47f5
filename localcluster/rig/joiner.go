package rig

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// JoinerProgram returns joiner with the rights of its role. args are further flags.
func JoinerProgram(path string, args ...string) Program {
	return Program{Name: User, Path: path, Command: func(at Place) ([]string, []string) {
		return append([]string{
			"--kubeconfig", at.Kubeconfig, "--disable-leader-election",
			"--metrics-port", fmt.Sprint(at.MetricsPort), "--health-probe-port", fmt.Sprint(at.HealthPort),
		}, args...), nil
	}}
}

// StartJoiner starts the joiner binary with the rights of its role, and waits until it is ready. more are additional
// flags for this start.
func (r *Rig) StartJoiner(ctx context.Context, more ...string) error {
	if r.joiner != nil {
		return errors.New("joiner runs already")
	}
	var err error
	program := JoinerProgram(r.options.Joiner, slices.Concat(r.options.Args, more)...)
	program.Env = r.options.Env
	r.joiner, err = r.Run(ctx, program)
	return err
}

// KillJoiner ends joiner as a crash would: kill -9.
func (r *Rig) KillJoiner() error { return r.end((*Controller).Kill) }

// StopJoiner asks joiner to end, and waits for it.
func (r *Rig) StopJoiner() error { return r.end((*Controller).Stop) }

func (r *Rig) end(by func(*Controller) error) error {
	if r.joiner == nil {
		return nil
	}
	running := r.joiner
	r.joiner = nil
	return by(running)
}

// MetricsURL returns the URL of the running joiner's metrics.
func (r *Rig) MetricsURL() string {
	return fmt.Sprintf("http://127.0.0.1:%d/metrics", r.joiner.MetricsPort)
}

// JoinerPID returns the process number of the running joiner.
func (r *Rig) JoinerPID() int { return r.joiner.PID() }

// JoinerEnded returns a channel that is closed when the running joiner has ended, asked or not.
func (r *Rig) JoinerEnded() <-chan struct{} { return r.joiner.Ended() }

// JoinerLog returns the path of Joiner's log. It is beside the logs of the control plane, and is removed with the
// cluster.
func (r *Rig) JoinerLog() string { return r.logOf(User) }
