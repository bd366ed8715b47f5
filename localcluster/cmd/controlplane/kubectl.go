package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"

	// Kubeconfigs may name an authentication plugin.
	_ "k8s.io/client-go/plugin/pkg/client/auth"
)

// runKubectl runs the real kubectl with os.Args, so that demos and tests print
// the columns that a user sees.
func runKubectl() int {
	// kubectl logs while it is being built, before cobra parses the flags; a
	// verbosity that cannot be read is reported by that later parse.
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err) // Prints as kubectl does and exits.
		return 1
	}
	return 0
}
