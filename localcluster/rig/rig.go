// Package rig is a local cluster with Joiner in it: a real control plane with KWOK's simulated machines, and with our
// CRDs and roles. The joiner binary runs as a process of its own, with the identity and the rights that it has in
// production. For a hosted cluster, another rig is its management cluster, and joiner-operator runs between the two.
// The demo, `make up` and the end-to-end tests use rigs.
//
// Joiner is a child process, so that it can be killed as by a crash ([Rig.KillJoiner]). Nothing survives the rig: see
// package cluster.
package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/api/crd"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	"github.com/joiner-autoscaler/joiner/deploy"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

const (
	// JoinerEnv is the environment variable in which tests expect the path of the built joiner binary.
	JoinerEnv = "JOINER_BINARY"
	// User is Joiner's user name at the API server.
	User = "joiner"
	// poll is how often a condition is checked.
	poll = 200 * time.Millisecond
)

// Options say how to start a rig. Both binaries must be set.
type Options struct {
	ControlPlane string // path of the controlplane binary
	Joiner       string // path of the joiner binary
	// Dir keeps the state; empty: a temporary directory that is removed with the rig.
	Dir string
	// Log receives a line per step.
	Log io.Writer
	// Audit counts API requests; see [Rig.Requests].
	Audit bool
	// NodeSchedulingPolicy is the configuration of the API server's plugin of that name; empty: the plugin is off.
	NodeSchedulingPolicy string
	// Args are further flags for joiner, Env environment variables (NAME=value) beside those of this process.
	Args, Env []string
	// Components are those of the control plane; empty: all.
	Components []cluster.Component
	// ExtraArgs are further flags of components of the control plane.
	ExtraArgs map[cluster.Component][]string
	// WithoutJoiner leaves the start of joiner to StartJoiner.
	WithoutJoiner bool
	// WithoutManifests leaves our CRDs and roles to Install.
	WithoutManifests bool
}

// FromEnv returns options with the binaries that the environment names. The error says how to get them.
func FromEnv() (Options, error) {
	controlPlane, err := cluster.BinaryFromEnv()
	if err != nil {
		return Options{}, err
	}
	joiner := os.Getenv(JoinerEnv)
	if joiner == "" {
		return Options{},
			fmt.Errorf("%s is not set: run `make bin/joiner` and set it to the absolute path of that file", JoinerEnv)
	}
	if _, err := os.Stat(joiner); err != nil {
		return Options{}, fmt.Errorf("%s: %w", JoinerEnv, err)
	}
	return Options{ControlPlane: controlPlane, Joiner: joiner}, nil
}

// Rig is a running cluster with Joiner.
type Rig struct {
	Cluster *cluster.Cluster
	// Client is the admin's client. It reads from the API server, not from a cache.
	Client  client.WithWatch
	options Options
	joiner  *Controller // nil: does not run
}

// Start starts a cluster, installs CRDs and roles, and starts Joiner. The caller must call Stop. After an error
// nothing is left behind.
func Start(ctx context.Context, options Options) (*Rig, error) {
	running, err := cluster.Start(ctx, cluster.Options{
		Binary: options.ControlPlane, Dir: options.Dir, Keep: options.Dir != "", Log: options.Log,
		Audit:      options.Audit,
		Components: options.Components, NodeSchedulingPolicy: options.NodeSchedulingPolicy,
		ExtraArgs: options.ExtraArgs,
	})
	if err != nil {
		return nil, err
	}
	r := &Rig{Cluster: running, options: options}
	if err := r.connect(); err != nil {
		return nil, errors.Join(err, r.Stop())
	}
	if !options.WithoutManifests {
		if err := r.Install(ctx); err != nil {
			return nil, errors.Join(err, r.Stop())
		}
	}
	if !options.WithoutJoiner {
		if err := r.StartJoiner(ctx); err != nil {
			return nil, errors.Join(err, r.Stop())
		}
	}
	return r, nil
}

// Install installs our CRDs and roles, over existing ones.
func (r *Rig) Install(ctx context.Context) error {
	sets := []func() (map[string][]byte, error){
		crd.Manifests, func() (map[string][]byte, error) { return deploy.Manifests(), nil },
	}
	if r.options.NodeSchedulingPolicy != "" {
		sets = append(sets, crd.OpenShift)
	}
	manifests, err := joined(sets...)
	if err != nil {
		return err
	}
	return r.install(ctx, manifests)
}

// install applies manifests with CRDs, and waits until the API server serves the kinds.
func (r *Rig) install(ctx context.Context, manifests string) error {
	if err := r.Apply(ctx, manifests); err != nil {
		return fmt.Errorf("installing CRDs and roles: %w", err)
	}
	_, err := r.Kubectl(ctx, "", "wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
	return err
}

// joined returns the documents of all sets as one text.
func joined(sets ...func() (map[string][]byte, error)) (string, error) {
	var all strings.Builder
	for _, set := range sets {
		documents, err := set()
		if err != nil {
			return "", err
		}
		for _, name := range slices.Sorted(maps.Keys(documents)) {
			fmt.Fprintf(&all, "---\n%s\n", bytes.TrimPrefix(documents[name], []byte("---\n")))
		}
	}
	return all.String(), nil
}

// connect makes the admin's client.
func (r *Rig) connect() error {
	config, err := r.Cluster.RESTConfig("admin")
	if err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, karpenterv1.AddToScheme, kwokv1alpha1.AddToScheme, hypershiftv1beta1.AddToScheme,
		awsv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	r.Client, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	return err
}

// Stop stops Joiner gracefully, and then the cluster.
func (r *Rig) Stop() error {
	return errors.Join(r.StopJoiner(), r.Cluster.Stop())
}

// Apply applies manifests as `kubectl apply --server-side -f -` does.
func (r *Rig) Apply(ctx context.Context, manifests string) error {
	_, err := r.Kubectl(ctx, manifests, "apply", "--server-side", "--force-conflicts", "-f", "-")
	return err
}

// Kubectl runs the real kubectl as the admin and returns its output. An error contains the output.
func (r *Rig) Kubectl(ctx context.Context, input string, args ...string) (string, error) {
	command := r.Cluster.Kubectl(ctx, args...)
	command.Stdin = strings.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		return string(output), fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, output)
	}
	return string(output), nil
}

// Eventually waits until look reports done. look also describes what it saw, for the error when time runs out.
func (r *Rig) Eventually(ctx context.Context, within time.Duration, what string,
	look func(context.Context) (done bool, saw string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	saw := "nothing yet"
	for {
		done, now, err := look(ctx)
		switch {
		case err == nil && done:
			return nil
		case err != nil && ctx.Err() == nil:
			saw = err.Error()
		case err == nil:
			saw = now
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %s for %s: %s", within, what, saw)
		case err := <-r.Cluster.Failed():
			return fmt.Errorf("while waiting for %s: %w", what, err)
		case <-time.After(poll):
		}
	}
}

// Requests counts the API requests that Joiner has made so far, by verb and resource; Options.Audit must be set.
func (r *Rig) Requests() (cluster.Requests, error) {
	return cluster.CountRequests(r.Cluster.AuditLog(), func(e cluster.Event) bool { return e.User == User })
}
