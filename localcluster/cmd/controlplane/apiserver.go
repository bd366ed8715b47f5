package main

import (
	"github.com/spf13/cobra"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// newAPIServerCommand returns the kube-apiserver command as upstream builds it.
func newAPIServerCommand() *cobra.Command {
	return app.NewAPIServerCommand()
}
