package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"

	"github.com/joiner-autoscaler/joiner/internal/admission/audit"
	"github.com/joiner-autoscaler/joiner/nodescheduling/api/v1alpha1"
	"github.com/joiner-autoscaler/joiner/nodescheduling/door"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// maxPolicy bounds the size of a policy file, in bytes.
const maxPolicy = 4 << 20

// living selects pods that have not ended: ended pods occupy no node.
const living = "status.phase!=Succeeded,status.phase!=Failed"

func auditControlPlane(config Config) *cobra.Command {
	var policyFile, webhook string
	var connection *Connection
	var printing *printing
	var suggested suggestion
	command := &cobra.Command{
		Use: "control-plane", Short: "Report the pods that the node scheduling policy would refuse",
		Args: cobra.NoArgs,
		Long: `Report the pods on protected nodes that are not authorized, and the pods whose successors would be
refused because they aim at these nodes. The mode of a group does not matter. The policy is that
of --policy-file, the file that the plugin or the webhook reads, plus what the live source adds.
That source is the cluster's Scheduler, or NodeSchedulingGroups where Scheduler has no field for
it. The report begins with that source, and how to write it. The guide is
docs/control-plane-protection.md.

A pod does not say who created it, so only its namespace counts. The audit looks at pods that run,
at pods that wait, and at the pod templates of Deployments, StatefulSets, DaemonSets and CronJobs.
Nothing is ever written.

Classes: OnProtectedNode, AimsAtProtectedNode, OverrideWaiting, OverrideInUse, and UnjudgedPod
(in --webhook-namespace, and not of the Deployment joiner-webhook). It also finds protected nodes
without a taint (NodeWithoutTaint), and entries of authorizedUsers that do not say which namespace
they mean.

With --suggest it writes, instead, the list of authorizedUsers that these pods need: who they belong
to, who creates them and who binds them. The class of an entry is platform (part of OpenShift),
known (covered by an existing entry) or unknown. With -o yaml, unknown entries are comments, since
somebody has to decide about them. Pods do not show who created or bound them by hand: --audit-log
does, for the mode Inform.

Exit code: 0 nothing is left, 1 something is left, 2 the audit failed. With --suggest: 1 entries
need to be added.`,
		Example: `  joinerctl audit control-plane --policy-file policy.yaml
  kubectl get configmap joiner-webhook-policy -n joiner-webhook -o jsonpath='{.data.policy\.yaml}' |
    joinerctl audit control-plane --policy-file - --webhook-namespace joiner-webhook
  joinerctl audit control-plane --policy-file policy.yaml --suggest --audit-log audit.log -o yaml`,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := suggested.check(); err != nil {
				return err
			}
			printer, err := printing.printer(config)
			if err != nil {
				return err
			}
			policy, err := readPolicy(config.In, policyFile)
			if err != nil {
				return err
			}
			sources := evaluator.Sources{Config: policy, SelfNamespace: webhook}
			if suggested.on {
				return suggested.run(command.Context(), config, connection, sources, printer)
			}
			found, err := auditCluster(command.Context(), config, connection, sources)
			if err != nil {
				return err
			}
			return report(config.Out, printer, auditAnswer{typed: ofKind("ControlPlaneAudit"), Report: found}, "")
		},
	}
	command.Flags().StringVar(&policyFile, "policy-file", "",
		"file with the NodeSchedulingPolicyConfig, or - for standard input (required)")
	command.Flags().StringVar(&webhook, "webhook-namespace", "",
		"namespace of joiner-webhook, whose pods the webhook does not judge; leave it out for the plugin")
	suggested.flags(command)
	connection, printing = connects(command), prints(command)
	return command
}

func readPolicy(in io.Reader, name string) (*v1alpha1.NodeSchedulingPolicyConfig, error) {
	switch name {
	case "":
		return nil, errors.New("--policy-file is missing: give the file with the " + v1alpha1.Kind +
			" that the plugin or the webhook reads")
	case "-":
	default:
		file, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("--policy-file: %w", err)
		}
		defer file.Close()
		in = file
	}
	document, err := io.ReadAll(io.LimitReader(in, maxPolicy))
	if err != nil {
		return nil, fmt.Errorf("--policy-file %s: %w", name, err)
	}
	policy, err := evaluator.Decode(document)
	if err != nil {
		return nil, fmt.Errorf("--policy-file %s: %w", name, err)
	}
	return policy, nil
}

// auditCluster reads the live source and the nodes first, and then the pods, page by page.
func auditCluster(ctx context.Context, config Config, connection *Connection, sources evaluator.Sources) (audit.Report,
	error) {
	found, err := readProtected(ctx, config, connection, sources)
	if err != nil {
		return audit.Report{}, err
	}
	policy, ignored, err := evaluator.New(found.sources)
	if err != nil {
		return audit.Report{}, err
	}
	auditor := audit.New(audit.Config{Policy: policy, Ignored: ignored, Live: found.live, Cluster: found.ports,
		Owner: owners(ctx, found.clients)})
	auditor.LookAtNodes()
	if err := auditor.LookAtEntries(); err != nil {
		return audit.Report{}, err
	}
	if err := eachPod(ctx, found.clients, auditor.Look); err != nil {
		return audit.Report{}, err
	}
	if err := eachWorkload(ctx, found.clients, auditor.LookAtWorkload); err != nil {
		return audit.Report{}, err
	}
	return auditor.Report(), nil
}

