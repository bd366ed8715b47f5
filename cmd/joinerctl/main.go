// Command joinerctl inspects and operates a cluster that runs Joiner. Its commands are in package cli; joinerctl
// --help lists them.
//
// It exits with 0 when all is well, with 1 when it found something to do, with 2 when it could not do its work, and
// with 130 when it was interrupted.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/joiner-autoscaler/joiner/cmd/internal/commandline"
	"github.com/joiner-autoscaler/joiner/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	called, args := calledAs(os.Args[0], os.Args[1:])
	code := run(ctx, called, args, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// calledAs returns how the user calls the program, from the name of its file, and the arguments to run. kubectl finds
// it as a plugin under the name kubectl-joiner, and asks it for completions under the name kubectl_complete-joiner
// (U-28).
func calledAs(file string, args []string) (called string, do []string) {
	switch strings.TrimSuffix(filepath.Base(file), ".exe") {
	case "kubectl-joiner":
		return "kubectl joiner", args
	case "kubectl_complete-joiner":
		return "kubectl joiner", append([]string{cobra.ShellCompRequestCmd}, args...)
	}
	return "", args
}

// run is main with everything that it uses as arguments. It returns the exit code.
func run(ctx context.Context, called string, args []string, in io.Reader, out, failures io.Writer) int {
	return cli.Run(ctx, cli.Config{Client: client, Clientset: clientset, Namespace: namespace, Forward: forward,
		Open: open, Beside: func(do func()) { go do() }, In: in, Out: out,
		Err: failures, Called: called,
		InTerminal: terminal(in), OutTerminal: terminal(out),
		Plain: os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb",
		Dumb:  os.Getenv("TERM") == "dumb"}, args)
}

// terminal reports whether a stream is a terminal.
func terminal(stream any) bool {
	file, is := stream.(*os.File)
	return is && term.IsTerminal(int(file.Fd()))
}

// Requests per second, and burst. A command has one user, and a migration reads and writes each object.
const (
	queries = 50
	burst   = 100
)

// patience bounds the time to connect to a server, so that a command soon reports a missing cluster.
const patience = 10 * time.Second

func client(c cli.Connection) (dynamic.Interface, error) {
	return connect(c, func(c *rest.Config) (dynamic.Interface, error) { return dynamic.NewForConfig(c) })
}

func clientset(c cli.Connection) (kubernetes.Interface, error) {
	return connect(c, func(c *rest.Config) (kubernetes.Interface, error) {
		c.ContentType, c.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+
			runtime.ContentTypeJSON
		return kubernetes.NewForConfig(c)
	})
}

// namespace returns the namespace of the context; "" if it cannot be read, since connecting reports why.
func namespace(c cli.Connection) string {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.Kubeconfig
	name, _, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &c.Overrides).Namespace()
	if err != nil {
		return ""
	}
	return name
}

func connect[T any](c cli.Connection, to func(*rest.Config) (T, error)) (T, error) {
	var none T
	config, err := commandline.LoadRESTWith("kubeconfig", c.Kubeconfig, &c.Overrides)
	if err != nil {
		return none, err
	}
	config.QPS, config.Burst, config.UserAgent = queries, burst, "joinerctl"
	if config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: patience}).DialContext
	}
	connected, err := to(config)
	if err != nil {
		return none, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return connected, nil
}
