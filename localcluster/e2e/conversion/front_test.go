package conversion

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// front stands for the service: API servers connect to it, and it connects them to the replicas in turn. It skips a
// replica that refuses, as a service drops an endpoint once its pod is known to be gone.
type front struct {
	listener net.Listener
	backends []string     // addresses
	accepted atomic.Int64 // connections
	running  sync.WaitGroup
}

// newFront serves until the end of the test.
func newFront(t *testing.T, backends ...string) *front {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &front{listener: listener, backends: backends}
	f.running.Go(f.serve)
	t.Cleanup(func() {
		_ = listener.Close() // the API server has ended before, and its connections with it
		f.running.Wait()
	})
	return f
}

// url returns the URL that the API server must call.
func (f *front) url() string { return "https://" + f.listener.Addr().String() }

func (f *front) serve() {
	for {
		client, err := f.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		n := int(f.accepted.Add(1))
		f.running.Go(func() { f.connect(client, n) })
	}
}

// connect joins a connection with the n-th replica, or the next one that answers, until either side ends it.
func (f *front) connect(client net.Conn, n int) {
	defer client.Close()
	for i := range f.backends {
		replica, err := net.Dial("tcp", f.backends[(n+i)%len(f.backends)])
		if err != nil {
			continue
		}
		defer replica.Close()
		var back sync.WaitGroup
		back.Go(func() {
			_, _ = io.Copy(client, replica)
			_ = client.Close()
		})
		_, _ = io.Copy(replica, client)
		_ = replica.Close()
		back.Wait()
		return
	}
}
