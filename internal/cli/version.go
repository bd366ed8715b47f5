package cli

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/joiner-autoscaler/joiner/internal/convert"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// versions are what runs together (U-28).
type versions struct {
	typed
	Client clientVersion `json:"client"`
	// Kubernetes is the API server's; Controller is who leads. Both are missing without a cluster.
	Kubernetes  string              `json:"kubernetes,omitempty"`
	Controller  *whatif.Controller  `json:"controller,omitempty"`
	Definitions []definitionVersion `json:"definitions,omitempty"`
	// Findings are what does not go together, Notes what could not be found out.
	Findings []string `json:"findings,omitempty"`
	Notes    []string `json:"notes,omitempty"`
}

type clientVersion struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// definitionVersion is which versions of a kind a cluster serves, and may have stored.
type definitionVersion struct {
	Name   string   `json:"name"`
	Served []string `json:"served"`
	Stored []string `json:"stored"`
}

func version(config Config) *cobra.Command {
	var clientOnly bool
	where := place{}
	var connection *Connection
	var printing *printing
	command := &cobra.Command{
		Use: "version", Short: "Print the versions of this program, the cluster, the controller and its definitions",
		Args: cobra.NoArgs,
		Long: `Print the version of this program. From the cluster it adds those of Kubernetes and of the
controller that leads, and the versions of our kinds that are served and may be stored. It reports
which of these do not fit together. Without a cluster it prints only its own version.

Exit code: 0 they fit together, or there is no cluster to ask; 1 they do not; 2 the call was
wrong.`,
		Example: "  joinerctl version\n  joinerctl version --client -o jsonpath={.client.version}",
		RunE: func(command *cobra.Command, _ []string) error {
			printer, err := printing.printer(config)
			if err != nil {
				return err
			}
			answer := versions{typed: ofKind("Version"), Client: ownVersion(debug.ReadBuildInfo())}
			if !clientOnly {
				answer.ask(command.Context(), config, connection, where)
			}
			return report(config.Out, printer, answer, "")
		},
	}
	command.Flags().BoolVar(&clientOnly, "client", false, "ask no cluster; print only the version of this program")
	where.flags(command)
	connection, printing = connects(command), prints(command)
	return command
}

// ownVersion returns what the build knows about itself.
func ownVersion(info *debug.BuildInfo, known bool) clientVersion {
	v := clientVersion{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if !known {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			v.Revision = setting.Value
		}
	}
	return v
}

// ask asks the cluster. What it does not answer becomes a note: users often ask for versions because something is
// broken.
func (v *versions) ask(ctx context.Context, config Config, connection *Connection, where place) {
	note := func(err error) {
		first, _, _ := strings.Cut(unanswered(err).Error(), "\n")
		v.Notes = append(v.Notes, first)
	}
	client, err := config.Client(*connection)
	if err != nil {
		note(err)
		return
	}
	if config.Clientset != nil {
		clients, err := config.Clientset(*connection)
		if err == nil {
			if info, asked := clients.Discovery().ServerVersion(); asked == nil {
				v.Kubernetes = info.GitVersion
			} else {
				err = asked
			}
		}
		if err != nil {
			note(err)
			return
		}
	}
	in := whatif.Surroundings{LeaseName: where.lease}
	if in.Leases, err = leasesOf(ctx, client, where); err != nil {
		note(err)
	}
	if leading, _ := in.Controllers(podOf(ctx, client), false, time.Now()); len(leading) > 0 {
		v.Controller = &leading[0]
	} else if err == nil {
		v.Notes = append(v.Notes, "nobody leads: no controller is asked for its version")
	}
	v.define(ctx, client, note)
}

// define reads which versions of our kinds the cluster has.
func (v *versions) define(ctx context.Context, client dynamic.Interface, note func(error)) {
	for _, resource := range converted() {
		name := resource.GroupResource().String()
		definition, err := client.Resource(definitions()).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			note(fmt.Errorf("reading the CRD %s: %w", name, err))
			return
		}
		d := definitionVersion{Name: name, Served: []string{}}
		for _, version := range versionsOf(definition) {
			if text, is := version["name"].(string); is && version["served"] == true {
				d.Served = append(d.Served, text)
			}
		}
		d.Stored, _, _ = unstructured.NestedStringSlice(definition.Object, "status", "storedVersions")
		v.Definitions = append(v.Definitions, d)
		if !slices.Contains(d.Served, convert.V1) {
			v.Findings = append(v.Findings,
				fmt.Sprintf("the CRD %s does not serve %s, which Joiner and joinerctl read: apply Joiner's CRDs",
					name, convert.V1))
		}
		if slices.Contains(d.Stored, convert.V1beta1) && !slices.Contains(d.Served, convert.V1beta1) {
			v.Findings = append(v.Findings,
				fmt.Sprintf("objects of %s may be stored in %s, which is not served: joinerctl migrate storage",
					name, convert.V1beta1))
		}
	}
	if len(v.Definitions) == 0 {
		v.Notes = append(v.Notes, "the cluster has no CRDs of Joiner or Karpenter")
	}
}

// Clean reports whether the versions are compatible.
func (v versions) Clean() bool { return len(v.Findings) == 0 }

// Names returns the definitions that do not fit this program.
func (v versions) Names() []string {
	var names whatif.Names
	for _, d := range v.Definitions {
		if slices.ContainsFunc(v.Findings, func(text string) bool { return strings.Contains(text, " "+d.Name+" ") }) {
			names.Add("CustomResourceDefinition", "", d.Name)
		}
	}
	return names.List()
}

// WriteText writes it for people.
func (v versions) WriteText(out io.Writer) error {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	own := v.Client.Version
	if v.Client.Revision != "" {
		own += " at " + v.Client.Revision
	}
	fmt.Fprintf(table, "joinerctl\t%s (%s, %s)\n", own, v.Client.Go, v.Client.Platform)
	if v.Kubernetes != "" {
		fmt.Fprintf(table, "Kubernetes\t%s\n", v.Kubernetes)
	}
	if c := v.Controller; c != nil {
		program, of := c.Program, c.Version
		if program == "" {
			program = "controller"
		}
		if of == "" {
			of = "version not known"
		}
		fmt.Fprintf(table, "%s\t%s (leader %s)\n", program, of, c.Leader)
	}
	for _, d := range v.Definitions {
		fmt.Fprintf(table, "%s\tserved %s; stored %s\n", d.Name, strings.Join(d.Served, ", "),
			strings.Join(d.Stored, ", "))
	}
	table.Flush() //nolint:errcheck // into a strings.Builder
	for _, text := range v.Findings {
		fmt.Fprintf(&b, "does not go together: %s\n", text)
	}
	for _, text := range v.Notes {
		fmt.Fprintf(&b, "note: %s\n", text)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
