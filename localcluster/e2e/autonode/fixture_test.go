package autonode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

const (
	// operatorEnv is the environment variable in which tests expect the path of the built joiner-operator binary.
	operatorEnv = "JOINER_OPERATOR_BINARY"
	// hcp is the namespace of our hosted control plane on the management cluster, otherHCP that of another one.
	hcp      = "hcp-a"
	otherHCP = "hcp-b"
	// account is the operator's service account there, and operatorUser its name in the guest, from a certificate.
	account      = rig.OperatorAccount
	operatorUser = rig.OperatorUser
)

// fixture is a hosted cluster: the two control planes, who uses them, and the operator between them.
type fixture struct {
	mgmt, guest *rig.Rig // their Client is the cluster's own admin
	namespace   string   // of the hosted control plane on the management cluster
	sre         client.Client
	cadmin      client.Client // the customer: cluster-admin of the guest by system:masters
	systemAdmin client.Client // system:admin, by which a Karpenter of the provider may be known
	exempt      client.Client // operatorUser itself
	binary      string        // of the operator
	kubeconfig  string        // of the operator on the management cluster: a token
	userData    string        // path of the nodes' user data
	operator    *rig.Controller
	flags       []string // of the running operator, beyond those of every operator
}

// newFixture starts both control planes, installs what they need and prepares the identities. The operator is
// started by the first test.
func newFixture(ctx context.Context) (*fixture, error) {
	controlPlane, err := cluster.BinaryFromEnv()
	if err != nil {
		return nil, err
	}
	binary := os.Getenv(operatorEnv)
	if binary == "" {
		return nil, fmt.Errorf(
			"%s is not set: run `make bin/joiner-operator` and set it to the absolute path of that file", operatorEnv)
	}
	f := &fixture{binary: binary, namespace: hcp}
	options := rig.Options{ControlPlane: controlPlane, Audit: true}
	if f.mgmt, err = rig.StartManagement(ctx, options); err != nil {
		return nil, err
	}
	options.Components = []cluster.Component{cluster.Etcd, cluster.APIServer}
	options.WithoutJoiner, options.WithoutManifests = true, true
	if f.guest, err = rig.Start(ctx, options); err != nil {
		return nil, errors.Join(err, f.stop())
	}
	if err := f.prepare(ctx); err != nil {
		return nil, errors.Join(err, f.stop())
	}
	return f, nil
}

// prepare installs what both control planes need, and makes the users.
func (f *fixture) prepare(ctx context.Context) error {
	for _, step := range []func(context.Context) error{f.identities, f.install, f.bootstrapData} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (f *fixture) stop() error {
	var failed []error
	if f.operator != nil {
		failed = append(failed, f.operator.Stop(), f.rightsAreNeeded()) // a watch is in the log when it ends
	}
	for _, r := range []*rig.Rig{f.guest, f.mgmt} {
		if r != nil {
			failed = append(failed, r.Cluster.Stop())
		}
	}
	return errors.Join(failed...)
}

// identities mints the users of both clusters.
func (f *fixture) identities(context.Context) error {
	const masters = "system:masters"
	for _, user := range []struct {
		of   *rig.Rig
		id   cluster.Identity
		into *client.Client
	}{
		{f.mgmt, cluster.Identity{Name: "sre", Groups: []string{masters}}, &f.sre},
		{f.guest, cluster.Identity{Name: "cadmin", Groups: []string{masters}}, &f.cadmin},
		{f.guest, cluster.Identity{Name: "system-admin", User: "system:admin", Groups: []string{masters}},
			&f.systemAdmin},
		{f.guest, cluster.Identity{Name: "exempt", User: operatorUser, Groups: []string{masters}}, &f.exempt},
	} {
		if _, err := user.of.Cluster.KubeconfigFor(user.id); err != nil {
			return err
		}
		made, err := clientOf(user.of.Cluster, user.id.Name)
		if err != nil {
			return err
		}
		*user.into = made
	}
	return nil
}

// clientOf returns a client that reads the API server, not a cache.
func clientOf(c *cluster.Cluster, identity string) (client.WithWatch, error) {
	config, err := c.RESTConfig(identity)
	if err != nil {
		return nil, err
	}
	config.WarningHandler = rest.NoWarnings{} // Warnings that matter are looked at by name.
	return client.NewWithWatch(config, client.Options{})
}

// bootstrapData writes the nodes' user data, beside the operator's kubeconfig.
func (f *fixture) bootstrapData(context.Context) error {
	f.userData = filepath.Join(filepath.Dir(f.kubeconfig), f.namespace+"-user-data")
	return os.WriteFile(f.userData, []byte("{}"), 0o600)
}
