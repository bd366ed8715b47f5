package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	policyv1beta1 "github.com/joiner-autoscaler/joiner/autonodepolicy/api/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// policyAnswer is what policy status prints: a line for each policy, ordered by namespace and name.
type policyAnswer struct {
	typed
	Policies []policyStanding `json:"policies"`
}

// policyStanding is how one policy stands, by what its operator has written on it.
type policyStanding struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Ready, Conforming and Protected are the conditions of these types: True, False, Unknown, or "" where nobody has
	// written one.
	Ready      string `json:"ready"`
	Conforming string `json:"conforming"`
	Protected  string `json:"protected"`
	// Reason is that of Ready, and Since when it became so.
	Reason string       `json:"reason,omitempty"`
	Since  *metav1.Time `json:"since,omitempty"`
	// Stale says that the operator has not seen the policy as it is now.
	Stale bool `json:"stale,omitempty"`
	// LeftToDo is what is to be looked at; nothing when all is well.
	LeftToDo []string `json:"leftToDo,omitempty"`
}

func policyCommands(config Config) *cobra.Command {
	command := parent("policy", "Show the state of AutoNodePolicies, and what one would do", "")
	command.AddCommand(policyCheck(config), policyStatus(config))
	return command
}

func policyStatus(config Config) *cobra.Command {
	var files []string
	var namespace string
	var all bool
	var connection *Connection
	var printing *printing
	command := &cobra.Command{
		Use: "status", Short: "Show the state of each AutoNodePolicy of a management cluster", Args: cobra.NoArgs,
		Long: `Show for each AutoNodePolicy of a management cluster whether it is applied, whether everything in
its hosted cluster matches it, and whether its admission policies are in force. It also shows what
is left to do. It reads the conditions that each joiner-operator writes, and marks what an
operator has not seen yet. Nothing is ever written.

It shows all namespaces; -n shows one. It needs the right to list autonodepolicies there.

Exit code: 0 every policy is applied and everything matches; 1 one is not, or its
operator does not say so; 2 failed.`,
		Example: "  joinerctl policy status\n  joinerctl policy status -n hcp-b -o jsonpath='{.policies[*].leftToDo}'",
		RunE: func(command *cobra.Command, _ []string) error {
			printer, err := printing.printer(config)
			if err != nil {
				return err
			}
			answer := policyAnswer{typed: ofKind("PolicyStatus"), Policies: []policyStanding{}}
			policies, err := policiesOf(command.Context(), config, connection, files, namespace)
			if err != nil {
				return err
			}
			for i := range policies {
				answer.Policies = append(answer.Policies, standingOf(&policies[i]))
			}
			slices.SortFunc(answer.Policies, func(a, b policyStanding) int {
				return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
			})
			return report(config.Out, printer, answer, "")
		},
	}
	command.Flags().StringArrayVarP(&files, "filename", "f", nil,
		"file or directory with AutoNodePolicies (.yaml, .yml, .json), or - for standard input, instead of a cluster; "+
			"may be repeated")
	command.Flags().StringVarP(&namespace, "namespace", "n", "", "show only the policies of this namespace")
	command.Flags().BoolVarP(&all, "all-namespaces", "A", false, "show the policies of all namespaces, as without -n")
	connection, printing = connects(command), prints(command)
	command.MarkFlagsMutuallyExclusive("filename", "kubeconfig")
	command.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
	return command
}

func policyResource() schema.GroupVersionResource {
	return policyv1beta1.GroupVersion().WithResource("autonodepolicies")
}

