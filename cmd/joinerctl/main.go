// Command joinerctl looks after a cluster with Joiner. Its commands are in package cli; joinerctl --help lists them.
//
// It exits with 0 when all is well, with 1 when it found something to do, and with 2 when it could not do its work.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline"
	"github.com/joiner-autoscaler/joiner/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main with everything it touches as an argument, and returns the exit code.
func run(ctx context.Context, args []string, in io.Reader, out, failures io.Writer) int {
	return cli.Run(ctx, cli.Config{Client: client, Clientset: clientset, In: in, Out: out, Err: failures}, args)
}

// Requests per second, and at once: a command is one user's, and a migration reads and writes each object.
const (
	queries = 50
	burst   = 100
)

func client(kubeconfig string) (dynamic.Interface, error) {
	return connect(kubeconfig, func(c *rest.Config) (dynamic.Interface, error) { return dynamic.NewForConfig(c) })
}

func clientset(kubeconfig string) (kubernetes.Interface, error) {
	return connect(kubeconfig, func(c *rest.Config) (kubernetes.Interface, error) {
		c.ContentType, c.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
		return kubernetes.NewForConfig(c)
	})
}

func connect[T any](kubeconfig string, to func(*rest.Config) (T, error)) (T, error) {
	var none T
	config, err := commandline.LoadREST("kubeconfig", kubeconfig)
	if err != nil {
		return none, err
	}
	config.QPS, config.Burst = queries, burst
	connected, err := to(config)
	if err != nil {
		return none, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return connected, nil
}
