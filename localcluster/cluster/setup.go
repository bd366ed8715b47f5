package cluster

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Entries of a cluster's directory. Stop removes these and no other file, so
// that a directory which also holds something else is never emptied.
const (
	pkiDir          = "pki"
	kubeconfigDir   = "kubeconfig"
	etcdDir         = "etcd"
	logDir          = "logs"
	kubectlCacheDir = "kubectl-cache"
	auditLogFile    = "audit.log"
	auditPolicyFile = "audit-policy.yaml"
	admissionFile   = "admission.yaml"
	placementFile   = "node-scheduling-policy.yaml"
	portsFile       = "ports.json"
	lockFile        = "lock"
)

// auditPolicy records who asked for what, once per request, when it is done.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
rules: [{level: Metadata}]
`

// admissionConfiguration names the configured plugin and the file with its configuration.
const admissionConfiguration = `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins: [{name: ` + nodeSchedulingPlugin + `, path: ` + placementFile + `}]
`

// setup is what the components' flags are made from. The ports change while a
// cluster starts and not after.
type setup struct {
	options  Options
	pki      *pki
	ports    ports
	previous ports // of the last run in this directory; nil: none
	userTLS  *tls.Config
	etcdTLS  *tls.Config
	lock     *os.File
	reserved []*Reservation // of current and of given-up ports
}

// newSetup prepares the directory: lock, keys, ports, policy.
func newSetup(options Options) (*setup, error) {
	temporary := options.Dir == ""
	var err error
	if temporary {
		if options.Dir, err = os.MkdirTemp("", "joiner-cluster-"); err != nil {
			return nil, fmt.Errorf("creating a directory for the cluster: %w", err)
		}
	}
	s := &setup{options: options}
	if err := s.prepare(); err != nil {
		if temporary {
			err = errors.Join(err, s.remove())
		}
		return nil, errors.Join(err, s.unlock())
	}
	return s, nil
}

func (s *setup) prepare() error {
	for _, dir := range []string{"", kubeconfigDir, logDir} {
		if err := os.MkdirAll(filepath.Join(s.options.Dir, dir), 0o700); err != nil {
			return fmt.Errorf("Options.Dir %q: %w", s.options.Dir, err)
		}
	}
	var err error
	if s.lock, err = lockDir(filepath.Join(s.options.Dir, lockFile)); err != nil {
		return fmt.Errorf("Options.Dir: %w", err)
	}
	if s.pki, err = loadPKI(filepath.Join(s.options.Dir, pkiDir)); err != nil {
		return err
	}
	if s.userTLS, err = s.pki.probeTLS(s.pki.users); err != nil {
		return err
	}
	if s.etcdTLS, err = s.pki.probeTLS(s.pki.etcd); err != nil {
		return err
	}
	if s.previous, err = loadPorts(filepath.Join(s.options.Dir, portsFile)); err != nil {
		return err
	}
	if err := s.choosePorts(); err != nil {
		return err
	}
	for name, content := range map[string]string{
		auditPolicyFile: auditPolicy, admissionFile: admissionConfiguration,
		placementFile: s.options.NodeSchedulingPolicy,
	} {
		if err := os.WriteFile(filepath.Join(s.options.Dir, name), []byte(content), 0o600); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}

// choosePorts takes the ports of the last run, if nobody else has them now, or
// new ones.
func (s *setup) choosePorts() error {
	if s.previous == nil {
		return s.renewPorts(allPorts())
	}
	reserved, err := ReserveThese(slices.Collect(maps.Values(s.previous))...)
	if err != nil {
		return s.renewPorts(allPorts())
	}
	s.ports, s.reserved = s.previous, append(s.reserved, reserved)
	return nil
}

// renewPorts gives the named ports new numbers.
func (s *setup) renewPorts(names []portName) error {
	renewed, reserved, err := s.ports.withFree(names)
	if err != nil {
		return err
	}
	s.ports, s.reserved = renewed, append(s.reserved, reserved)
	return nil
}

// announce writes the kubeconfigs and saves the ports. The API server's port
// must be final.
func (s *setup) announce() error {
	previous := ""
	if s.previous != nil {
		previous = s.previous.url(apiServerPort, "")
	}
	if err := s.writeBuiltinKubeconfigs(previous); err != nil {
		return err
	}
	return s.savePorts()
}

func (s *setup) savePorts() error {
	return savePorts(filepath.Join(s.options.Dir, portsFile), s.ports)
}

func (s *setup) logPath(c Component) string {
	return filepath.Join(s.options.Dir, logDir, string(c)+".log")
}

// unlock lets another cluster use the directory and the ports.
func (s *setup) unlock() error {
	var failed []error
	for _, reserved := range s.reserved {
		failed = append(failed, reserved.Release())
	}
	s.reserved = nil
	if s.lock != nil {
		failed = append(failed, s.lock.Close())
		s.lock = nil
	}
	return errors.Join(failed...)
}

// remove deletes what a cluster writes, and the directory if nothing else is
// in it.
func (s *setup) remove() error {
	var failed []error
	for _, entry := range []string{
		pkiDir, kubeconfigDir, etcdDir, logDir, kubectlCacheDir,
		auditLogFile, auditPolicyFile, admissionFile, placementFile, portsFile, lockFile,
	} {
		failed = append(failed, os.RemoveAll(filepath.Join(s.options.Dir, entry)))
	}
	entries, err := os.ReadDir(s.options.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		failed = append(failed, err)
	case len(entries) == 0:
		failed = append(failed, os.Remove(s.options.Dir))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("removing the cluster's directory: %w", err)
	}
	return nil
}
