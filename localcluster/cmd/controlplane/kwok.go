package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/kwok/kustomize/stage/node/fast"
	heartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/kwok/pkg/apis/internalversion"
	"sigs.k8s.io/kwok/pkg/client/clientset/versioned"
	"sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	"sigs.k8s.io/kwok/pkg/log"
	"sigs.k8s.io/kwok/pkg/utils/client"
)

const (
	// fakeNodeSelector is the annotation by which KWOK picks its nodes.
	fakeNodeSelector = "kwok.x-k8s.io/node=fake"
	// podCIDR gives each fake pod an address; nothing listens there.
	podCIDR = "10.64.0.0/14"
	// nodeLeaseSeconds is a kubelet's default; the node lifecycle controller
	// waits a little longer before it calls a node lost.
	nodeLeaseSeconds = 40
	// fakeKubeletPort is written to the nodes' status; nothing listens there.
	fakeKubeletPort = 10247
	// healthReadTimeout bounds one request to the health endpoint.
	healthReadTimeout = 5 * time.Second
)

// kwokOptions are the flags of the kwok component.
type kwokOptions struct {
	kubeconfig  string
	address     string // host:port of the health endpoint; empty: none
	certFile    string
	keyFile     string
	parallelism uint
}

// newKWOKCommand returns a command that runs KWOK's controllers until it is
// told to stop. Upstream's own command is not used because it reads stages
// from files or from a CRD; here they are compiled in.
func newKWOKCommand() *cobra.Command {
	o := kwokOptions{}
	cmd := &cobra.Command{
		Use:          "kwok",
		Short:        "Run fake kubelets for the nodes annotated with " + fakeNodeSelector,
		Args:         cobra.NoArgs,
		SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			ctx := genericapiserver.SetupSignalContext()
			// At the default level KWOK writes several lines per pod.
			ctx = log.NewContext(ctx, log.NewLogger(os.Stderr, log.LevelWarn))
			return runKWOK(ctx, o)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.kubeconfig, "kubeconfig", "",
		"file with the address of the API server and the credentials (required)")
	fs.StringVar(&o.address, "health-address", "", "host:port that serves /healthz over TLS; empty for none")
	fs.StringVar(&o.certFile, "tls-cert-file", "", "serving certificate of the health endpoint")
	fs.StringVar(&o.keyFile, "tls-private-key-file", "", "private key of the health endpoint")
	fs.UintVar(&o.parallelism, "parallelism", 16, "number of workers each for pods, nodes and leases")
	return cmd
}

func (o kwokOptions) validate() error {
	switch {
	case o.kubeconfig == "":
		return errors.New("--kubeconfig is empty: it must name a file")
	case o.parallelism == 0:
		return errors.New("--parallelism is 0: it must be at least 1")
	case o.address != "" && (o.certFile == "" || o.keyFile == ""):
		return errors.New("--health-address needs --tls-cert-file and --tls-private-key-file")
	}
	return nil
}

// runKWOK starts the controllers, then the health endpoint, and returns when
// ctx ends. The endpoint answers only once the controllers have started.
func runKWOK(ctx context.Context, o kwokOptions) error {
	cfg, err := kwokConfig(o)
	if err != nil {
		return err
	}
	controller, err := controllers.NewController(cfg)
	if err != nil {
		return fmt.Errorf("creating KWOK's controllers: %w", err)
	}
	if err := controller.Start(ctx); err != nil {
		return fmt.Errorf("starting KWOK's controllers: %w", err)
	}
	if o.address == "" {
		<-ctx.Done()
		return nil
	}
	return serveHealth(ctx, o)
}

