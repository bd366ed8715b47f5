package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

func explain(config Config) *cobra.Command {
	command := parent("explain",
		"Explain why a pod waits, a node stays or a pool launches nothing, and what to do", "")
	command.AddCommand(explainPod(config), explainNode(config), explainPool(config), explainClaim(config))
	for _, kind := range whatif.Workloads() {
		command.AddCommand(explainWorkload(config, kind))
	}
	return command
}

func explainPod(config Config) *cobra.Command {
	command, with := explaining("Explain why a pod waits, and what to do",
		`Explain why a pod waits: which pool is nearest to taking it, what to do, and what ends the wait by
itself.`,
		"0 the pod runs or a node takes it, 1 a cause holds it")
	command.Use, command.Aliases = "pod [NAMESPACE/]NAME", []string{"pods", "po"}
	command.Example = "  joinerctl explain pod shop/web-6d4cf-9k2\n  joinerctl explain pod -n shop web-0 -f manifests/"
	with.namespaceFlag(command)
	with.allFlag(command, "show the answer of every pool, not only the nearest")
	command.Flags().BoolVar(&with.try, "try", false,
		"show which single changes of the pod or of a pool's limit would place it: cheapest first, at most 5")
	command.ValidArgsFunction = completes(config, with.connection, corev1.SchemeGroupVersion.WithResource("pods"))
	command.RunE = func(command *cobra.Command, args []string) error {
		pod, err := with.named(config, "pod", args[0])
		if err != nil {
			return err
		}
		return with.run(command.Context(), config, func(w *whatif.World) (whatif.Explained,
			error) {
			explained, err := w.ExplainPod(pod.Namespace, pod.Name, with.all)
			if err == nil && with.try {
				w.Try(&explained)
			}
			return explained, err
		})
	}
	return command
}

func explainNode(config Config) *cobra.Command {
	command, with := explaining("Explain why a node stays, and what to do",
		`Explain why a node stays: why it should go, what keeps it, what to do, and what ends that by
itself. Budgets are those of this moment. What only a controller remembers, such as a command that
failed just now, is not known.`,
		"0 nothing wants it gone or it goes, 1 a cause keeps it")
	command.Use, command.Aliases = "node NAME", []string{"nodes", "no"}
	command.Example = "  joinerctl explain node ip-10-0-7-4"
	with.allFlag(command, "show everything that keeps the node, not only what counts first")
	with.asksWhere(command, asked{pause: true})
	command.ValidArgsFunction = completes(config, with.connection, corev1.SchemeGroupVersion.WithResource("nodes"))
	command.RunE = func(command *cobra.Command, args []string) error {
		return with.run(command.Context(), config, func(w *whatif.World) (whatif.Explained,
			error) {
			return w.ExplainNode(args[0], with.all)
		})
	}
	return command
}

// explainer holds the flags that all explanations share.
type explainer struct {
	files                []string
	catalogue, namespace string
	connection           *Connection
	printing             *printing
	all, try             bool
	now                  planTime
	// where is the place of the controller, and asked what is read there. more reads what an explanation needs of a
	// cluster in addition to the usual resources.
	where place
	asked asked
	more  func(context.Context, dynamic.Interface) ([]whatif.Document, error)
	// client is the client of the cluster, once that was read; nil for files.
	client dynamic.Interface
	// follows says that the cluster is looked at repeatedly; then feed holds its objects.
	follows bool
	feed    *feed
}

// explaining makes a command that explains one object. The caller adds its use, example and function.
func explaining(short, long, codes string) (*cobra.Command, *explainer) {
	with := &explainer{}
	command := &cobra.Command{
		Short: short, Args: exactlyOne,
		Long: long + `

It reads the objects of the cluster and plans for them with the engine of the controller. It asks
no controller, so it works while none runs, and where Karpenter decides. In that case it shows
what Joiner would say, and then Karpenter's own last event on the object. It does not know what
was sold out when a controller last tried. Without -f it reads the cluster; nothing is ever
written. It needs the right to list pods, nodes and nodepools. It names everything else that it
may not read, since the cause may be there.

Exit code: ` + codes +
			",\n2 nothing could be explained, or no cause was found and not everything was checked.",
	}
	flags := command.Flags()
	flags.StringArrayVarP(&with.files, "filename", "f", nil,
		"file or directory with manifests (.yaml, .yml, .json), or - for standard input, instead of a cluster; may be repeated")
	flags.StringVar(&with.catalogue, "catalogue", catalogueAuto,
		"instance types and prices: auto, aws, default, or a file (joinerctl simulate --help)")
	with.now.flag(command)
	with.now.costs.flags(command)
	with.connection, with.printing = connects(command), prints(command)
	command.MarkFlagsMutuallyExclusive("filename", "kubeconfig")
	return command, with
}

