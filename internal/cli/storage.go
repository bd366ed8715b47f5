package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/convert"
)

const (
	// tries is how often an object is written again when somebody else has just changed it.
	tries = 5
	// progressEvery is after how many objects a line of progress is printed.
	progressEvery = 100
)

func migrateStorage(config Config) *cobra.Command {
	var connection *Connection
	var dryRun, yes bool
	command := &cobra.Command{
		Use: "storage", Short: "Rewrite the objects that may be stored in v1beta1", Args: cobra.NoArgs,
		Long: `Writes to the cluster. Rewrite each NodePool, NodeClaim and EC2NodeClass that may be stored in v1beta1, so
that the API server stores it in v1, and then take v1beta1 out of status.storedVersions of the CRD. Only after that
the API server lets v1beta1 be taken out of the CRD. NodeClaims and nodes that name their owner in v1beta1 name
it in v1 then: otherwise they would not be deleted with it once v1beta1 is not served. What managedFields say of
writes in v1beta1 goes; entries of server-side apply stay. Nothing else of an object changes. It can be stopped
and started again at any time.

An object that cannot be converted is left as it is, and its CRD keeps v1beta1.

It asks before it writes, unless --yes is given, and refuses where nobody is there to answer. --dry-run does not ask.

Exit code: 0 all is stored in v1, 1 some objects were left, 2 it could not be done.`,
		RunE: func(command *cobra.Command, _ []string) error {
			client, err := config.Client(*connection)
			if err != nil {
				return err
			}
			if !dryRun && !yes {
				if err := config.confirm("rewrite the objects of this cluster that may be stored in v1beta1"); err != nil {
					return err
				}
			}
			left := 0
			for _, resource := range converted() {
				n, err := migrateResource(command.Context(), config, client, resource, dryRun)
				if err != nil {
					return err
				}
				left += n
			}
			if err := migrateNodes(command.Context(), config, client, dryRun); err != nil {
				return err
			}
			if left > 0 {
				return errFindings
			}
			return nil
		},
	}
	connection = connects(command)
	command.Flags().BoolVar(&yes, "yes", false, "do not ask")
	command.Flags().BoolVar(&dryRun, "dry-run", false, "say what would be rewritten, and write nothing")
	return command
}

// migrateResource rewrites the objects of one resource and returns how many had to be left.
func migrateResource(ctx context.Context, config Config, client dynamic.Interface, resource schema.GroupVersionResource, dryRun bool) (left int, err error) {
	name := resource.GroupResource().String()
	definition, err := client.Resource(definitions()).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		fmt.Fprintf(config.Out, "%s: the cluster does not have it\n", name)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("reading the CRD %s: %w", name, err)
	}
	stored, _, _ := unstructured.NestedStringSlice(definition.Object, "status", "storedVersions")
	stale := slices.Contains(stored, convert.V1beta1)
	if version := storageVersion(definition); stale && version != convert.V1 {
		return 0, fmt.Errorf("the CRD %s stores objects in %q: apply the CRD that stores v1 first", name, version)
	}
	done, left, err := rewriteAll(ctx, config, client, resource, stale, dryRun)
	switch {
	case err != nil:
		return left, err
	case dryRun:
		fmt.Fprintf(config.Out, "%s: %d would be rewritten, %d left\n", name, done, left)
		return left, nil
	case left > 0:
		fmt.Fprintf(config.Out, "%s: %d rewritten, %d left; v1beta1 stays in status.storedVersions\n", name, done, left)
		return left, nil
	case stale:
		if err := forget(ctx, client, definition); err != nil {
			return 0, err
		}
	}
	fmt.Fprintf(config.Out, "%s: %d rewritten; all is stored in v1\n", name, done)
	return 0, nil
}

// migrateNodes rewrites the nodes that name their NodeClaim in v1beta1.
func migrateNodes(ctx context.Context, config Config, client dynamic.Interface, dryRun bool) error {
	done, _, err := rewriteAll(ctx, config, client, schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, false, dryRun)
	if err == nil && dryRun {
		fmt.Fprintf(config.Out, "nodes: %d would be rewritten\n", done)
	} else if err == nil {
		fmt.Fprintf(config.Out, "nodes: %d rewritten; all name their owners in v1\n", done)
	}
	return err
}

// rewriteAll rewrites the objects of a resource, those with traces of v1beta1 or, if they may be stored in it, all. left are
// those that may be stored in it and cannot be converted.
func rewriteAll(ctx context.Context, config Config, client dynamic.Interface, resource schema.GroupVersionResource, stale, dryRun bool) (done, left int, err error) {
	name := resource.GroupResource().String()
	err = eachObject(ctx, client, resource, func(o *unstructured.Unstructured) error {
		if problem, held := o.GetAnnotations()[karpenterv1.ConversionProblemAnnotationKey]; held && stale {
			left++
			fmt.Fprintf(config.Out, "%s: %s is left: %s\n", name, o.GetName(), problem)
			return nil
		}
		if !clean(o) && !stale {
			return nil
		}
		if !dryRun {
			if err := rewrite(ctx, client.Resource(resource), o); err != nil {
				return fmt.Errorf("rewriting %s %s: %w", name, o.GetName(), err)
			}
		}
		if done++; done%progressEvery == 0 && !dryRun {
			fmt.Fprintf(config.Out, "%s: %d rewritten\n", name, done)
		}
		return nil
	})
	return done, left, err
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

// rewrite writes an object that was cleaned. One that is gone meanwhile needs nothing; one that was changed is read again: the
// change may have been made by an older API server.
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

// forget takes v1beta1 out of the versions that objects may be stored in. The resourceVersion of the CRD makes sure that
// nobody has changed the storage version since.
func forget(ctx context.Context, client dynamic.Interface, definition *unstructured.Unstructured) error {
	stored, _, _ := unstructured.NestedStringSlice(definition.Object, "status", "storedVersions")
	stored = slices.DeleteFunc(stored, func(version string) bool { return version == convert.V1beta1 })
	if len(stored) == 0 {
		return errors.New("the CRD " + definition.GetName() + " has never stored v1: apply the CRD that stores v1 first")
	}
	if err := unstructured.SetNestedStringSlice(definition.Object, stored, "status", "storedVersions"); err != nil {
		return err
	}
	if _, err := client.Resource(definitions()).UpdateStatus(ctx, definition, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("taking v1beta1 out of status.storedVersions of the CRD %s: %w", definition.GetName(), err)
	}
	return nil
}
