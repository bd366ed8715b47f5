package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// Values of --from.
const (
	fromFilesOnly = "files"
	fromLive      = "cluster"
)

// foreseen holds the flags of simulate: what is planned for, what changes, and how far to look.
type foreseen struct {
	files, changes []string
	change         whatif.Change
	from           string
	until, failOn  string
	catalogue      string
	now            planTime
	connection     *Connection
	printing       *printing
}

// flags adds the flags to a command.
func (f *foreseen) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringArrayVarP(&f.files, "filename", "f", nil,
		"file or directory with manifests (.yaml, .yml, .json), or - for standard input; may be repeated")
	flags.StringVar(&f.from, "from", "",
		"what to plan for: files, or cluster plus the objects of -f; the default is files if -f is given and no "+
			"flag names a cluster, otherwise cluster")
	flags.StringArrayVar(&f.changes, "change", nil,
		"predict what applying manifests would do: a file or directory, or -; may be repeated")
	flags.StringArrayVar(&f.change.Delete, "delete", nil,
		"predict what deleting an object would do: KIND/NAME or KIND/NAMESPACE/NAME; may be repeated")
	flags.StringArrayVar(&f.change.Scale, "scale", nil,
		"predict what scaling a Deployment to N replicas would do: NAMESPACE/DEPLOYMENT=N; may be repeated")
	flags.StringArrayVar(&f.change.RemoveNodes, "remove-node", nil,
		"predict what deleting a node or NodeClaim would do: its name; may be repeated")
	flags.StringVar(&f.until, "until", "",
		"plan: plan once; quiet: plan again until nothing changes; the default is quiet for a change, otherwise plan")
	flags.StringVar(&f.failOn, "fail-on", whatif.DefaultFailOn,
		"effects of a change that exit with 1: new-waiting, held, drift, disruption, trim, any, price+N%, price+$N")
	flags.StringVar(&f.catalogue, "catalogue", catalogueAuto,
		"instance types and prices: auto, aws, default, or a file")
	f.now.flag(command)
	f.now.costs.flags(command)
	f.connection, f.printing = connects(command), prints(command)
}

// check validates the flags, and fills in the defaults that depend on others.
func (f *foreseen) check() (whatif.FailOn, error) {
	changes := len(f.changes) > 0 || !f.change.Empty()
	switch {
	case !slices.Contains([]string{"", fromFilesOnly, fromLive}, f.from):
		return nil, fmt.Errorf("--from is %q: it must be files or cluster", f.from)
	case !slices.Contains([]string{"", string(whatif.UntilPlan), string(whatif.UntilQuiet)}, f.until):
		return nil, fmt.Errorf("--until is %q: it must be plan or quiet", f.until)
	case f.from == fromFilesOnly && len(f.files) == 0:
		return nil, errors.New("-f is missing: name a file or a directory with manifests, or - for standard input")
	case f.from == fromFilesOnly && f.connection.named() != "":
		return nil, fmt.Errorf("--%s names a cluster, and --from files asks none: leave one of them out",
			f.connection.named())
	case !changes && f.failOn != whatif.DefaultFailOn:
		return nil, fmt.Errorf("--fail-on is %q and nothing changes: add --change, --delete, --scale or --remove-node",
			f.failOn)
	case slices.Contains(f.files, "-") && slices.Contains(f.changes, "-"):
		return nil, errors.New("-f and --change are both -: standard input can be read once")
	}
	if f.from == "" {
		f.from = fromLive
		if len(f.files) > 0 && f.connection.named() == "" {
			f.from = fromFilesOnly
		}
	}
	if f.until == "" {
		f.until = string(whatif.UntilPlan)
		if changes {
			f.until = string(whatif.UntilQuiet)
		}
	}
	return whatif.ParseFailOn(f.failOn)
}

// compares reports whether two states are compared, instead of making one plan.
func (f *foreseen) compares() bool {
	return len(f.changes) > 0 || !f.change.Empty() || f.until == string(whatif.UntilQuiet)
}

