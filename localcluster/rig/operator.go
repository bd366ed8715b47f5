package rig

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/joiner-autoscaler/joiner/api/crd"
	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
)

const (
	// OperatorUser is joiner-operator's user name in a hosted cluster, from a client certificate.
	OperatorUser = "system:hosted-cluster-config"
	// OperatorAccount is its service account in the management cluster, and the name of its program.
	OperatorAccount = "joiner-operator"
	// operatorTokenSeconds is how long its token is valid: longer than any rig runs.
	operatorTokenSeconds = 24 * 60 * 60
)

// StartManagement starts a management cluster: etcd and kube-apiserver alone, where AutoNodePolicies live. The caller
// must call Stop. After an error nothing is left behind.
func StartManagement(ctx context.Context, options Options) (*Rig, error) {
	options.Components = []cluster.Component{cluster.Etcd, cluster.APIServer}
	options.WithoutJoiner, options.WithoutManifests = true, true
	r, err := Start(ctx, options)
	if err != nil {
		return nil, err
	}
	manifests, err := joined(crd.Management)
	if err == nil {
		err = r.install(ctx, manifests)
	}
	if err != nil {
		return nil, errors.Join(err, r.Stop())
	}
	return r, nil
}

// InstallHostedControlPlane creates the namespace of a hosted control plane in a management cluster, with the
// operator's service account and the Role of its chart (R41). It returns the path of the account's kubeconfig, which
// has a token and no certificate.
func (r *Rig) InstallHostedControlPlane(ctx context.Context, namespace string) (kubeconfig string, err error) {
	rules, err := charts.ManagementRules()
	if err != nil {
		return "", err
	}
	manifests := strings.NewReplacer("NAMESPACE", namespace, "ACCOUNT", OperatorAccount, "RULES",
		string(rules)).Replace(managementRights)
	if err := r.Apply(ctx, manifests); err != nil {
		return "", fmt.Errorf("installing the operator's rights in the management cluster: %w", err)
	}
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(operatorTokenSeconds))},
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: OperatorAccount}}
	if err := r.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("asking for the operator's token: %w", err)
	}
	config, err := clientcmd.LoadFromFile(r.Cluster.AdminKubeconfig())
	if err != nil {
		return "", err
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: request.Status.Token}
	}
	kubeconfig = filepath.Join(filepath.Dir(r.Cluster.AdminKubeconfig()), namespace+"-"+OperatorAccount+".kubeconfig")
	return kubeconfig, clientcmd.WriteToFile(*config, kubeconfig)
}

// InstallHosted turns a cluster with our CRDs into a hosted one: it adds the kinds that its users write, and the
// rights of the operator's chart for OperatorUser.
func (r *Rig) InstallHosted(ctx context.Context) error {
	return r.InstallHostedFor(ctx, charts.Full()...)
}

// InstallHostedFor is InstallHosted with the rights of an operator that owns these parts of the cluster. It may be
// called again with other parts.
func (r *Rig) InstallHostedFor(ctx context.Context, own ...string) error {
	manifests, err := joined(crd.Guest)
	if err != nil {
		return err
	}
	rules, err := charts.GuestRules(own...)
	if err != nil {
		return err
	}
	rights := strings.NewReplacer("ACCOUNT", OperatorAccount, "USER", OperatorUser, "RULES",
		string(rules)).Replace(hostedRights)
	return r.install(ctx, manifests+rights)
}

// OperatorProgram returns joiner-operator between two clusters. In the hosted cluster it runs as OperatorUser. In the
// management cluster it uses the namespace of the control plane, and the kubeconfig of InstallHostedControlPlane. args
// are further flags.
func OperatorProgram(path, management, namespace string, args ...string) Program {
	return Program{
		// The groups are those of HyperShift's certificate.
		Name: OperatorAccount, User: OperatorUser, Groups: []string{"kubernetes", "system:serviceaccounts:openshift"},
		Path: path, Command: func(at Place) ([]string, []string) {
			return append([]string{
				"--guest-kubeconfig", at.Kubeconfig, "--guest-user-name", OperatorUser,
				"--management-kubeconfig", management, "--namespace", namespace,
				"--metrics-bind-address", fmt.Sprintf("127.0.0.1:%d", at.MetricsPort),
				"--health-probe-bind-address", fmt.Sprintf("127.0.0.1:%d", at.HealthPort),
			}, args...), nil
		},
	}
}

const managementRights = `---
apiVersion: v1
kind: Namespace
metadata: {name: NAMESPACE}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: ACCOUNT, namespace: NAMESPACE}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: ACCOUNT, namespace: NAMESPACE}
rules:
RULES
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: ACCOUNT, namespace: NAMESPACE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: ACCOUNT}
subjects: [{kind: ServiceAccount, name: ACCOUNT, namespace: NAMESPACE}]
`

const hostedRights = `---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ACCOUNT}
rules:
RULES
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ACCOUNT}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ACCOUNT}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "USER"}]
`
