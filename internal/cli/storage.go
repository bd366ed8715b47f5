package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/cli/printer"
	"github.com/joiner-autoscaler/joiner/internal/convert"
)

const (
	// tries bounds the attempts to write an object that others change at the same time.
	tries = 5
	// progressEvery is the number of objects per line of progress.
	progressEvery = 100
)

func migrateStorage(config Config) *cobra.Command {
	var connection *Connection
	var printing *printing
	var dryRun, yes bool
	command := &cobra.Command{
		Use: "storage", Short: "Rewrite the objects that may be stored in v1beta1", Args: cobra.NoArgs,
		Long: `Writes to the cluster. Rewrite each NodePool, NodeClaim and EC2NodeClass that may be stored in
v1beta1, so that the API server stores it in v1. Then remove v1beta1 from status.storedVersions of
the CRD. Only after that does the API server let you remove v1beta1 from the CRD.

NodeClaims and nodes that name their owner in v1beta1 name it in v1 afterwards. Otherwise they
would not be deleted with their owner once v1beta1 is no longer served. Entries of managedFields
for writes in v1beta1 are removed; those of server-side apply stay. Nothing else of an object
changes. You can stop the command and run it again at any time.

An object that cannot be converted stays as it is, and its CRD keeps v1beta1.

It asks before it writes, unless --yes is given, and refuses if nobody is there to answer.
--dry-run does not ask.

Exit code: 0 everything is stored in v1, 1 some objects were left, 2 failed.`,
		RunE: func(command *cobra.Command, _ []string) error {
			printer, err := printing.printer(config)
			if err != nil {
				return err
			}
			client, err := config.Client(*connection)
			if err != nil {
				return err
			}
			if !dryRun && !yes {
				const what = "rewrite the objects of this cluster that may be stored in v1beta1"
				if err := config.confirm(what); err != nil {
					return err
				}
			}
			r := &rewriting{client: client, out: io.Discard, dryRun: dryRun,
				answer: storageAnswer{typed: ofKind("StorageMigration"), DryRun: dryRun,
					Resources: []storageResource{}}}
			if printer.ForPeople() {
				r.out = config.Out // at once: it may take a while
			}
			if err := r.all(command.Context()); err != nil {
				return err
			}
			return report(config.Out, printer, r.answer, "")
		},
	}
	connection, printing = connects(command), prints(command, printer.Text, printer.JSON, printer.YAML)
	command.Flags().BoolVar(&yes, "yes", false, "do not ask before writing")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be rewritten, and write nothing")
	return command
}

// storageAnswer is what migrate storage did.
type storageAnswer struct {
	typed
	DryRun    bool              `json:"dryRun,omitempty"`
	Resources []storageResource `json:"resources"`
}

// storageResource is what became of the objects of a resource.
type storageResource struct {
	Name string `json:"name"`
	// Served says whether the cluster has it.
	Served bool `json:"served"`
	// Rewritten counts objects, in a dry run those that would be; Left are those that cannot be converted.
	Rewritten int          `json:"rewritten"`
	Left      []leftObject `json:"left,omitempty"`
}

// leftObject is an object that cannot be converted, and why.
type leftObject struct {
	Name    string `json:"name"`
	Problem string `json:"problem"`
}

// Clean reports whether nothing was left.
func (a storageAnswer) Clean() bool {
	return !slices.ContainsFunc(a.Resources, func(r storageResource) bool { return len(r.Left) > 0 })
}

// WriteText writes nothing: the lines for people were written along the way.
func (storageAnswer) WriteText(io.Writer) error { return nil }

// rewriting is a run of migrate storage; out gets its lines for people.
type rewriting struct {
	client dynamic.Interface
	out    io.Writer
	dryRun bool
	answer storageAnswer
}

func (r *rewriting) all(ctx context.Context) error {
	for _, resource := range converted() {
		done, err := r.migrate(ctx, resource)
		if err != nil {
			return err
		}
		r.answer.Resources = append(r.answer.Resources, done)
	}
	nodes, err := r.nodes(ctx)
	r.answer.Resources = append(r.answer.Resources, nodes)
	return err
}

