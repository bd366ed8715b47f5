package placingtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/joiner-autoscaler/joiner/api/crd"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/placing"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// Door is a way in which the policy gets into an API server.
type Door string

// The doors.
const (
	Plugin  Door = "plugin"
	Webhook Door = "webhook"
)

// Doors returns all of them.
func Doors() []Door { return []Door{Plugin, Webhook} }

// Options say what to guard.
type Options struct {
	Door Door
	// Policy is the NodeSchedulingPolicyConfig in YAML; empty: the plugin is off.
	Policy string
	// Args are further flags of the API server.
	Args []string
	// FromFiles is a directory in which the API server finds the webhook's configuration as a file; empty: it is an
	// object of the API.
	FromFiles string
	// World is manifests that are applied before any request, in addition to placing.Rights and the namespaces.
	World string
	// WithScheduler installs the definition of the kind Scheduler, with the field. It also installs Joiner's own kind,
	// which is ignored then.
	WithScheduler bool
	// Components are those of the control plane; empty: all.
	Components []cluster.Component
	// AtEnd checks what a webhook has done, after it is stopped and before its API server is; nil checks nothing.
	AtEnd func(*Guarded) error
}

// Guarded is a cluster whose API server the policy guards.
type Guarded struct {
	*rig.Rig
	Door    Door
	Clients kubernetes.Interface // the admin's
	admin   *rest.Config

	webhook  *rig.Controller      // nil if it does not run, or for the other door
	binary   string               // of joiner-webhook
	reserved *cluster.Reservation // of port; nil for the other door
	port     int                  // that the API server calls
	atEnd    func(*Guarded) error // nil: nothing
	files    string               // the directory of the webhook's files; "": that of the admin's kubeconfig
}

// Start starts a control plane and its guard. The binaries are named by cluster.BinaryEnv and, for the webhook, by
// WebhookEnv; the error says how to get them. The caller has to call Stop.
func Start(ctx context.Context, options Options) (*Guarded, error) {
	controlPlane, err := cluster.BinaryFromEnv()
	if err != nil {
		return nil, err
	}
	asked := rig.Options{ControlPlane: controlPlane, Components: options.Components, Audit: true, WithoutJoiner: true,
		WithoutManifests: true, ExtraArgs: map[cluster.Component][]string{cluster.APIServer: options.Args}}
	g := &Guarded{Door: options.Door, atEnd: options.AtEnd}
	switch options.Door {
	case Plugin:
		asked.NodeSchedulingPolicy = options.Policy
	case Webhook:
		if g.binary, err = webhookFromEnv(); err != nil {
			return nil, err
		}
		if options.FromFiles != "" {
			flags, err := g.writeManifest(ctx, options)
			if err != nil {
				return nil, err
			}
			asked.ExtraArgs[cluster.APIServer] = append(flags, options.Args...)
		}
	default:
		return nil, fmt.Errorf("Options.Door is %q: allowed are %v", options.Door, Doors())
	}
	if g.Rig, err = rig.Start(ctx, asked); err != nil {
		return nil, errors.Join(err, g.reserved.Release())
	}
	if err := g.prepare(ctx, options); err != nil {
		return nil, errors.Join(err, g.Stop())
	}
	return g, nil
}

// prepare creates the world, and then guards it.
func (g *Guarded) prepare(ctx context.Context, options Options) (err error) {
	if g.admin, err = g.Cluster.RESTConfig("admin"); err != nil {
		return err
	}
	if g.Clients, err = kubernetes.NewForConfig(g.admin); err != nil {
		return err
	}
	world := placing.Rights + options.World
	for _, namespace := range placing.Namespaces() {
		world += fmt.Sprintf("---\napiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", namespace)
	}
	if err := g.Apply(ctx, world); err != nil {
		return err
	}
	accounts := "" // for control planes without controllers
	for _, account := range placing.ServiceAccounts() {
		namespace, name, _ := strings.Cut(account, "/")
		accounts += fmt.Sprintf("---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: %s, namespace: %s}\n",
			name, namespace)
	}
	if err := g.Apply(ctx, accounts); err != nil {
		return err
	}
	if options.WithScheduler {
		if err := errors.Join(g.InstallScheduler(ctx), g.InstallGroups(ctx)); err != nil {
			return err
		}
	}
	if g.Door != Webhook {
		return nil
	}
	return g.guard(ctx, options)
}

// InstallScheduler installs the definition of the kind Scheduler, and waits until it is served.
func (g *Guarded) InstallScheduler(ctx context.Context) error { return g.define(ctx, crd.OpenShift) }

// InstallGroups does the same for NodeSchedulingGroup, Joiner's own kind.
func (g *Guarded) InstallGroups(ctx context.Context) error { return g.define(ctx, crd.NodeScheduling) }

func (g *Guarded) define(ctx context.Context, definitions func() (map[string][]byte, error)) error {
	manifests, err := definitions()
	if err != nil {
		return err
	}
	all := ""
	for _, manifest := range manifests {
		all += string(manifest)
	}
	if err := g.Apply(ctx, all); err != nil {
		return err
	}
	_, err = g.Kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	return err
}

// Ask sends a line of the script language as the user that it names, a member of the groups; see placing.Ask.
func (g *Guarded) Ask(ctx context.Context, line string, groups ...string) (string, error) {
	return placing.Ask(ctx, g.admin, line, groups...)
}

// Log returns the path of the judging program's log.
func (g *Guarded) Log() string {
	if g.webhook != nil {
		return g.webhook.Log()
	}
	return filepath.Join(g.Cluster.Dir(), "logs", string(cluster.APIServer)+".log")
}

// Metrics returns the metrics of the judging program.
func (g *Guarded) Metrics(ctx context.Context) (string, error) {
	if g.Door == Plugin {
		return g.Kubectl(ctx, "", "get", "--raw", "/metrics")
	}
	return g.webhookMetrics(ctx)
}

// Stop ends the guard and the control plane.
func (g *Guarded) Stop() error {
	var failed error
	if g.webhook != nil {
		failed = g.webhook.Stop()
		if g.atEnd != nil { // the audit log has watches once they end
			failed = errors.Join(failed, g.atEnd(g))
		}
	}
	return errors.Join(failed, g.Cluster.Stop(), g.reserved.Release())
}

func pathFromEnv(name string) (string, error) {
	path := os.Getenv(name)
	if path == "" {
		return "", fmt.Errorf("%s is not set: run `make programs` and set it to the absolute path of that binary",
			name)
	}
	return path, nil
}
