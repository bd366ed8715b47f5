package serve

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// a webhook that is asked to stop answers until its callers have learnt that it goes. One that does not serve
// yet ends at once, and so does one whose work has ended before.
func TestX12_AWebhookAnswersUntilItsCallersKnow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		serves, ends bool
		want         time.Duration
	}{
		"it serves":          {serves: true, want: LingerFor},
		"it does not serve":  {},
		"its work has ended": {serves: true, ends: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			lingering, cancel := Linger(ctx, LingerFor, func() bool { return c.serves })
			defer cancel()
			synctest.Wait()
			if lingering.Err() != nil {
				t.Fatalf("%s: it ended before it was asked to", name)
			}
			if c.ends {
				cancel()
			}
			began := time.Now()
			stop()
			<-lingering.Done()
			if took := time.Since(began); took != c.want {
				t.Errorf("%s: it ended after %s, want %s", name, took, c.want)
			}
		})
	}
}

// while it lingers, a server answers on the connections that it has and on new ones, and gives up each with its
// answer. Before, it keeps them.
func TestX12_AServerThatGoesGivesUpItsConnections(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	server := httptest.NewUnstartedServer(Parting(ctx, http.NotFoundHandler()))
	var opened atomic.Int32
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	ask := func() bool {
		t.Helper()
		response, err := server.Client().Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, response.Body) // only then it is used again
		if err := errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return response.Close
	}
	if first, second := ask(), ask(); first || second || opened.Load() != 1 {
		t.Errorf("%d connections were opened for two requests, want one that stays", opened.Load())
	}
	stop()
	if first, second := ask(), ask(); !first || !second || opened.Load() != 2 {
		t.Errorf("%d connections were opened, want a new one for the second request after the signal", opened.Load())
	}
}
