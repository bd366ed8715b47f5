package rig

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

const (
	readyTimeout = time.Minute      // until a controller is ready; it takes a second or two
	stopTimeout  = 30 * time.Second // until a controller has ended after being asked to
	logTail      = 20               // lines of the log in an error
	attempts     = 3                // an unknown program may take a port before the controller does
)

// Program is a controller that can run in a rig. It must answer /readyz at its health port.
type Program struct {
	Name   string   // of its log and its kubeconfig
	User   string   // its user at the API server; empty: Name
	Groups []string // of its user; without any it may do what RBAC grants to its name
	Path   string   // of the binary
	Env    []string // variables (NAME=value) beside those of this process
	// Command returns the arguments, and further variables that depend on the place.
	Command func(Place) (args, env []string)
}

// Place is where a controller runs.
type Place struct {
	Kubeconfig              string // path
	MetricsPort, HealthPort int
}

// Controller is a running controller.
type Controller struct {
	Place
	name, log string
	command   *exec.Cmd
	done      chan struct{} // closed when it has ended
	err       error         // why it ended; read after done
}

// Run starts a controller and waits until it is ready. The caller has to end it with Stop or Kill; otherwise it ends
// with the cluster.
func (r *Rig) Run(ctx context.Context, program Program) (*Controller, error) {
	kubeconfig, err := r.Cluster.KubeconfigFor(cluster.Identity{Name: program.Name, User: program.User,
		Groups: program.Groups})
	if err != nil {
		return nil, err
	}
	for range attempts {
		var c *Controller
		if c, err = r.runOnce(ctx, program, kubeconfig); err == nil ||
			!strings.Contains(err.Error(), "address already in use") {
			return c, err
		}
	}
	return nil, err
}

func (r *Rig) runOnce(ctx context.Context, program Program, kubeconfig string) (*Controller, error) {
	reserved, err := cluster.Reserve(2)
	if err != nil {
		return nil, err
	}
	c, err := r.runAt(ctx, program, kubeconfig, reserved)
	if err != nil {
		return nil, errors.Join(err, reserved.Release())
	}
	return c, nil
}

func (r *Rig) runAt(ctx context.Context, program Program, kubeconfig string,
	reserved *cluster.Reservation) (*Controller, error) {
	ports := reserved.Ports
	c := &Controller{
		Place: Place{Kubeconfig: kubeconfig, MetricsPort: ports[0], HealthPort: ports[1]},
		name:  program.Name, log: r.logOf(program.Name), done: make(chan struct{}),
	}
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", c.name, err)
	}
	defer log.Close() //nolint:errcheck // the child has its own handle
	args, env := program.Command(c.Place)
	c.command = exec.Command(program.Path, args...)
	c.command.Env = slices.Concat(os.Environ(), program.Env, env)
	c.command.Stdout, c.command.Stderr = log, log
	if err := r.Cluster.StartChild(c.command); err != nil {
		return nil, fmt.Errorf("starting %s: %w", c.name, err)
	}
	go func() {
		c.err = errors.Join(c.command.Wait(), reserved.Release())
		close(c.done)
	}()
	if err := c.waitReady(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s does not become ready: %w\n%s", c.name, err, c.logEnd()), c.Kill())
	}
	return c, nil
}

func (c *Controller) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet,
			fmt.Sprintf("http://127.0.0.1:%d/readyz", c.HealthPort), nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-c.done:
			return fmt.Errorf("it has ended: %v", c.err)
		case <-time.After(poll):
		}
	}
}

// PID returns the controller's process ID.
func (c *Controller) PID() int { return c.command.Process.Pid }

// Ended returns a channel that is closed when the controller has ended, asked or not.
func (c *Controller) Ended() <-chan struct{} { return c.done }

// Log returns the path of the controller's log, which is removed with the cluster.
func (c *Controller) Log() string { return c.log }

// Kill ends the controller as a crash would: kill -9.
func (c *Controller) Kill() error {
	if err := c.command.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing %s: %w", c.name, err)
	}
	<-c.done
	return nil
}

// Stop asks the controller to end, and waits for that. A controller that does not end in time is killed. That is an
// error, and so is an unclean end.
func (c *Controller) Stop() error {
	if err := c.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", c.name, err)
	}
	select {
	case <-c.done:
		if c.err != nil {
			return fmt.Errorf("%s ended with %w\n%s", c.name, c.err, c.logEnd())
		}
		return nil
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("%s did not end within %s of being asked to\n%s", c.name, stopTimeout,
			c.logEnd()), c.Kill())
	}
}

func (c *Controller) logEnd() string {
	content, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-logTail):], "\n")
}

// logOf returns the path of a controller's log, beside the logs of the control plane.
func (r *Rig) logOf(name string) string { return filepath.Join(r.Cluster.Dir(), "logs", name+".log") }
