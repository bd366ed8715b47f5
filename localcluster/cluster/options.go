package cluster

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// BinaryEnv is the environment variable in which tests expect the path of
	// the built controlplane binary.
	BinaryEnv = "JOINER_CONTROLPLANE"
	// FakeNodeAnnotation on a Node, with the value FakeNodeValue, makes KWOK
	// act as its kubelet.
	FakeNodeAnnotation = "kwok.x-k8s.io/node"
	// FakeNodeValue is the value of FakeNodeAnnotation.
	FakeNodeValue = "fake"
	// DefaultReadyTimeout bounds the start of one component. On an idle
	// machine the slowest, kube-apiserver, takes about three seconds; the rest
	// is for machines on which a build runs at the same time.
	DefaultReadyTimeout = 2 * time.Minute
)

// Options say how to start a cluster. Only Binary must be set.
type Options struct {
	// Binary is the path of the controlplane binary.
	Binary string
	// Dir holds all state. Empty: a new temporary directory. A directory that
	// an earlier cluster kept is started again with its data, certificate
	// authorities and, if they are free, ports.
	Dir string
	// Keep leaves the directory in place when the cluster stops.
	Keep bool
	// Log receives a line per step of starting and stopping. Nil: nothing.
	Log io.Writer
	// Audit makes the API server write a line per request; see AuditLog.
	Audit bool
	// NodeSchedulingPolicy is a NodeSchedulingPolicyConfig in YAML, with which the API server runs its admission
	// plugin scheduling.openshift.io/NodeSchedulingPolicy. Empty: the plugin is off.
	NodeSchedulingPolicy string
	// Components are those to start, for tests that need less than a whole
	// cluster; etcd and kube-apiserver must be among them. Empty: all.
	Components []Component
	// ReadyTimeout bounds the wait for each component. Zero: DefaultReadyTimeout.
	ReadyTimeout time.Duration
	// ExtraArgs are appended to a component's flags. Where upstream takes the
	// last of two equal flags, they override what this package chose.
	ExtraArgs map[Component][]string
}

// BinaryFromEnv returns the absolute path that the environment variable
// BinaryEnv names. The error says how to get the binary.
func BinaryFromEnv() (string, error) {
	path := os.Getenv(BinaryEnv)
	if path == "" {
		return "", fmt.Errorf(
			"%s is not set: run `make bin/controlplane` and set it to the absolute path of that file", BinaryEnv)
	}
	if err := checkBinary(path); err != nil {
		return "", fmt.Errorf("%s: %w", BinaryEnv, err)
	}
	return filepath.Abs(path)
}

// complete checks the options and fills in defaults and absolute paths. It
// touches the file system only to look at Binary.
func (o Options) complete() (Options, error) {
	if o.Binary == "" {
		return o, errors.New(
			"Options.Binary is empty: it must be the path of the controlplane binary; run `make bin/controlplane`")
	}
	if err := checkBinary(o.Binary); err != nil {
		return o, fmt.Errorf("Options.Binary: %w", err)
	}
	if o.ReadyTimeout < 0 {
		return o, fmt.Errorf("Options.ReadyTimeout is %s: it must not be negative", o.ReadyTimeout)
	}
	for component := range o.ExtraArgs {
		if !slices.Contains(startOrder(), component) {
			return o, fmt.Errorf("Options.ExtraArgs names the component %q: allowed are %v", component, startOrder())
		}
	}
	if err := o.completeComponents(); err != nil {
		return o, err
	}
	if o.ReadyTimeout == 0 {
		o.ReadyTimeout = DefaultReadyTimeout
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	var err error
	if o.Binary, err = filepath.Abs(o.Binary); err != nil {
		return o, fmt.Errorf("Options.Binary %q: %w", o.Binary, err)
	}
	if o.Dir == "" {
		return o, nil
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return o, fmt.Errorf("Options.Dir %q: %w", o.Dir, err)
	}
	return o, nil
}

// completeComponents checks Components and fills in their default.
func (o *Options) completeComponents() error {
	if len(o.Components) == 0 {
		o.Components = startOrder()
		return nil
	}
	for _, component := range o.Components {
		if !slices.Contains(startOrder(), component) {
			return fmt.Errorf("Options.Components names %q: allowed are %v", component, startOrder())
		}
	}
	for _, needed := range []Component{Etcd, APIServer} {
		if !slices.Contains(o.Components, needed) {
			return fmt.Errorf("Options.Components is %v: %s must be among them", o.Components, needed)
		}
	}
	return nil
}

// clients returns the components to start that only talk to the API server.
func (o Options) clients() []Component {
	return slices.DeleteFunc(startOrder()[2:], func(c Component) bool { return !slices.Contains(o.Components, c) })
}

// checkBinary refuses a path that cannot be executed.
func checkBinary(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("%w: run `make bin/controlplane`", err)
	case info.IsDir() || info.Mode()&0o111 == 0:
		return fmt.Errorf("%s is not an executable file: run `make bin/controlplane`", path)
	}
	return nil
}
