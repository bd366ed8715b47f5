package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// These bound what an error quotes of a log.
	logTailLines   = 15
	logTailColumns = 300
	logTailBytes   = 16 << 10
	// killWait bounds the wait for a process after SIGKILL; only one that
	// hangs in the kernel takes longer than a moment.
	killWait = 10 * time.Second
)

// spawner starts processes from one thread that lives as long as the spawner.
// The kernel's parent death signal is tied to the thread that forked, not to
// the process: without this, Go might end an idle thread and with it a child.
type spawner struct {
	requests chan func()
}

func newSpawner() *spawner {
	s := &spawner{requests: make(chan func())}
	go func() {
		runtime.LockOSThread() // Never unlocked: the thread ends with this function.
		for request := range s.requests {
			request()
		}
	}()
	return s
}

// start starts the command on the spawner's thread.
func (s *spawner) start(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	s.requests <- func() { result <- cmd.Start() }
	return <-result
}

// close ends the thread, and so every child that is still alive.
func (s *spawner) close() { close(s.requests) }

// process is one running component.
type process struct {
	component Component
	pid       int
	logPath   string
	logStart  int64 // size of the log before this process wrote to it

	stopping atomic.Bool
	exited   chan struct{} // closed when the process has ended
	exitErr  error         // how it ended; read only after exited is closed
}

// startProcess starts the binary as the component, in dir, with its output
// appended to logPath.
func startProcess(s *spawner, binary string, component Component, args []string, logPath string) (*process, error) {
	log, err := os.OpenFile(logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", component, err)
	}
	defer log.Close() // The child has its own descriptor.
	logStart, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", component, err)
	}
	cmd := exec.Command(binary, append([]string{string(component)}, args...)...)
	cmd.Dir = filepath.Dir(logPath)
	cmd.Env = childEnvironment(os.Environ())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = childAttributes()
	if err := s.start(cmd); err != nil {
		return nil, fmt.Errorf("starting %s: %w", component, err)
	}
	p := &process{
		component: component, pid: cmd.Process.Pid,
		logPath: logPath, logStart: logStart, exited: make(chan struct{}),
	}
	go func() {
		p.exitErr = cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// childEnvironment leaves out variables that etcd would take for its flags.
func childEnvironment(environ []string) []string {
	kept := make([]string, 0, len(environ))
	for _, variable := range environ {
		if !strings.HasPrefix(variable, "ETCD_") {
			kept = append(kept, variable)
		}
	}
	return kept
}

// stop asks the process to end, waits for the grace period and then kills it.
// A grace of zero kills at once. The error says that it could not be ended.
func (p *process) stop(grace time.Duration) error {
	p.stopping.Store(true)
	if grace > 0 {
		p.signal(syscall.SIGTERM)
		if p.waitExit(grace) {
			return nil
		}
	}
	p.signal(syscall.SIGKILL)
	if !p.waitExit(killWait) {
		return fmt.Errorf("%s (process %d) is still there %s after SIGKILL", p.component, p.pid, killWait)
	}
	return nil
}

// signal reaches the whole process group. A group that has already ended is
// not an error: ending it is what every caller wants.
func (p *process) signal(signal syscall.Signal) {
	if p.hasExited() {
		return // The number may belong to someone else by now.
	}
	_ = syscall.Kill(-p.pid, signal)
}

func (p *process) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

func (p *process) waitExit(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// exitError describes a process that ended by itself, with the end of its log.
func (p *process) exitError() error {
	reason := p.exitErr
	if reason == nil {
		reason = errors.New("exit status 0")
	}
	return fmt.Errorf("%s ended: %w\n%s", p.component, reason, p.logTail())
}

// portTaken reports whether this process could not bind a port.
func (p *process) portTaken() bool {
	return bytes.Contains(p.ownLog(), []byte("address already in use"))
}

// logTail returns the last lines that this process wrote, ready to be appended
// to an error.
func (p *process) logTail() string {
	lines := strings.Split(strings.TrimRight(string(p.ownLog()), "\n"), "\n")
	if len(lines) > logTailLines {
		lines = lines[len(lines)-logTailLines:]
	}
	for i, line := range lines {
		if len(line) > logTailColumns {
			lines[i] = line[:logTailColumns] + " ..."
		}
	}
	return fmt.Sprintf("last lines of %s:\n  %s", p.logPath, strings.Join(lines, "\n  "))
}

// ownLog returns the end of what this process wrote. A log that cannot be read
// is described in its place: the caller is already reporting another error.
func (p *process) ownLog() []byte {
	log, err := os.Open(p.logPath)
	if err != nil {
		return []byte(err.Error())
	}
	defer log.Close()
	info, err := log.Stat()
	if err != nil {
		return []byte(err.Error())
	}
	from := max(p.logStart, info.Size()-logTailBytes)
	data, err := io.ReadAll(io.NewSectionReader(log, from, info.Size()-from))
	if err != nil {
		return []byte(err.Error())
	}
	return data
}