// migrate rewrites the objects of one resource.
func (r *rewriting) migrate(ctx context.Context, resource schema.GroupVersionResource) (storageResource, error) {
	name := resource.GroupResource().String()
	definition, err := r.client.Resource(definitions()).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		fmt.Fprintf(r.out, "%s: the cluster does not have it\n", name)
		return storageResource{Name: name}, nil
	}
	if err != nil {
		return storageResource{}, fmt.Errorf("reading the CRD %s: %w", name, err)
	}
	stored, _, _ := unstructured.NestedStringSlice(definition.Object, "status", "storedVersions")
	stale := slices.Contains(stored, convert.V1beta1)
	if version := storageVersion(definition); stale && version != convert.V1 {
		return storageResource{}, fmt.Errorf("the CRD %s stores objects in %q: apply the CRD that stores v1 first",
			name, version)
	}
	done, err := r.rewrite(ctx, resource, stale)
	switch left := len(done.Left); {
	case err != nil:
		return done, err
	case r.dryRun:
		fmt.Fprintf(r.out, "%s: %d would be rewritten, %d left\n", name, done.Rewritten, left)
		return done, nil
	case left > 0:
		fmt.Fprintf(r.out, "%s: %d rewritten, %d left; v1beta1 stays in status.storedVersions\n", name, done.Rewritten,
			left)
		return done, nil
	case stale:
		if err := forget(ctx, r.client, definition); err != nil {
			return done, err
		}
	}
	fmt.Fprintf(r.out, "%s: %d rewritten; all is stored in v1\n", name, done.Rewritten)
	return done, nil
}

// nodes rewrites the nodes that refer to their NodeClaim in v1beta1.
func (r *rewriting) nodes(ctx context.Context) (storageResource, error) {
	done, err := r.rewrite(ctx, schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, false)
	if err == nil && r.dryRun {
		fmt.Fprintf(r.out, "nodes: %d would be rewritten\n", done.Rewritten)
	} else if err == nil {
		fmt.Fprintf(r.out, "nodes: %d rewritten; all name their owners in v1\n", done.Rewritten)
	}
	return done, err
}

// rewrite rewrites the objects of a resource that have traces of v1beta1. If stale, objects may be stored in v1beta1:
// then it rewrites all.
func (r *rewriting) rewrite(ctx context.Context, resource schema.GroupVersionResource, stale bool) (storageResource,
	error) {
	name := resource.GroupResource().String()
	done := storageResource{Name: name, Served: true}
	err := eachObject(ctx, r.client, resource, func(o *unstructured.Unstructured) error {
		if problem, held := o.GetAnnotations()[karpenterv1.ConversionProblemAnnotationKey]; held && stale {
			done.Left = append(done.Left, leftObject{Name: o.GetName(), Problem: problem})
			fmt.Fprintf(r.out, "%s: %s is left: %s\n", name, o.GetName(), problem)
			return nil
		}
		if !clean(o) && !stale {
			return nil
		}
		if !r.dryRun {
			if err := rewrite(ctx, r.client.Resource(resource), o); err != nil {
				return fmt.Errorf("rewriting %s %s: %w", name, o.GetName(), err)
			}
		}
		if done.Rewritten++; done.Rewritten%progressEvery == 0 && !r.dryRun {
			fmt.Fprintf(r.out, "%s: %d rewritten\n", name, done.Rewritten)
		}
		return nil
	})
	return done, err
}

func storageVersion(definition *unstructured.Unstructured) string {
	for _, version := range versionsOf(definition) {
		if version["storage"] == true {
			name, _ := version["name"].(string)
			return name
		}
	}
	return ""
}

// rewrite writes a cleaned object. An object that was deleted meanwhile needs nothing. One that was changed is read
// again, since an older API server may have made the change.
func rewrite(ctx context.Context, client dynamic.ResourceInterface, o *unstructured.Unstructured) error {
	var err error
	for range tries {
		if _, err = client.Update(ctx, o, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
			break
		}
		if o, err = client.Get(ctx, o.GetName(), metav1.GetOptions{}); err != nil {
			break
		}
		clean(o)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// forget removes v1beta1 from the stored versions of a CRD. The CRD's resourceVersion makes sure that nobody has
// changed the storage version since.
func forget(ctx context.Context, client dynamic.Interface, definition *unstructured.Unstructured) error {
	stored, _, _ := unstructured.NestedStringSlice(definition.Object, "status", "storedVersions")
	stored = slices.DeleteFunc(stored, func(version string) bool { return version == convert.V1beta1 })
	if len(stored) == 0 {
		return errors.New("the CRD " + definition.GetName() +
			" has never stored v1: apply the CRD that stores v1 first")
	}
	if err := unstructured.SetNestedStringSlice(definition.Object, stored, "status", "storedVersions"); err != nil {
		return err
	}
	if _, err := client.Resource(definitions()).UpdateStatus(ctx, definition, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("taking v1beta1 out of status.storedVersions of the CRD %s: %w", definition.GetName(), err)
	}
	return nil
}
