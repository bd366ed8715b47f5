package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

func explain(config Config) *cobra.Command {
	command := &cobra.Command{
		Use: "explain", Short: "Say why a pod waits, and what to do about it", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(explainPod(config))
	return command
}

func explainPod(config Config) *cobra.Command {
	var files []string
	var kubeconfig, namespace, catalogue, output string
	command := &cobra.Command{
		Use: "pod [NAMESPACE/]NAME", Short: "Say why a pod waits, and what to do about it", Args: cobra.ExactArgs(1),
		Long: `Say why a pod waits, which pool is nearest to taking it, what can be done, and what ends it without anybody.

The objects of the cluster are read and planned for by the engine that the controller has. No controller is asked, so it works while
none runs, and where Karpenter decides: then it says what Joiner would say. What was sold out when a controller last tried is not
known here. Without -f the cluster is read; nothing is ever written. It needs to list pods, nodes and nodepools; what else may not
be read is named, since something of it may stand in the way.

Exit code: 0 the pod runs or a node takes it, 1 a cause holds it, 2 nothing could be explained.`,
		Example: "  joinerctl explain pod shop/web-6d4cf-9k2\n  joinerctl explain pod -n shop web-0 -f manifests/",
		RunE: func(command *cobra.Command, args []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("--output is %q: it must be text or json", output)
			}
			pod, err := podNamed(args[0], namespace)
			if err != nil {
				return err
			}
			return runExplain(command.Context(), config, pod, files, kubeconfig, catalogue, output)
		},
	}
	flags := command.Flags()
	flags.StringArrayVarP(&files, "filename", "f", nil, "file or directory with manifests (.yaml, .yml, .json), or - for standard input, instead of a cluster; may be repeated")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "path of the kubeconfig; without it $KUBECONFIG, then ~/.kube/config")
	flags.StringVarP(&namespace, "namespace", "n", metav1.NamespaceDefault, "namespace of a pod that is named without one")
	flags.StringVar(&catalogue, "catalogue", catalogueAuto, "instance types and prices: auto, aws, default, or a file (joinerctl simulate --help)")
	flags.StringVarP(&output, "output", "o", "text", "text or json")
	command.MarkFlagsMutuallyExclusive("filename", "kubeconfig")
	return command
}

// podNamed splits namespace/name.
func podNamed(name, namespace string) (whatif.About, error) {
	first, rest, both := strings.Cut(name, "/")
	if !both {
		first, rest = namespace, name
	}
	if first == "" || rest == "" || strings.Contains(rest, "/") {
		return whatif.About{}, fmt.Errorf("the pod is %q: name it NAMESPACE/NAME, or NAME with -n NAMESPACE", name)
	}
	return whatif.About{Kind: "Pod", Namespace: first, Name: rest}, nil
}

func runExplain(ctx context.Context, config Config, pod whatif.About, files []string, kubeconfig, catalogue, output string) error {
	var documents []whatif.Document
	var unread []string
	from := "files"
	if len(files) > 0 {
		objects, err := readFiles(config.In, files)
		if err != nil {
			return err
		}
		documents = fromFiles(objects)
	} else {
		client, err := config.Client(kubeconfig)
		if err != nil {
			return err
		}
		if documents, unread, err = readAll(ctx, client); err != nil {
			return err
		}
		from = "cluster"
	}
	world, offered, err := picture(documents, catalogue)
	if err != nil {
		return err
	}
	explained, err := world.ExplainPod(pod.Namespace, pod.Name)
	if err != nil {
		return err
	}
	explained.NotChecked = unread
	err = report(config.Out, explained, output)
	if output == "json" || err != nil && !errors.Is(err, errFindings) {
		return err
	}
	return errors.Join(err, sources(config.Out, world, from, offered))
}

// readAll reads what a plan looks at. unread says what may not be read, each with the right that is missing; without what is
// required it is an error.
func readAll(ctx context.Context, client dynamic.Interface) (documents []whatif.Document, unread []string, err error) {
	for _, resource := range whatif.Resources() {
		err := eachObject(ctx, client, resource.GroupVersionResource, func(o *unstructured.Unstructured) error {
			documents = append(documents, whatif.Document{Where: "the cluster", Content: o.Object, Stored: true})
			return nil
		})
		switch {
		case apierrors.IsForbidden(err) && !resource.Required:
			unread = append(unread, fmt.Sprintf("%s, for want of the right to list them", resource.GroupResource()))
		case apierrors.IsForbidden(err):
			return nil, nil, fmt.Errorf("%s cannot be listed: nothing can be explained without (rule: {apiGroups: [%q], resources: [%s], verbs: [list]})",
				resource.GroupResource(), resource.Group, resource.Resource)
		case err != nil:
			return nil, nil, err
		}
	}
	return documents, unread, nil
}
