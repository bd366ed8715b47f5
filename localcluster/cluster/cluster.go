package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// maxPortAttempts bounds how often a component is started with new ports
// because another process took them first. Twice in a row is already rare.
const maxPortAttempts = 5

// Cluster is a running control plane. Its methods may be called from several
// goroutines.
type Cluster struct {
	setup   *setup
	spawner *spawner
	failed  chan error
	stop    func() error // stops once

	mu      sync.Mutex // guards running, held and the lines of the log
	running map[Component]*process
	held    map[Component][]*os.File // the ports of stopped components
}

// Start starts a control plane and returns when it can be used: every component is ready and, with a controller
// manager, pods can be created in the namespace default. ctx bounds the start only. After an error nothing is left
// behind, except the directory with Options.Keep or if it was named.
//
// The caller must call Stop.
func Start(ctx context.Context, options Options) (*Cluster, error) {
	options, err := options.complete()
	if err != nil {
		return nil, fmt.Errorf("starting a cluster: %w", err)
	}
	named := options.Dir != ""
	setup, err := newSetup(options)
	if err != nil {
		return nil, fmt.Errorf("starting a cluster: %w", err)
	}
	c := &Cluster{
		setup:   setup,
		spawner: newSpawner(),
		failed:  make(chan error, len(startOrder())),
		running: map[Component]*process{},
		held:    map[Component][]*os.File{},
	}
	c.stop = sync.OnceValue(c.stopAll)
	if err := c.startAll(ctx); err != nil {
		// What a named directory holds may be worth more than a clean disk.
		c.setup.options.Keep = c.setup.options.Keep || named
		return nil, errors.Join(fmt.Errorf("starting a cluster in %s: %w", setup.options.Dir, err), c.Stop())
	}
	return c, nil
}

// Dir returns the absolute path of the directory that holds the state.
func (c *Cluster) Dir() string { return c.setup.options.Dir }

// Stop ends all components, those that use others first, and removes the directory unless Options.Keep is set. With
// Keep, components are asked to end, which takes at most about half a minute. Without it they are killed. A second
// call does nothing and returns the same.
func (c *Cluster) Stop() error { return c.stop() }

// Failed receives an error, with the end of the log, for each component that
// ends without having been asked to.
func (c *Cluster) Failed() <-chan error { return c.failed }

// startAll starts etcd, then the API server, then what needs it at once.
func (c *Cluster) startAll(ctx context.Context) error {
	began := time.Now()
	for _, component := range []Component{Etcd, APIServer} {
		if err := c.startRenewingPorts(ctx, component); err != nil {
			return err
		}
	}
	if err := c.setup.announce(); err != nil {
		return err
	}
	if err := c.startClients(ctx); err != nil {
		return err
	}
	if err := c.setup.savePorts(); err != nil {
		return err
	}
	if err := c.waitUsable(ctx); err != nil {
		return err
	}
	c.logf("cluster ready after %s; kubeconfig: %s", seconds(began), c.AdminKubeconfig())
	return nil
}

// startRenewingPorts starts a component, with new ports if its own are taken.
func (c *Cluster) startRenewingPorts(ctx context.Context, component Component) error {
	for attempt := 1; ; attempt++ {
		err := c.startOnce(ctx, component)
		if !errors.Is(err, errPortTaken) || attempt == maxPortAttempts {
			return err
		}
		c.logf("%s: a port was taken by another process; trying new ones", component)
		if err := c.setup.renewPorts(component.ports()); err != nil {
			return err
		}
	}
}

// startOnce starts a component and waits until it is ready. If it does not
// become ready it is stopped again.
func (c *Cluster) startOnce(ctx context.Context, component Component) error {
	began := time.Now()
	p, err := c.launch(component)
	if err != nil {
		return err
	}
	if err := c.waitReady(ctx, p); err != nil {
		c.forget(component)
		return errors.Join(err, p.stop(0))
	}
	c.logf("%s ready after %s", component, seconds(began))
	go c.report(p)
	return nil
}

// launch starts the component's process and enters it as running.
func (c *Cluster) launch(component Component) (*process, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.running[component]; ok {
		return nil, fmt.Errorf("%s is running already", component)
	}
	p, err := startProcess(c.spawner, c.setup.options.Binary, component, c.setup.args(component),
		c.setup.logPath(component))
	if err != nil {
		return nil, err
	}
	c.running[component] = p
	return p, nil
}

