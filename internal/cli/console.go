package cli

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// consoling holds the flags of console.
type consoling struct {
	reaching
	open      bool
	localPort int
}

// insteadOfConsole tells users what works without a controller.
const insteadOfConsole = "joinerctl status and joinerctl explain read the objects of the API server"

func console(config Config) *cobra.Command {
	with := &consoling{}
	with.instead = insteadOfConsole
	command := &cobra.Command{
		Use: "console", Short: "Open a page that shows the state of the cluster",
		Args: cobra.NoArgs,
		Long: `Open the page of the controller that leads: what needs attention, NodePools, nodes with what keeps
them, and waiting pods by cause. It opens a local port that forwards to the controller through the
API server, and prints the address of the page. It runs until it is interrupted, and follows when
another replica takes over.

It needs the right to list leases, and to create pods/portforward in the namespace of the
controller. Whoever has the second right can read what the controller sees. Nothing is ever
written. The page listens on the loopback address of this machine, which other users of the
machine reach too. So the address contains a key, new each time: whoever has the address can read
the page.

Exit code: 2 the controller cannot be reached; 130 interrupted.`,
		Example: "  joinerctl console\n  joinerctl console --open",
		RunE:    func(command *cobra.Command, _ []string) error { return with.run(command.Context(), config) },
	}
	flags := command.Flags()
	flags.BoolVar(&with.open, "open", false, "open the address in a browser")
	flags.IntVar(&with.localPort, "local-port", 0, "loopback port of this machine; 0 takes a free one")
	flags.IntVar(&with.port, "read-port", usualReadPort, "loopback port of the controller's pod to ask")
	with.where.flags(command)
	with.connection = connects(command)
	return command
}

func (with *consoling) run(ctx context.Context, config Config) error {
	if with.localPort < 0 || with.localPort > 65535 {
		return fmt.Errorf("--local-port is %d: it must be a port, or 0", with.localPort)
	}
	tunnel := &tunnel{with: with.reaching, config: config, turn: make(chan struct{}, 1)}
	defer tunnel.close(context.WithoutCancel(ctx))
	if err := tunnel.try(ctx); err != nil {
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", with.localPort))
	if err != nil {
		return fmt.Errorf("--local-port is %d: %w", with.localPort, err)
	}
	key := rand.Text()
	server := &http.Server{Handler: keyed(key, tunnel), ReadHeaderTimeout: answerWithin,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // no open request is worth waiting for
	address := "http://" + listener.Addr().String() + "/" + key + "/"
	fmt.Fprintf(config.Out, "%s\n", address)
	fmt.Fprintf(config.Err, "the console of %s; whoever has this address may read it; Ctrl-C ends it\n", tunnel.leads)
	if with.open {
		if config.Open == nil {
			fmt.Fprintln(config.Err, "no browser can be opened from here: open the address yourself")
		} else if err := config.Open(address); err != nil {
			fmt.Fprintf(config.Err, "no browser was opened (%s): open the address yourself\n", err)
		}
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}

// keyed accepts requests whose path begins with the key, and passes on the rest of the path. The page behind it uses
// relative addresses only.
func keyed(key string, to *tunnel) http.Handler {
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "localhost", "localhost"
		},
		Transport: &http.Transport{DialContext: to.dial, DisableCompression: true, IdleConnTimeout: answerWithin},
		// Events must be passed on at once.
		FlushInterval: -1,
		ModifyResponse: func(answer *http.Response) error {
			// The pod no longer leads: temporary refusals of a leader have a Retry-After.
			if answer.StatusCode == http.StatusServiceUnavailable && answer.Header.Get("Retry-After") == "" {
				to.close(answer.Request.Context())
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, strings.Join(strings.Fields(err.Error()), " "), http.StatusBadGateway)
		},
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Referrer-Policy", "no-referrer")
		first, rest, slash := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		host, _, err := net.SplitHostPort(r.Host)
		switch {
		case err != nil || host != "127.0.0.1" && host != "localhost",
			subtle.ConstantTimeCompare([]byte(first), []byte(key)) != 1:
			http.Error(w, "this address lacks its key: take the whole address that joinerctl console printed",
				http.StatusForbidden)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method "+r.Method+": GET and HEAD are answered", http.StatusMethodNotAllowed)
		case !slash:
			http.Redirect(w, r, "/"+key+"/", http.StatusFound)
		default:
			r.URL.Path = "/" + rest
			r.URL.RawPath = strings.TrimPrefix(r.URL.RawPath, "/"+key)
			proxy.ServeHTTP(w, r)
		}
	})
}

// tunnel leads to the leading controller. When the connection breaks, it looks for the leader again.
type tunnel struct {
	with   reaching
	config Config

	turn    chan struct{} // held while the connection is made or closed
	leads   leader
	address string // "" while there is no connection
	stop    func()
}

// try finds the leader and asks it for its page.
func (t *tunnel) try(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	address, err := t.way(ctx)
	if err != nil {
		return err
	}
	answer, err := t.with.get(ctx, address, "/joiner/v1/view/pods")
	if err == nil {
		defer answer.Body.Close()
		if err = refusal(answer); answer.StatusCode == http.StatusNotFound {
			err = errors.New("it is a version without a console")
		}
	}
	if err != nil {
		return fmt.Errorf("pod %s: %w: %s", t.leads, err, t.with.instead)
	}
	return nil
}

// way returns the local address that leads to the leader. It connects if needed.
func (t *tunnel) way(ctx context.Context) (string, error) {
	select { // callers that come meanwhile wait for the same connection
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if t.address != "" {
		return t.address, nil
	}
	leads, err := t.with.find(ctx, t.config, time.Now())
	if err != nil {
		return "", err
	}
	address, stop, err := t.with.forward(ctx, leads)
	if err != nil {
		return "", fmt.Errorf("pod %s: %w: %s", leads, err, t.with.instead)
	}
	t.leads, t.address, t.stop = leads, address, stop
	return address, nil
}

// dial connects to the leader. It replaces a broken connection, once.
func (t *tunnel) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	var failure error
	for range 2 {
		address, err := t.way(ctx)
		if err != nil {
			return nil, err
		}
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			return connection, nil
		}
		failure = err
		t.close(ctx)
	}
	return nil, failure
}

// close closes the connection.
func (t *tunnel) close(ctx context.Context) {
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
	case <-ctx.Done():
		return
	}
	if t.address != "" {
		t.stop()
		t.address = ""
	}
}