// policiesOf reads the policies of files, or of a cluster; "" means all namespaces.
func policiesOf(ctx context.Context, config Config, connection *Connection, files []string, namespace string) (
	list []policyv1beta1.AutoNodePolicy, err error) {
	add := func(content map[string]any) error {
		var policy policyv1beta1.AutoNodePolicy
		data, err := json.Marshal(content)
		if err == nil {
			err = json.Unmarshal(data, &policy)
		}
		if err != nil {
			named := unstructured.Unstructured{Object: content}
			return fmt.Errorf("AutoNodePolicy %s/%s: %w", named.GetNamespace(), named.GetName(), err)
		}
		if namespace == "" || policy.Namespace == namespace {
			list = append(list, policy)
		}
		return nil
	}
	if len(files) > 0 {
		objects, err := readFiles(config.In, files)
		if err != nil {
			return nil, err
		}
		for _, o := range fromFiles(objects) {
			kind := (&unstructured.Unstructured{Object: o.Content}).GroupVersionKind()
			if kind.GroupKind() != policyv1beta1.GroupVersion().WithKind("AutoNodePolicy").GroupKind() {
				continue
			}
			if err := add(o.Content); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	client, err := config.Client(*connection)
	if err != nil {
		return nil, err
	}
	resource := policyResource()
	var in dynamic.ResourceInterface = client.Resource(resource)
	if namespace != "" {
		in = client.Resource(resource).Namespace(namespace)
	}
	page := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return in.List(ctx, options)
	}
	visit := func(o *unstructured.Unstructured) error { return add(o.Object) }
	err = each(ctx, resource.GroupResource().String(), page, metav1.ListOptions{}, visit)
	switch {
	case apierrors.IsForbidden(err):
		return nil, mayNotList(resource)
	case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
		return nil,
			fmt.Errorf("the cluster has no AutoNodePolicies (%s): ask the management cluster, guests have none",
				resource.GroupResource())
	}
	return list, err
}

// standingOf returns the state of a policy.
func standingOf(policy *policyv1beta1.AutoNodePolicy) policyStanding {
	s := policyStanding{Namespace: policy.Namespace, Name: policy.Name}
	if policy.Name != policyv1beta1.PolicyName {
		s.LeftToDo = []string{"it is ignored: an AutoNodePolicy must be named " + policyv1beta1.PolicyName}
		return s
	}
	for _, c := range policy.Status.Conditions {
		switch c.Type {
		case hypershiftv1beta1.ConditionTypeReady:
			s.Ready, s.Reason, s.Since = string(c.Status), c.Reason, &c.LastTransitionTime
			s.Stale = c.ObservedGeneration < policy.Generation
		case hypershiftv1beta1.ConditionTypeConforming:
			s.Conforming = string(c.Status)
		case hypershiftv1beta1.ConditionTypeProtected:
			s.Protected = string(c.Status)
		case hypershiftv1beta1.ConditionTypeProtectedOnce:
			continue // Protected says so already
		}
		if c.Status != metav1.ConditionTrue {
			s.LeftToDo = append(s.LeftToDo, c.Type+": "+firstOf(cmp.Or(c.Message, c.Reason, "is "+string(c.Status))))
		}
	}
	switch {
	case s.Ready == "":
		s.LeftToDo = append(s.LeftToDo,
			"no joiner-operator has said anything of it: it does not run, or may not read it")
	case s.Stale:
		s.LeftToDo = append(s.LeftToDo,
			fmt.Sprintf("the joiner-operator has not seen generation %d of it: it does not run, "+
				"or may not read it", policy.Generation))
	}
	return s
}

// firstOf returns the first line of a message, in a form that fits a table.
func firstOf(message string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return strings.Join(strings.Fields(first), " ")
}

// Clean reports whether every policy is applied and complied with.
func (a policyAnswer) Clean() bool {
	return !slices.ContainsFunc(a.Policies, func(s policyStanding) bool { return len(s.LeftToDo) > 0 })
}

// Names returns the policies with something left to do.
func (a policyAnswer) Names() []string {
	var names whatif.Names
	for _, s := range a.Policies {
		if len(s.LeftToDo) > 0 {
			names.Add("AutoNodePolicy", s.Namespace, s.Name)
		}
	}
	return names.List()
}

// Rows implements printer.Rowed.
func (policyAnswer) Rows() string { return "policies" }

// WriteText writes the table.
func (a policyAnswer) WriteText(out io.Writer) error { return a.WriteTable(out, false, true) }

// leftShown bounds how much of the things left to do a narrow table shows for a policy, in characters.
const leftShown = 100

// WriteTable writes a line for each policy. A wide table has everything that is left to do, each on its own line.
func (a policyAnswer) WriteTable(out io.Writer, wide, headers bool) error {
	if len(a.Policies) == 0 {
		_, err := fmt.Fprintln(out, "There is no AutoNodePolicy.")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	if headers {
		fmt.Fprintln(w, "NAMESPACE\tNAME\tREADY\tREASON\tSINCE\tCONFORMING\tPROTECTED\tLEFT TO DO")
	}
	for _, s := range a.Policies {
		ready, since, left := cmp.Or(s.Ready, "?"), "-", "-"
		if s.Stale {
			ready += "?"
		}
		if s.Since != nil && !s.Since.IsZero() {
			since = s.Since.UTC().Format(time.RFC3339)
		}
		if len(s.LeftToDo) > 0 {
			left = s.LeftToDo[0]
			if more := len(s.LeftToDo) - 1; !wide && more > 0 {
				left = fmt.Sprintf("%s (and %d more: -o wide)", whatif.Shortened(left, leftShown), more)
			} else if !wide {
				left = whatif.Shortened(left, leftShown)
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.Namespace, s.Name, ready, cmp.Or(s.Reason, "-"), since,
			cmp.Or(s.Conforming, "?"), cmp.Or(s.Protected, "?"), left)
		for i := 1; wide && i < len(s.LeftToDo); i++ {
			fmt.Fprintf(w, "\t\t\t\t\t\t\t%s\n", s.LeftToDo[i])
		}
	}
	return w.Flush()
}
