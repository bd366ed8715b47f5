package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/joiner-autoscaler/joiner/internal/cli/printer"
	"github.com/joiner-autoscaler/joiner/internal/takeover"
)

// Labels and annotations by which Helm knows which release owns an object, and whether to keep it.
const (
	helmRelease   = "meta.helm.sh/release-name"
	helmNamespace = "meta.helm.sh/release-namespace"
	helmPolicy    = "helm.sh/resource-policy"
	helmManager   = "app.kubernetes.io/managed-by"
)

// adopting are the flags of takeover adopt-crds.
type adopting struct {
	release, namespace string
	dryRun             bool
	connection         *Connection
	printing           *printing
}

func adoptDefinitions(config Config) *cobra.Command {
	var with adopting
	command := &cobra.Command{
		Use: "adopt-crds", Short: "Detach Karpenter's definitions from the Helm release that made them",
		Args: cobra.NoArgs,
		Long: `Writes to the cluster. Give each CustomResourceDefinition of Karpenter's kinds to the release of
our chart of definitions. Annotations and a label name that release as the owner, and tell Helm to
keep the definition. Nothing else of a definition changes, and none of its objects does. The
definition of CapacityBuffers stays where it is if it belongs to a release without Karpenter's
own.

Run it before you remove a release of Karpenter's chart of definitions. Removing that release
deletes the definitions, and with them every NodePool and NodeClaim. Helm 4 leaves alone what
belongs to another release. Helm 3 goes by the record of the release, so you must remove that
record instead: the answer says how. The guide is docs/takeover.md.

Exit code: 0 the definitions are ours, 1 the record of another release still has them, 2 failed.`,
		Example: "  joinerctl takeover adopt-crds --dry-run\n  joinerctl takeover adopt-crds --release-namespace joiner",
		RunE: func(command *cobra.Command, _ []string) error {
			to, err := with.printing.printer(config)
			if err != nil {
				return err
			}
			client, err := config.Client(*with.connection)
			if err != nil {
				return err
			}
			answer, err := with.run(command.Context(), client)
			if err != nil {
				return err
			}
			return report(config.Out, to, answer, "")
		},
	}
	command.Flags().StringVar(&with.release, "release", "joiner-crds",
		"name of the release of our chart of definitions")
	command.Flags().StringVar(&with.namespace, "release-namespace", "joiner", "namespace of that release")
	command.Flags().BoolVar(&with.dryRun, "dry-run", false, "print the patches, and write nothing")
	with.connection, with.printing = connects(command), prints(command, printer.Text, printer.JSON, printer.YAML)
	return command
}

// adoptedAnswer is what takeover adopt-crds did.
type adoptedAnswer struct {
	typed
	DryRun bool `json:"dryRun,omitempty"`
	// Release is the one that they belong to now, or would, namespace/name.
	Release     string              `json:"release"`
	Definitions []adoptedDefinition `json:"definitions"`
	// Left are the releases that they are taken from, namespace/name: those still list them.
	Left []string `json:"left,omitempty"`
}

// adoptedDefinition is a definition, and what became of it.
type adoptedDefinition struct {
	Name string `json:"name"`
	// From is the release that it belonged to, namespace/name; "" for none.
	From string `json:"from,omitempty"`
	// Patch is the merge patch that was needed; "" when it was ours before.
	Patch string `json:"patch,omitempty"`
	// Kept says that it stays with its release, which has nothing else of Karpenter's.
	Kept bool `json:"kept,omitempty"`
}

// Clean reports whether no other release still lists the definitions.
func (a adoptedAnswer) Clean() bool { return len(a.Left) == 0 }