// kwokConfig builds the clients and the configuration of KWOK's controllers.
func kwokConfig(o kwokOptions) (controllers.Config, error) {
	set, err := client.NewClientset("", o.kubeconfig)
	if err != nil {
		return controllers.Config{}, fmt.Errorf("reading kubeconfig %s: %w", o.kubeconfig, err)
	}
	clients, err := newKWOKClients(set)
	if err != nil {
		return controllers.Config{}, err
	}
	stages, err := fakeKubeletStages()
	if err != nil {
		return controllers.Config{}, err
	}
	id, err := controllers.Identity()
	if err != nil {
		return controllers.Config{}, fmt.Errorf("choosing an identity for the node leases: %w", err)
	}
	cfg := clients
	cfg.Clock = clock.RealClock{}
	cfg.ManageNodesWithAnnotationSelector = fakeNodeSelector
	cfg.CIDR = podCIDR
	cfg.NodeIP = "127.0.0.1"
	cfg.NodePort = fakeKubeletPort
	cfg.LocalStages = stages
	cfg.PodPlayStageParallelism = o.parallelism
	cfg.NodePlayStageParallelism = o.parallelism
	cfg.NodeLeaseParallelism = o.parallelism
	cfg.PodsOnNodeSyncParallelism = o.parallelism
	cfg.NodeLeaseDurationSeconds = nodeLeaseSeconds
	cfg.EnablePodsOnNodeSyncStreamWatch = true
	cfg.ID = id
	return cfg, nil
}

// newKWOKClients returns a configuration in which only the clients are set.
func newKWOKClients(set client.Clientset) (controllers.Config, error) {
	fail := func(err error) (controllers.Config, error) {
		return controllers.Config{}, fmt.Errorf("building a client: %w", err)
	}
	restConfig, err := set.ToRESTConfig()
	if err != nil {
		return fail(err)
	}
	dynamicClient, err := set.ToDynamicClient()
	if err != nil {
		return fail(err)
	}
	mapper, err := set.ToRESTMapper()
	if err != nil {
		return fail(err)
	}
	restClient, err := rest.RESTClientFor(restConfig)
	if err != nil {
		return fail(err)
	}
	typed, err := kubernetes.NewForConfig(restConfig)
	if err != nil {
		return fail(err)
	}
	typedKWOK, err := versioned.NewForConfig(restConfig)
	if err != nil {
		return fail(err)
	}
	return controllers.Config{
		DynamicClient:              dynamicClient,
		RESTClient:                 restClient,
		RESTMapper:                 mapper,
		TypedClient:                typed,
		TypedKwokClient:            typedKWOK,
		ImpersonatingDynamicClient: set.ToImpersonatingDynamicClient(),
		ImpersonatingTypedClient:   set.ToImpersonatingTypedClient(),
	}, nil
}

// fakeKubeletStages returns the stages that KWOK's module embeds, by resource:
// a node becomes ready at once and keeps its lease, a pod runs at once, a job's
// pod completes, and a deleted pod goes away.
func fakeKubeletStages() (map[internalversion.StageResourceRef][]*internalversion.Stage, error) {
	stages := map[internalversion.StageResourceRef][]*internalversion.Stage{}
	for _, manifest := range []string{
		fast.DefaultNodeInit,
		heartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady,
		podfast.DefaultPodComplete,
		podfast.DefaultPodDelete,
	} {
		stage, err := config.UnmarshalWithType[*internalversion.Stage](manifest)
		if err != nil {
			return nil, fmt.Errorf("reading an embedded stage: %w", err)
		}
		ref := stage.Spec.ResourceRef
		stages[ref] = append(stages[ref], stage)
	}
	return stages, nil
}

// serveHealth answers "ok" under /healthz until ctx ends.
func serveHealth(ctx context.Context, o kwokOptions) error {
	listener, err := net.Listen("tcp", o.address)
	if err != nil {
		return fmt.Errorf("listening on --health-address %s: %w", o.address, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	server := &http.Server{Handler: mux, ReadTimeout: healthReadTimeout}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.ServeTLS(listener, o.certFile, o.keyFile); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving /healthz on %s: %w", o.address, err)
	}
	return nil
}
