// Command controlplane is a whole Kubernetes control plane in one executable.
//
// One binary holds etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler, KWOK's controllers (fake kubelets) and kubectl. Which one
// runs is decided by the name it was started with (a symbolic link called
// kube-apiserver, for example) or, otherwise, by the first argument:
//
//	controlplane kube-scheduler --kubeconfig=...
//
// They are linked together because they share most of their code: one binary
// builds in a fraction of the time, and takes a fraction of the disk, of six.
// A process still runs one component only, so that each can crash, be
// restarted and be measured by itself. Package cluster starts them together.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	cmapp "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	schedapp "k8s.io/kubernetes/cmd/kube-scheduler/app"

	// The upstream commands link these into their own main packages: the JSON
	// log format, and client-go and version metrics.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

// exitUsage is the exit code for a call without a known component.
const exitUsage = 2

// component is one program within the binary. run returns its exit code;
// args[0] is the component's name.
type component struct {
	name string
	run  func(args []string) int
}

// components lists the programs in the order in which a cluster starts them.
func components() []component {
	return []component{
		{"etcd", func(args []string) int { etcdmain.Main(args); return 0 }},
		{"kube-apiserver", func([]string) int { return runAPIServer() }},
		{"kube-controller-manager", func([]string) int { return cli.Run(cmapp.NewControllerManagerCommand()) }},
		{"kube-scheduler", func([]string) int { return cli.Run(schedapp.NewSchedulerCommand()) }},
		{"kwok", func([]string) int { return cli.Run(newKWOKCommand()) }},
		{"kubectl", func([]string) int { return runKubectl() }},
	}
}

func main() {
	component, args, ok := choose(os.Args)
	if !ok {
		printUsage(os.Stderr, os.Args)
		os.Exit(exitUsage)
	}
	// Every component reads os.Args by itself, and kubectl also prints its
	// first element in its help, so the choice must not be visible there.
	os.Args = args
	os.Exit(component.run(args))
}

// choose finds the component that argv asks for, by its first element's base
// name or by its second element, and returns the component with its own argv.
func choose(argv []string) (component, []string, bool) {
	for shift := 0; shift < 2 && shift < len(argv); shift++ {
		name := filepath.Base(argv[shift])
		if shift == 1 {
			name = argv[shift] // An argument is a name, never a path.
		}
		for _, c := range components() {
			if c.name == name {
				return c, append([]string{c.name}, argv[shift+1:]...), true
			}
		}
	}
	return component{}, nil, false
}

// printUsage says which components exist and, if there was one, which word was
// not understood.
func printUsage(w io.Writer, argv []string) {
	names := make([]string, 0, len(components()))
	for _, c := range components() {
		names = append(names, c.name)
	}
	if len(argv) > 1 {
		fmt.Fprintf(w, "controlplane: unknown component %q\n", argv[1])
	}
	fmt.Fprintf(w, "usage: controlplane %s [flags]\n", strings.Join(names, "|"))
}
