package serve

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Ports are listeners that are opened before anything else, so that a port in use is reported at once.
type Ports struct {
	metrics, health net.Listener // nil when not served
	handedOver      bool
}

// Open opens the listeners for metrics and for probes; nil listeners are not served.
func Open(metrics, health func() (net.Listener, error)) (*Ports, error) {
	p := &Ports{}
	var err error
	if p.metrics, err = metrics(); err != nil {
		return nil, err
	}
	if p.health, err = health(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// OpenAddresses opens the listeners of --metrics-bind-address and --health-probe-bind-address.
func OpenAddresses(metrics, health string) (*Ports, error) {
	return Open(
		func() (net.Listener, error) { return ListenAt("metrics-bind-address", metrics) },
		func() (net.Listener, error) { return ListenAt("health-probe-bind-address", health) },
	)
}

// Health returns the address of the probes, nil when they are not served.
func (p *Ports) Health() net.Addr {
	if p.health == nil {
		return nil
	}
	return p.health.Addr()
}

// Add hands the listeners to the manager, which closes them. The manager starts its own type of server before it fills
// the caches, so probes are answered meanwhile.
func (p *Ports) Add(mgr manager.Manager, metrics, health http.Handler) error {
	p.handedOver = true
	if p.metrics != nil {
		if err := mgr.Add(early(p.metrics, metrics)); err != nil {
			return err
		}
	}
	if p.health != nil {
		return mgr.Add(early(p.health, health))
	}
	return nil
}

func early(listener net.Listener, handler http.Handler) *manager.Server {
	return &manager.Server{Name: listener.Addr().String(), Server: Server{Handler: handler}.web(), Listener: listener,
		ShutdownTimeout: new(closeWithin)}
}

// Close closes the listeners unless they were handed over.
func (p *Ports) Close() {
	if p.handedOver {
		return
	}
	for _, listener := range []net.Listener{p.metrics, p.health} {
		if listener != nil {
			_ = listener.Close() // the process ends anyway
		}
	}
}

// ListenPort listens on a port; for 0 it returns nil. If the port is in use, the error names the flag.
func ListenPort(flag string, port int) (net.Listener, error) {
	if port == 0 {
		return nil, nil
	}
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return nil, fmt.Errorf(
			"--%s: port %d cannot be used, another process may have it: give a free port, or 0 to serve nothing (%s)",
			flag, port, OneLine(err))
	}
	return listener, nil
}

// ListenAt listens on an address; for "0" it returns nil.
func ListenAt(flag, address string) (net.Listener, error) {
	if address == "0" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf(
			"--%s: %s cannot be used, another process may have it: give a free one, or 0 to serve nothing (%s)",
			flag, address, OneLine(err))
	}
	return listener, nil
}

// ValidateAddresses returns an error if --metrics-bind-address or --health-probe-bind-address cannot work.
func ValidateAddresses(metrics, health string) error {
	var faults []error
	for _, address := range []struct{ flag, value string }{
		{"metrics-bind-address", metrics}, {"health-probe-bind-address", health},
	} {
		if err := ValidAddress(address.value); err != nil {
			faults = append(faults, fmt.Errorf("--%s is %q: want host:port or :port, or 0 to serve nothing",
				address.flag, address.value))
		}
	}
	if metrics == health && metrics != "0" {
		faults = append(faults,
			fmt.Errorf("--metrics-bind-address and --health-probe-bind-address are both %q: give each its own",
				metrics))
	}
	return errors.Join(faults...)
}

// ValidAddress returns an error unless the address is host:port, :port or 0.
func ValidAddress(address string) error {
	if address == "0" {
		return nil
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if number, err := strconv.Atoi(port); err != nil || number < 1 || number > 65535 {
		return fmt.Errorf("%q is no port", port)
	}
	return nil
}