// report waits for the end of a process, and reports it as a failure if nobody asked for it.
func (c *Cluster) report(p *process) {
	<-p.exited
	if p.stopping.Load() {
		return
	}
	err := p.exitError()
	c.logf("%v", err)
	select {
	case c.failed <- err:
	default: // Nobody listens, and the buffer holds one error per component.
	}
}

// StartComponent starts a component that StopComponent or KillComponent ended,
// or that ended by itself, with the same ports, and waits until it is ready.
func (c *Cluster) StartComponent(ctx context.Context, component Component) error {
	if !slices.Contains(startOrder(), component) {
		return unknownComponent(component)
	}
	if p := c.process(component); p != nil && p.hasExited() {
		c.forget(component)
	}
	if err := c.startOnce(ctx, component); err != nil {
		return err
	}
	return c.releasePorts(component)
}

// StopComponent ends one component as a shutdown would, and waits for its end.
// The others keep running, and nobody is given its ports meanwhile.
func (c *Cluster) StopComponent(component Component) error {
	return c.endComponent(component, component.grace())
}

// KillComponent ends one component as a crash would, and waits for its end.
func (c *Cluster) KillComponent(component Component) error {
	return c.endComponent(component, 0)
}

func (c *Cluster) endComponent(component Component, grace time.Duration) error {
	if !slices.Contains(startOrder(), component) {
		return unknownComponent(component)
	}
	p := c.process(component)
	if p == nil {
		return fmt.Errorf("%s is not running", component)
	}
	if err := c.holdPorts(component); err != nil {
		return err
	}
	if err := p.stop(grace); err != nil {
		return errors.Join(err, c.releasePorts(component))
	}
	c.forget(component)
	return nil
}

func unknownComponent(component Component) error {
	return fmt.Errorf("component is %q: allowed are %v", component, startOrder())
}

// PIDs returns the process number of each component that is running.
func (c *Cluster) PIDs() map[Component]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	pids := map[Component]int{}
	for component, p := range c.running {
		if !p.hasExited() {
			pids[component] = p.pid
		}
	}
	return pids
}

// Kubectl returns the command `kubectl args...`, not yet started, as the admin
// of this cluster. It reads no configuration of the user's.
func (c *Cluster) Kubectl(ctx context.Context, args ...string) *exec.Cmd {
	return c.Program(ctx, c.setup.options.Binary, append([]string{"kubectl"}, args...)...)
}

// Program returns the command `path args...`, not yet started, for a program
// that reads a kubeconfig, as the admin of this cluster.
func (c *Cluster) Program(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(cmd.Environ(),
		"KUBECONFIG="+c.AdminKubeconfig(),
		"KUBECACHEDIR="+filepath.Join(c.Dir(), kubectlCacheDir),
		"KUBERC=off",
	)
	return cmd
}

// stopAll does the work of Stop.
func (c *Cluster) stopAll() error {
	began := time.Now()
	var failed []error
	for _, component := range slices.Backward(startOrder()) {
		if c.process(component) != nil {
			failed = append(failed, c.endComponent(component, c.lastGrace(component)))
		}
		failed = append(failed, c.releasePorts(component))
	}
	c.spawner.close()
	if !c.setup.options.Keep {
		failed = append(failed, c.setup.remove())
	}
	failed = append(failed, c.setup.unlock())
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("stopping the cluster: %w", err)
	}
	c.logf("cluster stopped after %s", seconds(began))
	return nil
}

// lastGrace is how long a component may take to end when its cluster stops. If the directory is not kept, it is 0:
// clean-up would be lost with the directory, and an API server with open watches uses all the time that it gets.
func (c *Cluster) lastGrace(component Component) time.Duration {
	if c.setup.options.Keep {
		return component.grace()
	}
	return 0
}

func (c *Cluster) process(component Component) *process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running[component]
}

func (c *Cluster) forget(component Component) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, component)
}

// logf writes one line to Options.Log. Write errors are ignored.
func (c *Cluster) logf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, _ = io.WriteString(c.setup.options.Log, fmt.Sprintf(format, args...)+"\n")
}

// seconds returns the time since began, for a line of the log.
func seconds(began time.Time) string {
	return fmt.Sprintf("%.1f s", time.Since(began).Seconds())
}
