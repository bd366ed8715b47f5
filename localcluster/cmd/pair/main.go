// Command pair starts two control planes, runs a command, and removes both. One is a management cluster with the kind
// AutoNodePolicy. The other is a hosted cluster with the kinds that its users and Karpenter write. The command gets
// kubeconfigs: MANAGEMENT_KUBECONFIG is a service account with the rights of the operator's chart in the namespace
// hcp-a, ADMIN_KUBECONFIG the management cluster's admin, GUEST_KUBECONFIG the hosted cluster's admin.
//
//	pair --controlplane PATH COMMAND ARGUMENT...
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"

	"github.com/joiner-autoscaler/joiner/api/crd"
	"github.com/joiner-autoscaler/joiner/localcluster/cluster"
	"github.com/joiner-autoscaler/joiner/localcluster/rig"
)

// namespace is that of the hosted control plane.
const namespace = "hcp-a"

func main() {
	controlPlane := flag.String("controlplane", "", "path of the built control plane")
	flag.Parse()
	if flag.NArg() == 0 || *controlPlane == "" {
		fmt.Fprintln(os.Stderr, "usage: pair --controlplane PATH COMMAND ARGUMENT...")
		os.Exit(2)
	}
	if err := run(context.Background(), *controlPlane, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "pair:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, controlPlane string, arguments []string) (err error) {
	management, err := rig.StartManagement(ctx, rig.Options{ControlPlane: controlPlane})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, management.Cluster.Stop()) }()
	guest, err := rig.Start(ctx, rig.Options{
		ControlPlane: controlPlane, Components: []cluster.Component{cluster.Etcd, cluster.APIServer},
		WithoutJoiner: true,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, guest.Cluster.Stop()) }()
	manifests, err := crd.Guest()
	if err != nil {
		return err
	}
	for _, manifest := range manifests {
		if err := guest.Apply(ctx, string(manifest)); err != nil {
			return err
		}
	}
	environment := os.Environ()
	account, err := management.InstallHostedControlPlane(ctx, namespace)
	if err != nil {
		return err
	}
	environment = append(environment, "MANAGEMENT_KUBECONFIG="+account)
	for name, of := range map[string]*cluster.Cluster{"ADMIN_KUBECONFIG": management.Cluster,
		"GUEST_KUBECONFIG": guest.Cluster} {
		path, err := of.Kubeconfig("consumer", "system:masters")
		if err != nil {
			return err
		}
		environment = append(environment, name+"="+path)
	}
	command := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	command.Env, command.Stdout, command.Stderr = environment, os.Stdout, os.Stderr
	return command.Run()
}
