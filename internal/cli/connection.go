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

// Connection says which cluster to ask, and as whom, with kubectl's flags (U-13).
type Connection struct {
	// Kubeconfig is a path; "" means the environment's.
	Kubeconfig string
	Overrides  clientcmd.ConfigOverrides

	// timeout bounds the whole command; 0 is no bound. stop releases its timer.
	timeout time.Duration
	stop    context.CancelFunc
}

// flagTimeout bounds a whole command.
const flagTimeout = "timeout"

// errTimeout is the cause of a context that ended by --timeout.
type errTimeout struct{ after time.Duration }

func (e errTimeout) Error() string {
	return fmt.Sprintf("gave up after %s (--timeout): nothing is known that was not printed", e.after)
}

// Groups of flags that the help shows below a command's own flags, in this order.
const (
	groupConnection = "Which cluster, and as whom"
	groupOutput     = "What is printed"
	groupKey        = "group"
)

// connects adds the flags of a connection to a command.
func connects(command *cobra.Command) *Connection {
	c := &Connection{}
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.StringVar(&c.Kubeconfig, "kubeconfig", "",
		"path of the kubeconfig; the default is $KUBECONFIG, then ~/.kube/config")
	names := clientcmd.RecommendedConfigOverrideFlags("")
	names.ContextOverrideFlags.Namespace = clientcmd.FlagInfo{} // commands with this flag explain it themselves
	names.AuthOverrideFlags.Username, names.AuthOverrideFlags.Password = clientcmd.FlagInfo{}, clientcmd.FlagInfo{}
	clientcmd.BindOverrideFlags(&c.Overrides, own, names)
	own.DurationVar(&c.timeout, flagTimeout, 0, "give up after this long, such as 30s; 0 never gives up")
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

// named returns the first flag that names a cluster, "" when none is given.
func (c *Connection) named() string {
	for _, flag := range []struct{ name, value string }{
		{"kubeconfig", c.Kubeconfig}, {"context", c.Overrides.CurrentContext},
		{"cluster", c.Overrides.Context.Cluster}, {"server", c.Overrides.ClusterInfo.Server},
	} {
		if flag.value != "" {
			return flag.name
		}
	}
	return ""
}

// addGroup adds flags to a command that its help shows as a group.
func addGroup(command *cobra.Command, group string, flags *pflag.FlagSet) {
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Annotations == nil {
			flag.Annotations = map[string][]string{}
		}
		flag.Annotations[groupKey] = []string{group}
	})
	command.Flags().AddFlagSet(flags)
}

// clients are the clients of a cluster.
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

// namespace returns the namespace of objects named without one: that of the context, as in kubectl, or default in
// files.
func (c Config) namespace(connection *Connection, files []string) string {
	if c.Namespace == nil || len(files) > 0 {
		return metav1.NamespaceDefault
	}
	return cmp.Or(c.Namespace(*connection), metav1.NamespaceDefault)
}

// confirm asks the user at the terminal. Without a terminal it is an error, which names the flags that answer (U-07).
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

// unanswered returns a one-line error if err means that a cluster does not answer; otherwise it returns err.
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