func (f *foreseen) run(ctx context.Context, config Config) error {
	printer, err := f.printing.printer(config)
	if err != nil {
		return err
	}
	failOn, err := f.check()
	if err != nil {
		return err
	}
	documents, unread, err := f.read(ctx, config)
	if err != nil {
		return err
	}
	changes, err := readFiles(config.In, f.changes)
	if err != nil {
		return err
	}
	f.change.Documents = fromFiles(changes)
	world, offered, err := f.now.picture(documents, f.catalogue)
	if err != nil {
		return err
	}
	from := f.from
	if from == fromLive && len(f.files) > 0 {
		from = "cluster and files"
	}
	if !f.compares() {
		planned := world.Plan()
		planned.Notes = append(planned.Notes, unread...)
		return report(config.Out, printer, planned, sources(world, from, offered))
	}
	compared, err := world.Compare(f.change, whatif.Until(f.until))
	if err != nil {
		return err
	}
	compared.Notes = append(compared.Notes, unread...)
	compared.Judge(failOn)
	return report(config.Out, printer, compared, sources(world, from, offered))
}

// read reads what is planned for. Objects of files replace objects of the cluster with the same kind and name.
func (f *foreseen) read(ctx context.Context, config Config) (documents []whatif.Document, unread []string, err error) {
	objects, err := readFiles(config.In, f.files)
	if err != nil {
		return nil, nil, err
	}
	files := fromFiles(objects)
	if f.from == fromFilesOnly {
		return files, nil, nil
	}
	if config.Client == nil {
		return nil, nil, errNoCluster(errors.New("no kubeconfig is known"))
	}
	client, err := config.Client(*f.connection)
	if err != nil {
		return nil, nil, errNoCluster(err)
	}
	live, unread, err := readWhole(ctx, client, f.now.costs.resources(),
		func(d whatif.Document) whatif.Document { return d }) // a change needs whole objects
	if err != nil {
		return nil, nil, err
	}
	more, missing, err := readWorkloads(ctx, client)
	if err != nil {
		return nil, nil, err
	}
	given := map[string]bool{}
	for _, d := range files {
		given[identity(d)] = true
	}
	for _, d := range append(live, more...) {
		if !given[identity(d)] {
			documents = append(documents, d)
		}
	}
	return append(documents, files...), notLookedAt(append(unread, missing...)), nil
}

func errNoCluster(err error) error {
	return fmt.Errorf("no cluster: %w; to plan for files, name them with -f", err)
}

func notLookedAt(kinds []string) []string {
	var notes []string
	for _, kind := range kinds {
		notes = append(notes, "not looked at: "+kind)
	}
	return notes
}

// identity returns a key for an object that does not depend on its version.
func identity(d whatif.Document) string {
	apiVersion, _ := d.Content["apiVersion"].(string)
	kind, _ := d.Content["kind"].(string)
	o := unstructured.Unstructured{Object: d.Content}
	namespace := o.GetNamespace()
	if namespace == "" && whatif.Namespaced(schema.FromAPIVersionAndKind(apiVersion, kind)) {
		namespace = "default"
	}
	return strings.Join([]string{schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind().String(), namespace,
		o.GetName()}, " ")
}

// workloads returns what is read in addition to the resources of explain: the owners of pods, and objects that --scale
// and --change modify.
func workloads() []schema.GroupVersionResource {
	apps := schema.GroupVersion{Group: "apps", Version: "v1"}
	batch := schema.GroupVersion{Group: "batch", Version: "v1"}
	return []schema.GroupVersionResource{apps.WithResource("deployments"), apps.WithResource("replicasets"),
		apps.WithResource("statefulsets"), batch.WithResource("jobs"), batch.WithResource("cronjobs"),
		{Version: "v1", Resource: "replicationcontrollers"},
		{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}}
}

// readWorkloads reads workloads as far as that is allowed. unread names the others with the missing right.
func readWorkloads(ctx context.Context, client dynamic.Interface) (documents []whatif.Document, unread []string,
	err error) {
	for _, resource := range workloads() {
		err := eachObject(ctx, client, resource, func(o *unstructured.Unstructured) error {
			documents = append(documents, whatif.Document{Where: "the cluster", Content: o.Object, Stored: true})
			return nil
		})
		switch {
		case apierrors.IsForbidden(err):
			unread = append(unread, fmt.Sprintf("%s, for want of the right to list them", resource.GroupResource()))
		case err != nil:
			return nil, nil, err
		}
	}
	return documents, unread, nil
}
