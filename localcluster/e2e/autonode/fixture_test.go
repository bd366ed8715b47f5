package autonode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
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
	account      = "joiner-operator"
	operatorUser = "system:hosted-cluster-config"
	tokenSeconds = 24 * 60 * 60
)

// operatorGroups are the groups of the certificate that HyperShift issues to operatorUser.
func operatorGroups() []string { return []string{"kubernetes", "system:serviceaccounts:openshift"} }

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
	userData    string        // path of what nodes start with
	operator    *rig.Controller
	flags       []string // of the running operator, beyond those of every one
}

// fixtureFromEnv starts both control planes, installs what they need and prepares the identities. The operator is
// started by the first test.
func fixtureFromEnv() (*fixture, error) {
	controlPlane, err := cluster.BinaryFromEnv()
	if err != nil {
		return nil, err
	}
	binary := os.Getenv(operatorEnv)
	if binary == "" {
		return nil, fmt.Errorf("%s is not set: run `make bin/joiner-operator` and set it to the absolute path of that file", operatorEnv)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	f := &fixture{binary: binary, namespace: hcp}
	if f.mgmt, err = startBare(ctx, controlPlane); err != nil {
		return nil, err
	}
	if f.guest, err = startBare(ctx, controlPlane); err != nil {
		return nil, errors.Join(err, f.stop())
	}
	if err := f.prepare(ctx); err != nil {
		return nil, errors.Join(err, f.stop())
	}
	started <- f
	return f, nil
}

// prepare installs what both control planes need, and makes the users.
func (f *fixture) prepare(ctx context.Context) error {
	for _, step := range []func(context.Context) error{f.identities, f.install, f.token} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startBare starts a control plane without controllers, with an audit log and its admin's client.
func startBare(ctx context.Context, binary string) (*rig.Rig, error) {
	running, err := cluster.Start(ctx, cluster.Options{
		Binary: binary, Audit: true, Components: []cluster.Component{cluster.Etcd, cluster.APIServer},
	})
	if err != nil {
		return nil, err
	}
	r := &rig.Rig{Cluster: running}
	if r.Client, err = clientOf(running, "admin"); err != nil {
		return nil, errors.Join(err, running.Stop())
	}
	return r, nil
}

func (f *fixture) stop() error {
	var failed []error
	if f.operator != nil {
		failed = append(failed, f.operator.Stop())
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
		{f.guest, cluster.Identity{Name: "system-admin", User: "system:admin", Groups: []string{masters}}, &f.systemAdmin},
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

// token writes the operator's kubeconfig for the management cluster: the server of the cluster and the token of the
// service account, no certificate. Beside it lies the user data.
func (f *fixture) token(ctx context.Context) error {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr(int64(tokenSeconds))}}
	who := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: account}}
	if err := f.sre.SubResource("token").Create(ctx, who, request); err != nil {
		return fmt.Errorf("asking for the operator's token: %w", err)
	}
	config, err := clientcmd.LoadFromFile(f.mgmt.Cluster.AdminKubeconfig())
	if err != nil {
		return err
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	}
	f.kubeconfig = filepath.Join(f.mgmt.Cluster.Dir(), "kubeconfig", f.namespace+"-token.kubeconfig")
	f.userData = filepath.Join(f.mgmt.Cluster.Dir(), "kubeconfig", f.namespace+"-user-data")
	return errors.Join(clientcmd.WriteToFile(*config, f.kubeconfig), os.WriteFile(f.userData, []byte("{}"), 0o600))
}

func ptr[T any](value T) *T { return &value }
