package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/joiner-autoscaler/joiner/internal/cli/printer"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// Where a controller with the usual flags keeps its lease and the switch that pauses disruption.
const (
	usualLease     = "karpenter-leader-election"
	usualNamespace = metav1.NamespaceSystem
)

// place is where a controller keeps what it owns.
type place struct{ namespace, lease string }

func (p *place) flags(command *cobra.Command) {
	command.Flags().StringVar(&p.namespace, "system-namespace", "",
		"namespace in which Joiner keeps its own objects; without it that of the lease, or "+usualNamespace)
	command.Flags().StringVar(&p.lease, "leader-election-name", usualLease, "name of the lease of the controller")
}

func leases() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}
}

func configMaps() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
}

// errPartial ends a command that found nothing, and could not look everywhere.
var errPartial = errors.New("nothing was found in what could be read, and not all could be read")

func status(config Config) *cobra.Command {
	with := &explainer{}
	var where place
	var in whatif.StatusInput
	var watch watching
	command := &cobra.Command{
		Use: "status", Short: "Show on one screen how the cluster stands, and what needs attention first",
		Args: cobra.NoArgs,
		Long: `Show on one screen who leads, whether disruption is paused, how each NodePool stands, which pods
wait and which nodes that are to go stay, by cause, and what to type next.

It reads the objects of the cluster and asks no controller: it works while none runs, and where Karpenter decides.
Nothing is ever written. It needs to list nodes, nodepools and nodeclaims; what else may not be read is named, and
left out.

Exit code: 0 nothing needs attention; 1 something does: nobody leads or more than one does, a NodePool is not ready, a
pod waits for longer than --pods-waiting and no node is on its way for it, a node is being removed for longer than
--draining; 2 it could not be said, or not all could be read and nothing was found in the rest.`,
		Example: "  joinerctl status\n  joinerctl status -f cluster.yaml\n" +
			"  joinerctl status -o jsonpath='{.attention[*].text}'",
		RunE: func(command *cobra.Command, _ []string) error {
			printer, err := with.printing.printer(config)
			if err != nil {
				return err
			}
			if in.PodsWaiting < 0 || in.Draining < 0 {
				return fmt.Errorf("--pods-waiting is %s and --draining is %s: neither may be negative", in.PodsWaiting,
					in.Draining)
			}
			once := func() error { return with.status(command.Context(), config, where, in, printer) }
			if !watch.on {
				return once()
			}
			return watch.repeat(command.Context(), config, with.files, printer, once)
		},
	}
	where.flags(command)
	command.Flags().BoolVarP(&watch.on, "watch", "w", false, "look again every --every, until it is interrupted")
	command.Flags().DurationVar(&watch.every, "every", 5*time.Second, "with --watch: how long to wait between two looks")
	command.Flags().DurationVar(&in.PodsWaiting, "pods-waiting", 5*time.Minute,
		"how long a pod may wait until it needs attention")
	command.Flags().DurationVar(&in.Draining, "draining", 30*time.Minute,
		"how long a node may take to go until it needs attention")
	command.Flags().StringArrayVarP(&with.files, "filename", "f", nil,
		"file or directory with manifests (.yaml, .yml, .json), or - for standard input, instead of a cluster; "+
			"may be repeated")
	command.Flags().StringVar(&with.catalogue, "catalogue", catalogueAuto,
		"instance types and prices: auto, aws, default, or a file (joinerctl simulate --help)")
	with.connection, with.printing = connects(command), prints(command)
	command.MarkFlagsMutuallyExclusive("filename", "kubeconfig")
	return command
}

// status looks once.
func (with *explainer) status(ctx context.Context, config Config, where place, in whatif.StatusInput,
	to *printer.Printer) error {
	documents, from, err := with.surroundings(ctx, config, where, &in)
	if err != nil {
		return err
	}
	world, offered, err := picture(documents, with.catalogue)
	if err != nil {
		return err
	}
	err = report(config.Out, to, world.Status(in), sources(world, from, offered))
	if err == nil && len(in.NotChecked) > 0 {
		return errPartial
	}
	return err
}

// watching is a command that looks again and again.
type watching struct {
	on    bool
	every time.Duration
}

// emptying empties a terminal.
const emptying = "\x1b[H\x1b[2J"

// repeat looks again until it is interrupted. What is found does not end it; that nothing can be read does.
func (w watching) repeat(ctx context.Context, config Config, files []string, to *printer.Printer,
	once func() error) error {
	switch {
	case w.every <= 0:
		return fmt.Errorf("--every is %s: it must be more than 0", w.every)
	case slices.Contains(files, "-"):
		return errors.New("--watch reads again and again, and standard input can be read once: leave out -f -")
	}
	for {
		if config.OutTerminal && to.ForPeople() {
			fmt.Fprint(config.Out, emptying)
		}
		if err := once(); err != nil && !errors.Is(err, errFindings) && !errors.Is(err, errPartial) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(w.every):
		}
	}
}

