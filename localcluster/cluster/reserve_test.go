package cluster

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
)

// Concurrent reservations get different ports. Nobody gets a port that is reserved or in use. The program that it was
// reserved for can listen there.
func TestReservedPortsAreOnesOwn(t *testing.T) {
	t.Parallel()
	const callers, each = 20, 5
	var mu sync.Mutex
	var all []int
	var wait sync.WaitGroup
	for range callers {
		wait.Go(func() {
			r, err := Reserve(each)
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = r.Release() })
			mu.Lock()
			defer mu.Unlock()
			all = append(all, r.Ports...)
		})
	}
	wait.Wait()
	slices.Sort(all)
	if distinct := slices.Compact(slices.Clone(all)); len(distinct) != callers*each {
		t.Fatalf("%d different ports of %d", len(distinct), len(all))
	}
	if again, err := ReserveThese(all[0]); err == nil {
		t.Errorf("port %d was reserved twice", again.Ports[0])
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", all[0]))
	if err != nil {
		t.Fatalf("the port cannot be used: %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
}

// Ports that were released or are in use are told apart from free ones.
func TestReserveThese(t *testing.T) {
	t.Parallel()
	r, err := Reserve(1)
	if err != nil {
		t.Fatal(err)
	}
	port := r.Ports[0]
	if err := r.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := ReserveThese(port)
	if err != nil {
		t.Fatalf("after its release: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if _, err := ReserveThese(port); err == nil {
		t.Errorf("port %d was reserved while somebody listens there", port)
	}
}
