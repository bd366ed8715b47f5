package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

func explainPool(config Config) *cobra.Command {
	command, with := explaining("Explain what a NodePool launches, or why it launches nothing",
		`Explain what a NodePool would launch for the waiting pods, or why it launches nothing: what is
wrong with the pool, its node class, its launches or its limits, or where the pods go instead. It
also shows its nodes, limits and price.`,
		"0 it launches or nothing asks it to, 1 a cause holds it")
	command.Use, command.Aliases = "nodepool NAME", []string{"nodepools", "np"}
	command.Example = "  joinerctl explain nodepool gpu\n  joinerctl explain nodepool gpu -f examples/simulate"
	with.asksWhere(command, asked{leader: true})
	command.ValidArgsFunction = completes(config, with.connection,
		karpenterv1.GroupVersion().WithResource("nodepools"))
	command.RunE = func(command *cobra.Command, args []string) error {
		return with.run(command.Context(), config, func(w *whatif.World) (whatif.Explained,
			error) {
			return w.ExplainPool(args[0])
		})
	}
	return command
}

func explainClaim(config Config) *cobra.Command {
	command, with := explaining("Explain at which stage a NodeClaim is, and what holds it there",
		`Show when a NodeClaim was created, launched, registered, initialized, chosen to go and drained,
and what holds it at its current stage. The name of its node works too.`,
		"0 it is initialized, or comes to its next stage by itself, 1 a cause holds it")
	command.Use, command.Aliases = "nodeclaim NAME", []string{"nodeclaims", "nc"}
	command.Example = "  joinerctl explain nodeclaim default-k3xq2p7a"
	command.ValidArgsFunction = completes(config, with.connection,
		karpenterv1.GroupVersion().WithResource("nodeclaims"))
	command.RunE = func(command *cobra.Command, args []string) error {
		return with.run(command.Context(), config, func(w *whatif.World) (whatif.Explained,
			error) {
			return w.ExplainClaim(args[0])
		})
	}
	return command
}

// explainWorkload returns the command for one of whatif.Workloads.
func explainWorkload(config Config, kind string) *cobra.Command {
	name := strings.ToLower(kind)
	command, with := explaining(fmt.Sprintf("Explain why pods of a %s wait, grouped by cause", kind),
		fmt.Sprintf(
			`Explain why pods of a %s wait: how many wait for which cause, and what to do about
each. It also counts those that have a place. From files, the pods are those that the workload would make.`, kind),
		"0 its pods run or nodes take them, 1 a cause holds some of them")
	short := map[string]string{"Deployment": "deploy", "StatefulSet": "sts", "DaemonSet": "ds",
		"ReplicaSet": "rs"}[kind]
	command.Use, command.Aliases = name+" [NAMESPACE/]NAME", []string{name + "s"}
	if short != "" {
		command.Aliases = append(command.Aliases, short)
	}
	command.Example = fmt.Sprintf("  joinerctl explain %s shop/web\n  joinerctl explain %s -n shop web -f manifests/",
		name, name)
	with.namespaceFlag(command)
	with.allFlag(command, "show the answer of every pool, not only the nearest")
	group := appsv1.SchemeGroupVersion
	if kind == "Job" {
		group = batchv1.SchemeGroupVersion
	}
	command.ValidArgsFunction = completes(config, with.connection, group.WithResource(name+"s"))
	command.RunE = func(command *cobra.Command, args []string) error {
		workload, err := with.named(config, kind, args[0])
		if err != nil {
			return err
		}
		with.more = func(ctx context.Context, client dynamic.Interface) ([]whatif.Document, error) {
			return readIn(ctx, client, workload.Namespace, whatif.WorkloadResources(kind))
		}
		return with.run(command.Context(), config, func(w *whatif.World) (whatif.Explained, error) {
			return w.ExplainWorkload(kind, workload.Namespace, workload.Name, with.all)
		})
	}
	return command
}

func (with *explainer) namespaceFlag(command *cobra.Command) {
	command.Flags().StringVarP(&with.namespace, "namespace", "n", "",
		"namespace of a name without one; the default is that of the kubeconfig's context, or default")
}

func (with *explainer) allFlag(command *cobra.Command, usage string) {
	command.Flags().BoolVar(&with.all, "all", false, usage)
}

// asksWhere adds flags for the controller's place, and says what to read there.
func (with *explainer) asksWhere(command *cobra.Command, what asked) {
	with.asked = what
	with.where.flags(command)
}

// readIn reads required resources of one namespace.
func readIn(ctx context.Context, client dynamic.Interface, namespace string,
	resources []schema.GroupVersionResource) (documents []whatif.Document, err error) {
	for _, resource := range resources {
		list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			return client.Resource(resource).Namespace(namespace).List(ctx, options)
		}
		err := each(ctx, resource.GroupResource().String(), list, metav1.ListOptions{},
			func(o *unstructured.Unstructured) error {
				documents = append(documents, whatif.Document{Where: "the cluster", Content: o.Object, Stored: true})
				return nil
			})
		if apierrors.IsForbidden(err) {
			return nil, mayNotList(resource)
		}
		if err != nil {
			return nil, err
		}
	}
	return documents, nil
}
