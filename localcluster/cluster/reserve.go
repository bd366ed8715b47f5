package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
)

// Range of reserved ports. It lies below the kernel's usual ephemeral ports, so neither outgoing connections nor
// listeners at port 0 get one of these.
const (
	firstReserved = 20000
	lastReserved  = 32000
)

// ephemeralRange is the file with Linux's range of ephemeral ports.
const ephemeralRange = "/proc/sys/net/ipv4/ip_local_port_range"

// Reservation is a set of TCP ports of this machine that no other reservation gets until it is released, or this
// process ends. Opening a free port, closing it and using its number later is unsafe: somebody else may get it before
// the intended program listens. Two of our programs that share ports would even both get it.
//
// A port is reserved by holding the UDP port of the same number on 127.0.0.1. That does not block the TCP port, but
// keeps two of our processes from reserving the same one. Programs that use ports of the range without a reservation
// can still interfere: whoever starts a program has to check for that.
type Reservation struct {
	Ports []int
	held  []net.PacketConn
}

// Reserve reserves n free ports.
func Reserve(n int) (*Reservation, error) {
	r := &Reservation{}
	first, last := reservable()
	start := rand.IntN(last - first)
	for i := 0; i < last-first && len(r.Ports) < n; i++ {
		_ = r.add(first + (start+i)%(last-first)) // ports in use are skipped
	}
	if len(r.Ports) < n {
		return nil, errors.Join(fmt.Errorf("looking for %d free ports from %d to %d: there are %d", n, first, last,
			len(r.Ports)), r.Release())
	}
	return r, nil
}

// ReserveThese reserves ports by their numbers. It fails when one of them is taken.
func ReserveThese(ports ...int) (*Reservation, error) {
	r := &Reservation{}
	for _, port := range ports {
		if err := r.add(port); err != nil {
			return nil, errors.Join(err, r.Release())
		}
	}
	return r, nil
}

// add reserves a port that nobody has reserved and on which nobody listens.
func (r *Reservation) add(port int) error {
	held, err := net.ListenPacket("udp4", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return fmt.Errorf("reserving port %d: %w", port, err)
	}
	listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err == nil {
		err = listener.Close()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("port %d is in use: %w", port, err), held.Close())
	}
	r.Ports, r.held = append(r.Ports, port), append(r.held, held)
	return nil
}

// Release gives the ports back. A nil reservation has none.
func (r *Reservation) Release() error {
	if r == nil {
		return nil
	}
	var failed []error
	for _, held := range r.held {
		failed = append(failed, held.Close())
	}
	r.held = nil
	return errors.Join(failed...)
}

// reservable returns the range up to where the kernel's own range begins. If that leaves too few ports, the kernel's
// range is ignored.
func reservable() (first, last int) {
	first, last = firstReserved, lastReserved
	content, err := os.ReadFile(ephemeralRange)
	if err != nil {
		return first, last
	}
	var low int
	if _, err := fmt.Fscan(strings.NewReader(string(content)), &low); err == nil && low > first+1000 {
		last = min(last, low)
	}
	return first, last
}