// surroundings reads the files, or the cluster, and puts aside what says who decides there.
func (with *explainer) surroundings(ctx context.Context, config Config, where place, in *whatif.StatusInput) (
	documents []whatif.Document, from string, err error) {
	in.Surroundings = whatif.Surroundings{LeaseName: where.lease, Live: len(with.files) == 0}
	if !in.Surroundings.Live {
		objects, err := readFiles(config.In, with.files)
		if err != nil {
			return nil, "", err
		}
		documents, err = setAside(fromFiles(objects), where, &in.Surroundings)
		return documents, "files", err
	}
	client, err := config.Client(*with.connection)
	if err != nil {
		return nil, "", err
	}
	if documents, in.NotChecked, err = readAll(ctx, client, statusResources()); err != nil {
		return nil, "", err
	}
	unread, err := readSurroundings(ctx, client, where, &in.Surroundings)
	in.NotChecked = append(in.NotChecked, unread...)
	return documents, "cluster", err
}

// statusResources are what a status is made of: it can do without pods, and not without NodeClaims.
func statusResources() []whatif.Resource {
	list := whatif.Resources()
	for i := range list {
		list[i].Required = slices.Contains([]string{"nodes", "nodepools", "nodeclaims"}, list[i].Resource)
	}
	return list
}

// setAside takes leases and the switch out of documents of files.
func setAside(documents []whatif.Document, where place, into *whatif.Surroundings) ([]whatif.Document, error) {
	var rest []whatif.Document
	for _, d := range documents {
		o := unstructured.Unstructured{Object: d.Content}
		var err error
		switch {
		case o.GetKind() == "Lease" && o.GetName() == where.lease:
			var lease coordinationv1.Lease
			err = understand(d.Content, &lease)
			into.Leases = append(into.Leases, lease)
		case o.GetKind() == "ConfigMap" && o.GetName() == translate.SwitchName:
			into.Switch = &corev1.ConfigMap{}
			err = understand(d.Content, into.Switch)
		default:
			rest = append(rest, d)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s %s: %w", d.Where, o.GetKind(), o.GetName(), err)
		}
	}
	return rest, nil
}

// readSurroundings reads leases and the switch of a cluster. unread says what may not be read.
func readSurroundings(ctx context.Context, client dynamic.Interface, where place,
	into *whatif.Surroundings) (unread []string,
	err error) {
	into.Leases, err = leasesOf(ctx, client, where)
	if apierrors.IsForbidden(err) {
		into.LeasesUnread = true
		unread, err = append(unread, "who leads, for want of the right to list leases.coordination.k8s.io"), nil
	}
	if err != nil {
		return nil, err
	}
	namespace := where.of(into.Leases)
	object, err := client.Resource(configMaps()).Namespace(namespace).Get(ctx, translate.SwitchName, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
		into.SwitchUnread = true
		return append(unread, fmt.Sprintf("whether disruption is paused, for want of the right to get ConfigMap %s/%s",
			namespace,
			translate.SwitchName)), nil
	case apierrors.IsNotFound(err):
		return unread, nil
	case err != nil:
		return nil, fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, translate.SwitchName, err)
	}
	into.Switch = &corev1.ConfigMap{}
	return unread, understand(object.Object, into.Switch)
}

// leasesOf lists the leases of controllers, in all namespaces.
func leasesOf(ctx context.Context, client dynamic.Interface, where place) ([]coordinationv1.Lease, error) {
	list, err := client.Resource(leases()).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + where.lease})
	if err != nil {
		return nil, fmt.Errorf("listing leases.coordination.k8s.io: %w", err)
	}
	var found []coordinationv1.Lease
	for _, item := range list.Items {
		var lease coordinationv1.Lease
		if err := understand(item.Object, &lease); err != nil {
			return nil, fmt.Errorf("reading Lease %s/%s: %w", item.GetNamespace(), item.GetName(), err)
		}
		if lease.Name == where.lease {
			found = append(found, lease)
		}
	}
	slices.SortFunc(found, func(a, b coordinationv1.Lease) int { return strings.Compare(a.Namespace, b.Namespace) })
	return found, nil
}

// understand reads an object into its type. A file's numbers are not those of an API client, so it goes by way of JSON.
func understand(content map[string]any, into any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

// of is the namespace of what a controller keeps, as far as its lease tells: that of the one that leads, or of the only
// one that there is.
func (p place) of(found []coordinationv1.Lease) string {
	if p.namespace != "" {
		return p.namespace
	}
	nobody := func(string, string) *corev1.Pod { return nil }
	leading, silent := whatif.Surroundings{Leases: found}.Controllers(nobody, false, time.Now())
	for _, list := range [][]whatif.Controller{leading, silent} {
		if len(list) == 1 {
			namespace, _, _ := strings.Cut(list[0].Lease, "/")
			return namespace
		}
		if len(list) > 1 {
			break
		}
	}
	return usualNamespace
}