// namespacedName splits the namespace/name of an object.
func namespacedName(kind, name, namespace string) (whatif.About, error) {
	first, rest, both := strings.Cut(name, "/")
	if !both {
		first, rest = namespace, name
	}
	if first == "" || rest == "" || strings.Contains(rest, "/") {
		return whatif.About{}, fmt.Errorf("the %s is %q: name it NAMESPACE/NAME, or NAME with -n NAMESPACE", kind,
			name)
	}
	return whatif.About{Namespace: first, Name: rest}, nil
}

// named splits the argument of a command about a namespaced object. A name without namespace gets that of -n, or that
// of the context.
func (with *explainer) named(config Config, kind, name string) (whatif.About, error) {
	namespace := with.namespace
	if namespace == "" {
		namespace = config.namespace(with.connection, with.files)
	}
	return namespacedName(kind, name, namespace)
}

func (with *explainer) run(ctx context.Context, config Config, about func(*whatif.World) (whatif.Explained,
	error)) error {
	printer, err := with.printing.printer(config)
	if err != nil {
		return err
	}
	documents, unread, from, err := with.read(ctx, config)
	if err != nil {
		return err
	}
	world, offered, err := with.now.picture(documents, with.catalogue)
	if err != nil {
		return err
	}
	world.Unread, world.LeaseName = unread, with.where.lease
	explained, err := about(world)
	if err != nil {
		return err
	}
	explained.NotChecked = append(explained.NotChecked, unread...)
	if world.Karpenter() {
		if explained.Decides, err = karpenterSays(ctx, with.client, explained.About); err != nil {
			return err
		}
	}
	err = report(config.Out, printer, explained, sources(world, from, offered))
	if err == nil && explained.Open() {
		return partial(explained.NotChecked)
	}
	return err
}

// read reads the files or the cluster; from says which.
func (with *explainer) read(ctx context.Context, config Config) (documents []whatif.Document, unread []string,
	from string, err error) {
	if len(with.files) > 0 {
		objects, err := readFiles(config.In, with.files)
		return fromFiles(objects), nil, "files", err
	}
	client, err := config.Client(*with.connection)
	if err != nil {
		return nil, nil, "", err
	}
	with.client, with.asked.heading = client, true
	documents, unread, err = readAll(ctx, client, with.now.costs.resources())
	if err == nil && with.more != nil {
		var more []whatif.Document
		more, err = with.more(ctx, client)
		documents = append(documents, more...)
	}
	if err != nil {
		return nil, nil, "", err
	}
	in := whatif.Surroundings{LeaseName: with.where.lease}
	more, missing, err := with.where.read(ctx, client, with.asked, &in)
	if with.asked.leader && !in.LeasesUnread && len(in.Leases) == 0 {
		missing = append(missing, "whether a controller leads: "+whatif.NoLease(in.LeaseName))
	}
	return append(documents, more...), append(unread, missing...), "cluster", err
}

// readAll reads what a plan looks at. unread names what may not be read, each with the missing right. A required
// resource that may not be read is an error.
func readAll(ctx context.Context, client dynamic.Interface, resources []whatif.Resource) (documents []whatif.Document,
	unread []string, err error) {
	reads, err := whatif.NewUnderstanding()
	if err != nil {
		return nil, nil, err
	}
	return readWhole(ctx, client, resources, reads.Of)
}

// readWhole is readAll with a function that says what to keep of each document.
func readWhole(ctx context.Context, client dynamic.Interface, resources []whatif.Resource,
	keep func(whatif.Document) whatif.Document) (documents []whatif.Document, unread []string, err error) {
	for _, resource := range resources {
		err := eachObject(ctx, client, resource.GroupVersionResource, func(o *unstructured.Unstructured) error {
			documents = append(documents, keep(whatif.Document{Where: "the cluster", Content: o.Object, Stored: true}))
			return nil
		})
		switch {
		case apierrors.IsForbidden(err) && !resource.Required:
			unread = append(unread, mayNotBeListed(resource))
		case apierrors.IsForbidden(err):
			return nil, nil, mayNotList(resource.GroupVersionResource)
		case err != nil:
			return nil, nil, err
		}
	}
	return documents, unread, nil
}

// mayNotList is the error for a required resource that cannot be listed. It names the rule that would allow it (U-19).
func mayNotList(resource schema.GroupVersionResource) error {
	return fmt.Errorf("%s cannot be listed: nothing can be said without "+
		"(rule: {apiGroups: [%q], resources: [%s], verbs: [list]})", resource.GroupResource(), resource.Group,
		resource.Resource)
}
