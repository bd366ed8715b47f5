package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// Connection says which cluster is asked, and as whom: kubectl's flags (U-13).
type Connection struct {
	// Kubeconfig is a path; "" means what the environment says.
	Kubeconfig string
	Overrides  clientcmd.ConfigOverrides

	// timeout bounds the whole command; 0 bounds nothing. stop gives its clock back.
	timeout time.Duration
	stop    context.CancelFunc
}

// flagTimeout bounds a whole command.
const flagTimeout = "timeout"

// errTimeout is why a command gave up; it says so for whoever asks the context.
type errTimeout struct{ after time.Duration }

func (e errTimeout) Error() string {
	return fmt.Sprintf("gave up after %s (--timeout): nothing is known that was not printed", e.after)
}

// The groups that flags stand in below a command's own, in this order.
const (
	groupConnection = "Which cluster, and as whom"
	groupOutput     = "What is printed"
	groupKey        = "group"
)

// connects gives a command the flags of a connection.
func connects(command *cobra.Command) *Connection {
	c := &Connection{}
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.StringVar(&c.Kubeconfig, "kubeconfig", "",
		"path of the kubeconfig; without it $KUBECONFIG, then ~/.kube/config")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.Namespace = clientcmd.FlagInfo{} // commands that have one say what it is for
	names.AuthOverrideFlags.Username, names.AuthOverrideFlags.Password = clientcmd.FlagInfo{}, clientcmd.FlagInfo{}
	clientcmd.BindOverrideFlags(&c.Overrides, own, names)
	own.DurationVar(&c.timeout, flagTimeout, 0, "give up after this long, such as 30s; 0 waits as long as it takes")
	command.PreRunE = func(command *cobra.Command, _ []string) error {
		if c.timeout < 0 {
			return fmt.Errorf("--timeout is %s: it must not be negative", c.timeout)
		}
		if c.timeout > 0 {
			ctx, stop := context.WithTimeoutCause(command.Context(), c.timeout, errTimeout{c.timeout})
			command.SetContext(ctx)
			c.stop = stop
		}
		return nil
	}
	command.PostRun = func(*cobra.Command, []string) {
		if c.stop != nil {
			c.stop()
		}
	}
	addGroup(command, groupConnection, own)
	return c
}

// named returns the first flag that names a cluster, "" when none does.
func (c *Connection) named() string {
	for _, flag := range []struct{ name, value string }{
		{"kubeconfig", c.Kubeconfig}, {"context", c.Overrides.CurrentContext}, {"cluster", c.Overrides.Context.Cluster},
		{"server", c.Overrides.ClusterInfo.Server},
	} {
		if flag.value != "" {
			return flag.name
		}
	}
	return ""
}

// addGroup adds flags to a command that its help shows together.
func addGroup(command *cobra.Command, group string, flags *pflag.FlagSet) {
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Annotations == nil {
			flag.Annotations = map[string][]string{}
		}
		flag.Annotations[groupKey] = []string{group}
	})
	command.Flags().AddFlagSet(flags)
}

// Clients are a cluster's.
type clients struct {
	dynamic dynamic.Interface
	typed   kubernetes.Interface
}

// both returns both clients of a cluster.
func (c Config) both(to *Connection) (clients, error) {
	dynamic, err := c.Client(*to)
	if err != nil {
		return clients{}, err
	}
	typed, err := c.Clientset(*to)
	return clients{dynamic: dynamic, typed: typed}, err
}

// namespace is that of what is named without one: as kubectl has it, or default in files.
func (c Config) namespace(connection *Connection, files []string) string {
	if c.Namespace == nil || len(files) > 0 {
		return metav1.NamespaceDefault
	}
	return cmp.Or(c.Namespace(*connection), metav1.NamespaceDefault)
}

// confirm asks whoever is at the terminal; without one it is an error, which names the flag that answers (U-07).
func (c Config) confirm(what string) error {
	if !c.InTerminal {
		return fmt.Errorf("it is to %s, and nobody is there to ask: give --yes, or --dry-run to see what it would do",
			what)
	}
	fmt.Fprintf(c.Err, "%s? Type yes to go on: ", strings.ToUpper(what[:1])+what[1:])
	line, err := bufio.NewReader(c.In).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer == "yes" || answer == "y" {
		return nil
	}
	if err != nil {
		fmt.Fprintln(c.Err)
	}
	return errors.New("nothing was written")
}

// unanswered says in one line that a cluster does not answer, where that is what an error comes to; else it is the
// error.
func unanswered(err error) error {
	var request *url.Error
	var dialled *net.OpError
	var slow net.Error
	if !errors.As(err, &request) || errors.Is(err, context.Canceled) ||
		!errors.As(request.Err, &dialled) && !(errors.As(request.Err, &slow) && slow.Timeout()) {
		return err
	}
	server := request.URL
	if parsed, bad := url.Parse(request.URL); bad == nil {
		server = parsed.Scheme + "://" + parsed.Host
	}
	why := strings.Join(strings.Fields(request.Err.Error()), " ")
	return fmt.Errorf("no cluster: the server %s does not answer (%s)\ncheck the network and the kubeconfig, "+
		"or plan from files: joinerctl simulate -f DIR", server, why)
}
