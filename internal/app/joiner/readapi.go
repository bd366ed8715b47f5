package joiner

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/app/serve/readers"
	"github.com/joiner-autoscaler/joiner/internal/dump"
	"github.com/joiner-autoscaler/joiner/internal/history"
)

// readAPI answers what only a controller knows (U-41): GET requests, on the loopback of the pod. Whoever may forward a
// port to the pod may read it.
type readAPI struct {
	inputs  *inputs
	history *decisions
	readers *readers.Readers
	elected <-chan struct{} // closed once this process leads
	leader  func(context.Context) string
	log     logr.Logger
}

// pathDump serves the newest input, packed as joinerctl replay reads it.
const pathDump = "/joiner/v1/dump"

// pathHistory serves the decisions, newest first, filtered by the query (U-25).
const pathHistory = history.Path

func (a readAPI) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pathDump, func(w http.ResponseWriter, r *http.Request) {
		if why := a.standby(r.Context()); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		newest, planned := a.inputs.newest()
		if !planned {
			http.Error(w, "nothing was planned yet", http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/gzip")
		if err := dump.Write(w, newest.dump(ownProgram())); err != nil {
			a.log.Info("a dump was not sent", "reason", err.Error())
		}
	})
	mux.HandleFunc("GET "+pathHistory, func(w http.ResponseWriter, r *http.Request) {
		if why := a.standby(r.Context()); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		a.history.serve(w, r)
	})
	a.readers.Mount(mux)
	return readers.Guard(mux)
}

// standby returns why this pod answers nothing; "" when it leads.
func (a readAPI) standby(ctx context.Context) string {
	select {
	case <-a.elected:
		return ""
	default:
		return "this pod does not lead: " + a.leader(ctx)
	}
}

// ownProgram returns the name and version of this program.
func ownProgram() string {
	info, known := debug.ReadBuildInfo()
	if !known {
		return "joiner"
	}
	return "joiner " + info.Main.Version
}

// leaderIn returns a function that says who holds a lease.
func leaderIn(reader client.Reader, lease types.NamespacedName) func(context.Context) string {
	return func(ctx context.Context) string {
		var found coordinationv1.Lease
		if err := reader.Get(ctx, lease, &found); err != nil {
			return fmt.Sprintf("who does cannot be read: %s", serve.OneLine(err))
		}
		if holder := found.Spec.HolderIdentity; holder != nil && *holder != "" {
			name := *holder
			if at := strings.LastIndex(name, "_"); at > 0 { // the part behind it changes with each start
				name = name[:at]
			}
			return "the leader is " + name
		}
		return "nobody does"
	}
}

// newReadAPI makes a read API with the read model of stands. epoch identifies this process.
func newReadAPI(known *inputs, kept *decisions, stands *standing, elected <-chan struct{},
	leader func(context.Context) string, epoch string, log logr.Logger,
) readAPI {
	api := readAPI{inputs: known, history: kept, elected: elected, leader: leader, log: log}
	api.readers = readers.New(readers.Config{Input: stands.input, Standby: api.standby, Epoch: epoch, Now: stands.now,
		Log: log})
	return api
}

// addReadAPI serves the read API, unless the port is 0. A port in use is logged, and does not stop the process.
func addReadAPI(ctx context.Context, config Config, mgr manager.Manager, p *process, log logr.Logger) error {
	if config.ReadPort == 0 {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", config.ReadPort))
	if err != nil {
		log.Info(
			"the read API is not served, so there is no console, and joinerctl dump needs --rebuild: give --read-port a "+
				"free port, or 0",
			"port", config.ReadPort, "reason", serve.OneLine(err))
		return nil
	}
	api := newReadAPI(p.inputs, p.history, p.standing, mgr.Elected(), leaderIn(mgr.GetAPIReader(), config.lease()),
		string(uuid.NewUUID()), log.WithName("readers"))
	return errors.Join(mgr.Add(api.readers), mgr.Add(serve.Server{Listener: listener, Handler: api.handler()}))
}
