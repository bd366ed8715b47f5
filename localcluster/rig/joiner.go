package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

const (
	readyTimeout = time.Minute      // for joiner to be ready; it takes a second or two
	stopTimeout  = 30 * time.Second // for joiner to end when asked to
	logTail      = 20               // lines of the log in an error
	attempts     = 3                // a port that was free may be taken by the time joiner binds it
)

// process is a running joiner.
type process struct {
	command *exec.Cmd
	done    chan struct{} // closed when it has ended
	err     error         // of its end; read after done
	metrics int           // port
	health  int           // port
}

// StartJoiner starts the joiner binary with the rights of its role, and waits until it is ready.
func (r *Rig) StartJoiner(ctx context.Context) error {
	if r.joiner != nil {
		return errors.New("joiner runs already")
	}
	var err error
	for range attempts {
		if err = r.startOnce(ctx); err == nil || !strings.Contains(err.Error(), "address already in use") {
			return err
		}
	}
	return err
}

func (r *Rig) startOnce(ctx context.Context) error {
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(r.JoinerLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening joiner's log: %w", err)
	}
	defer log.Close() //nolint:errcheck // the child has its own handle
	p := &process{done: make(chan struct{}), metrics: ports[0], health: ports[1]}
	args := append([]string{
		"--kubeconfig", r.user, "--disable-leader-election",
		"--metrics-port", fmt.Sprint(p.metrics), "--health-probe-port", fmt.Sprint(p.health),
	}, r.options.Args...)
	p.command = exec.Command(r.options.Joiner, args...)
	p.command.Stdout, p.command.Stderr = log, log
	if err := r.Cluster.StartChild(p.command); err != nil {
		return fmt.Errorf("starting joiner: %w", err)
	}
	go func() {
		p.err = p.command.Wait()
		close(p.done)
	}()
	r.joiner = p
	if err := r.waitReady(ctx, p); err != nil {
		_ = r.KillJoiner()
		return fmt.Errorf("joiner does not become ready: %w\n%s", err, r.logEnd())
	}
	return nil
}

func (r *Rig) waitReady(ctx context.Context, p *process) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", p.health), nil)
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
		case <-p.done:
			return fmt.Errorf("it has ended: %v", p.err)
		case <-time.After(poll):
		}
	}
}

// KillJoiner ends joiner as a crash would: kill -9.
func (r *Rig) KillJoiner() error {
	if r.joiner == nil {
		return nil
	}
	p := r.joiner
	r.joiner = nil
	if err := p.command.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("killing joiner: %w", err)
	}
	<-p.done
	return nil
}

// StopJoiner asks joiner to end, and waits for it.
func (r *Rig) StopJoiner() error {
	if r.joiner == nil {
		return nil
	}
	p := r.joiner
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping joiner: %w", err)
	}
	select {
	case <-p.done:
		r.joiner = nil
		if p.err != nil {
			return fmt.Errorf("joiner ended with %w\n%s", p.err, r.logEnd())
		}
		return nil
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("joiner did not end within %s of being asked to\n%s", stopTimeout, r.logEnd()), r.KillJoiner())
	}
}

// MetricsURL returns where the running joiner shows its metrics.
func (r *Rig) MetricsURL() string {
	return fmt.Sprintf("http://127.0.0.1:%d/metrics", r.joiner.metrics)
}

// JoinerPID returns the process number of the running joiner.
func (r *Rig) JoinerPID() int { return r.joiner.command.Process.Pid }

// JoinerEnded is closed when the running joiner has ended, asked or not.
func (r *Rig) JoinerEnded() <-chan struct{} { return r.joiner.done }

func (r *Rig) logEnd() string {
	content, err := os.ReadFile(r.JoinerLog())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return strings.Join(lines[max(0, len(lines)-logTail):], "\n")
}

// freePorts returns ports that were free a moment ago.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("looking for a free port: %w", err)
		}
		defer listener.Close() //nolint:errcheck // held until all are chosen
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
