package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

func explainPool(config Config) *cobra.Command {
	command, with := explaining(config, "Say what a NodePool launches, or why it launches nothing",
		`Say what a NodePool would launch for the pods that wait, or why it launches nothing: what is wrong with it, its
node class, its launches or its limits, or where the pods go instead; and its nodes, limits and price.`,
		"0 it launches or nothing asks it to, 1 a cause holds it, 2 nothing could be explained, or not everything "+
			"checked")
	command.Use, command.Aliases = "nodepool NAME", []string{"nodepools", "np"}
	command.Example = "  joinerctl explain nodepool gpu\n  joinerctl explain nodepool gpu -f examples/simulate"
	with.systemFlag(command)
	with.system = []systemObject{leaderLease}
	command.RunE = func(command *cobra.Command, args []string) error {
		return with.run(command.Context(), config, func(w *whatif.World) (whatif.Explained,
			error) {
			return w.ExplainPool(args[0])
		})
	}
	return command
}

func explainClaim(config Config) *cobra.Command {
	command, with := explaining(config, "Say at which stage a NodeClaim is, and what holds it there",
		`Say when a NodeClaim was created, launched, registered, initialized, chosen to go and drained, and what holds it
at the stage that it is at. The name of its node will do too.`,
		"0 it is initialized, or comes to its next stage by itself, 1 a cause holds it, 2 nothing could be "+
			"explained, or not everything checked")
	command.Use, command.Aliases = "nodeclaim NAME", []string{"nodeclaims", "nc"}
	command.Example = "  joinerctl explain nodeclaim default-k3xq2p7a"
	command.RunE = func(command *cobra.Command, args []string) error {
		return with.run(command.Context(), config, func(w *whatif.World) (whatif.Explained,
			error) {
			return w.ExplainClaim(args[0])
		})
	}
	return command
}

// explainWorkload is the command for one of whatif.Workloads.
func explainWorkload(config Config, kind string) *cobra.Command {
	var namespace string
	name := strings.ToLower(kind)
	command, with := explaining(config, fmt.Sprintf("Say why pods of a %s wait, grouped by cause", kind),
		fmt.Sprintf(`Say how the pods of a %s stand: how many wait for which cause, what can be done about each, and how
many have a place. From files, the pods are those that it would make.`, kind),
		"0 its pods run or nodes take them, 1 a cause holds some of them, 2 nothing could be explained, or not "+
			"everything checked")
	short := map[string]string{"Deployment": "deploy", "StatefulSet": "sts", "DaemonSet": "ds",
		"ReplicaSet": "rs"}[kind]
	command.Use, command.Aliases = name+" [NAMESPACE/]NAME", []string{name + "s"}
	if short != "" {
		command.Aliases = append(command.Aliases, short)
	}
	command.Example = fmt.Sprintf("  joinerctl explain %s shop/web\n  joinerctl explain %s -n shop web -f manifests/",
		name, name)
	namespaceFlag(command, &namespace)
	with.allFlag(command, "say what each pool says, and not only the nearest")
	command.RunE = func(command *cobra.Command, args []string) error {
		workload, err := namespacedName(kind, args[0], namespace)
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

func namespaceFlag(command *cobra.Command, namespace *string) {
	command.Flags().StringVarP(namespace, "namespace", "n", metav1.NamespaceDefault,
		"namespace of what is named without one")
}

func (with *explainer) allFlag(command *cobra.Command, usage string) {
	command.Flags().BoolVar(&with.all, "all", false, usage)
}

func (with *explainer) systemFlag(command *cobra.Command) {
	command.Flags().StringVar(&with.systemNamespace, "system-namespace", metav1.NamespaceSystem,
		"namespace in which the controller keeps its own objects")
}

// readIn reads resources of one namespace, all of which are needed.
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

// systemObject is an object of the system namespace that tells something of the controller.
type systemObject struct {
	schema.GroupVersionResource
	kind, name string
	// absent is what is not known where there is no such object; "" where that is an answer.
	absent string
}

// What is read of the system namespace: who leads, and whether disruption is paused.
var (
	leaderLease = systemObject{coordinationv1.SchemeGroupVersion.WithResource("leases"), "Lease", whatif.LeaseName,
		"whether a controller leads"}
	pauseSwitch = systemObject{corev1.SchemeGroupVersion.WithResource("configmaps"), "ConfigMap", whatif.SwitchName, ""}
)

// readSystem reads objects of the system namespace. unread says which of them may not be read, or are not there
// although something depends on them.
func readSystem(ctx context.Context, client dynamic.Interface, namespace string,
	objects []systemObject) (documents []whatif.Document, unread []string, err error) {
	for _, o := range objects {
		found, err := client.Resource(o.GroupVersionResource).Namespace(namespace).Get(ctx, o.name, metav1.GetOptions{})
		switch {
		case err == nil:
			documents = append(documents, whatif.Document{Where: "the cluster", Content: found.Object, Stored: true})
		case apierrors.IsForbidden(err):
			unread = append(unread, fmt.Sprintf("%s %s/%s, for want of the right to get it", o.GroupResource(),
				namespace, o.name))
		case apierrors.IsNotFound(err) && o.absent != "":
			unread = append(unread, fmt.Sprintf("%s: there is no %s %s/%s; --system-namespace names another namespace",
				o.absent, o.kind, namespace, o.name))
		case !apierrors.IsNotFound(err):
			return nil, nil, fmt.Errorf("reading %s %s/%s: %w", o.GroupResource(), namespace, o.name, err)
		}
	}
	return documents, unread, nil
}