// WriteText writes it for people.
func (a adoptedAnswer) WriteText(out io.Writer) error {
	var b strings.Builder
	for _, d := range a.Definitions {
		switch {
		case d.Kept:
			fmt.Fprintf(&b,
				"%s: stays with release %s, which has no definition of Karpenter's own: install our chart of "+
					"definitions with --set capacityBuffers=false\n", d.Name, d.From)
		case d.Patch == "":
			fmt.Fprintf(&b, "%s: belongs to release %s already\n", d.Name, a.Release)
		case a.DryRun:
			fmt.Fprintf(&b, "kubectl patch crd %s --type=merge -p '%s'\n", d.Name, d.Patch)
		case d.From == "":
			fmt.Fprintf(&b, "%s: belongs to release %s now\n", d.Name, a.Release)
		default:
			fmt.Fprintf(&b, "%s: belongs to release %s now, and not to %s\n", d.Name, a.Release, d.From)
		}
	}
	if len(a.Definitions) == 0 {
		b.WriteString("there is no definition of Karpenter's kinds\n")
	}
	for _, left := range a.Left {
		namespace, name, _ := strings.Cut(left, "/")
		fmt.Fprintf(&b,
			"release %s still lists them: never uninstall it with Helm 3. If nothing else belongs to it, take its "+
				"record away instead:\n  kubectl delete secret --namespace %s --selector owner=helm,name=%s\n", left,
			namespace, name)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// definitionsResource returns the resource of CustomResourceDefinitions.
func definitionsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions"}
}

// run takes each definition over. The answer names releases that lose definitions: afterwards nothing shows that they
// made them.
func (with adopting) run(ctx context.Context, client dynamic.Interface) (adoptedAnswer, error) {
	answer := adoptedAnswer{typed: ofKind("AdoptedDefinitions"), DryRun: with.dryRun,
		Release: with.namespace + "/" + with.release, Definitions: []adoptedDefinition{}}
	found, err := client.Resource(definitionsResource()).List(ctx, metav1.ListOptions{})
	if err != nil {
		return answer, fmt.Errorf("listing CustomResourceDefinitions: %w", err)
	}
	from, karpenters := map[string]bool{}, releasesOf(found.Items)
	for i := range found.Items {
		object := &found.Items[i]
		if !takeover.Kinds(object.GetName()) && object.GetName() != takeover.Shared {
			continue
		}
		own, err := with.adopted(object)
		if err != nil {
			return answer, err
		}
		if own.From != "" && own.From != answer.Release && !karpenters[own.From] {
			own.Patch, own.Kept = "", true
			answer.Definitions = append(answer.Definitions, own)
			continue
		}
		if own.From != "" && own.From != answer.Release {
			from[own.From] = true
		}
		if own.Patch != "" && !with.dryRun {
			if _, err := client.Resource(definitionsResource()).Patch(ctx, own.Name, types.MergePatchType,
				[]byte(own.Patch), metav1.PatchOptions{FieldManager: program}); err != nil {
				return answer, fmt.Errorf("patching CustomResourceDefinition %s: %w", own.Name, err)
			}
		}
		answer.Definitions = append(answer.Definitions, own)
	}
	answer.Left = slices.Sorted(maps.Keys(from))
	slices.SortFunc(answer.Definitions, func(a, b adoptedDefinition) int { return strings.Compare(a.Name, b.Name) })
	return answer, nil
}

// releasesOf returns the releases that own definitions of Karpenter's own kinds, as namespace/name.
func releasesOf(definitions []unstructured.Unstructured) map[string]bool {
	releases := map[string]bool{}
	for i := range definitions {
		if annotations := definitions[i].GetAnnotations(); takeover.Kinds(definitions[i].GetName()) {
			releases[annotations[helmNamespace]+"/"+annotations[helmRelease]] = true
		}
	}
	return releases
}

// adopted returns what a definition lacks to be ours.
func (with adopting) adopted(object *unstructured.Unstructured) (adoptedDefinition, error) {
	own := adoptedDefinition{Name: object.GetName()}
	annotations, lacks := object.GetAnnotations(), map[string]any{}
	if name := annotations[helmRelease]; name != "" {
		own.From = annotations[helmNamespace] + "/" + name
	}
	for key, want := range map[string]string{helmRelease: with.release, helmNamespace: with.namespace,
		helmPolicy: "keep"} {
		if annotations[key] != want {
			lacks[key] = want
		}
	}
	metadata := map[string]any{}
	if len(lacks) > 0 {
		metadata["annotations"] = lacks
	}
	if object.GetLabels()[helmManager] != "Helm" {
		metadata["labels"] = map[string]any{helmManager: "Helm"}
	}
	if len(metadata) == 0 {
		return own, nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata}) // keys are sorted
	own.Patch = string(patch)
	return own, err
}