// protected is what both audit commands read of a cluster before its pods.
type protected struct {
	clients kubernetes.Interface
	sources evaluator.Sources // including the live one
	live    audit.LiveConfig
	ports   evaluator.Cluster
}

func readProtected(ctx context.Context, config Config, connection *Connection, sources evaluator.Sources) (protected,
	error) {
	reached, err := config.both(connection)
	if err != nil {
		return protected{}, err
	}
	client, clients := reached.dynamic, reached.typed
	reader := door.NewLiveReader(client, clients.Discovery().RESTClient())
	live, err := reader.Read(ctx)
	if err != nil {
		return protected{}, err
	}
	sources = live.Add(sources)
	found := audit.LiveConfig{Source: live.Source, Served: live.Served, Scheduler: live.Scheduler}
	if found.Groups, _, err = reader.Groups(ctx); err != nil {
		return protected{}, err
	}
	var all []*corev1.Node
	if err := eachNode(ctx, clients, func(node *corev1.Node) error {
		all = append(all, node)
		return nil
	}); err != nil {
		return protected{}, err
	}
	nodes, err := door.FixedNodes(sources.Config, all)
	if err != nil {
		return protected{}, err
	}
	ports := door.Ports(clients, nodes, door.NamespacesOf(nil, clients), func() bool { return true })(ctx)
	ports.Namespace = onceEach(ports.Namespace)
	ports.Allowed = once(ports.Allowed)
	return protected{clients: clients, sources: sources, ports: ports, live: found}, nil
}

func eachNode(ctx context.Context, clients kubernetes.Interface, visit func(*corev1.Node) error) error {
	return each(ctx, "nodes", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return clients.CoreV1().Nodes().List(ctx, o)
	}, metav1.ListOptions{}, visit)
}

func eachPod(ctx context.Context, clients kubernetes.Interface, visit func(*corev1.Pod) error) error {
	pods := clients.CoreV1().Pods(metav1.NamespaceAll)
	return each(ctx, "pods", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return pods.List(ctx, o)
	}, metav1.ListOptions{FieldSelector: living}, visit)
}

// eachWorkload visits workloads that make pods but may have none at the moment. Standalone ReplicaSets and Jobs are
// only seen through their pods: reading all of them would cost more than the rest of the audit.
func eachWorkload(ctx context.Context, clients kubernetes.Interface,
	visit func(evaluator.WorkloadObject, string) error) error {
	apps, batch := clients.AppsV1(), clients.BatchV1()
	for _, of := range []struct {
		what, kind string
		read       pager.ListPageFunc
	}{
		{"deployments", "Deployment", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return apps.Deployments(metav1.NamespaceAll).List(ctx, o)
		}},
		{"statefulsets", "StatefulSet", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return apps.StatefulSets(metav1.NamespaceAll).List(ctx, o)
		}},
		{"daemonsets", "DaemonSet", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return apps.DaemonSets(metav1.NamespaceAll).List(ctx, o)
		}},
		{"cronjobs", "CronJob", func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return batch.CronJobs(metav1.NamespaceAll).List(ctx, o)
		}},
	} {
		err := each(ctx, of.what, of.read, metav1.ListOptions{}, func(o evaluator.WorkloadObject) error {
			return visit(o, of.kind)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// once caches the answers of the authorizer: the question comes up for every pod, and pods of a namespace share the
// answer.
func once(ask func(evaluator.Access) (bool, error)) func(evaluator.Access) (bool, error) {
	type question struct{ user, verb, group string }
	known := map[question]bool{}
	return func(access evaluator.Access) (bool, error) {
		key := question{access.User.Name, string(access.Verb), access.Group}
		if answer, asked := known[key]; asked {
			return answer, nil
		}
		answer, err := ask(access)
		if err == nil {
			known[key] = answer
		}
		return answer, err
	}
}

// onceEach asks once for each namespace: entries and pods name the same ones.
func onceEach(ask func(string) (string, bool, error)) func(string) (string, bool, error) {
	type answer struct {
		uid    string
		exists bool
	}
	known := map[string]answer{}
	return func(name string) (string, bool, error) {
		if seen, asked := known[name]; asked {
			return seen.uid, seen.exists, nil
		}
		uid, exists, err := ask(name)
		if err == nil {
			known[name] = answer{uid, exists}
		}
		return uid, exists, err
	}
}

// owners finds the workload behind a controller: the Deployment of a ReplicaSet, the CronJob of a Job. If the
// controller cannot be read, for example without the right, it returns the controller itself.
func owners(ctx context.Context, clients kubernetes.Interface) func(string, metav1.OwnerReference) audit.Owner {
	known := map[string]audit.Owner{}
	return func(namespace string, controller metav1.OwnerReference) audit.Owner {
		key := controller.Kind + "/" + namespace + "/" + controller.Name
		if owner, asked := known[key]; asked {
			return owner
		}
		owner := audit.Owner{Kind: controller.Kind, Name: controller.Name}
		var object metav1.Object
		var err error
		switch controller.APIVersion + "/" + controller.Kind {
		case "apps/v1/ReplicaSet":
			object, err = clients.AppsV1().ReplicaSets(namespace).Get(ctx, controller.Name, metav1.GetOptions{})
		case "batch/v1/Job":
			object, err = clients.BatchV1().Jobs(namespace).Get(ctx, controller.Name, metav1.GetOptions{})
		}
		if object != nil && err == nil {
			if above := metav1.GetControllerOfNoCopy(object); above != nil {
				owner = audit.Owner{Kind: above.Kind, Name: above.Name}
			}
		}
		known[key] = owner
		return owner
	}
}
