package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// policyCheckAnswer is what policy check prints.
type policyCheckAnswer struct {
	typed
	// Problems are what is wrong with the policy by itself: an operator would apply nothing of it.
	Problems []string `json:"problems,omitempty"`
	// Pools are the OpenshiftNodePools by name; none when there are Problems.
	Pools []poolUnderPolicy `json:"pools"`
	Notes []string          `json:"notes,omitempty"`
}

// poolUnderPolicy is what the policy would do to one OpenshiftNodePool.
type poolUnderPolicy struct {
	Name string `json:"name"`
	// TypesNow and TypesAfter count the instance types of the catalogue that are left; nil where that is not known.
	TypesNow   *int `json:"typesNow,omitempty"`
	TypesAfter *int `json:"typesAfter,omitempty"`
	// Nodes are those that the pool has. Of them, Replaced drift and are replaced, and Held drift and cannot go.
	Nodes    int `json:"nodes"`
	Replaced int `json:"replaced,omitempty"`
	Held     int `json:"held,omitempty"`
	// Refused is why the operator would not write the pool, and Conflicts are the labels for which nothing is left, or
	// too little, with both sides.
	Refused   []string `json:"refused,omitempty"`
	Conflicts []string `json:"conflicts,omitempty"`
}

// checking holds the flags of policy check.
type checking struct {
	files      []string
	catalogue  string
	now        planTime
	connection *Connection
	printing   *printing
}

func policyCheck(config Config) *cobra.Command {
	with := &checking{}
	command := &cobra.Command{
		Use: "check", Short: "Show what an AutoNodePolicy would do to the pools of a hosted cluster",
		Args: cobra.NoArgs,
		Long: `Show what an AutoNodePolicy would do before you apply it: what is wrong with it, which instance
types it leaves to each OpenshiftNodePool, which pools would launch nothing any more, and which
nodes would be replaced. It merges policy and pools as joiner-operator does, and plans with the
engine of the controller. Nothing is written.

-f names the policy. If the files contain OpenshiftNodePools, it checks those, with the nodes and
pods beside them. Otherwise, or with a flag that names a cluster, it checks those of the hosted
cluster.

Exit code: 0 nothing is refused, no pool becomes empty and no node is replaced; 1 one of these
would happen; 2 failed.`,
		Example: "  joinerctl policy check -f policy.yaml --kubeconfig hosted.kubeconfig\n" +
			"  joinerctl policy check -f examples/policycheck",
		RunE: func(command *cobra.Command, _ []string) error { return with.run(command.Context(), config) },
	}
	command.Flags().StringArrayVarP(&with.files, "filename", "f", nil,
		"file or directory with the AutoNodePolicy, and OpenshiftNodePools to check it on (.yaml, .yml, .json), or - "+
			"for standard input; may be repeated")
	command.Flags().StringVar(&with.catalogue, "catalogue", catalogueAuto,
		"instance types and prices: auto, aws, default, or a file")
	with.now.flag(command)
	with.now.costs.flags(command)
	with.connection, with.printing = connects(command), prints(command)
	return command
}

func (c *checking) run(ctx context.Context, config Config) error {
	printer, err := c.printing.printer(config)
	if err != nil {
		return err
	}
	if len(c.files) == 0 {
		return errors.New("-f is missing: name a file with the AutoNodePolicy, or - for standard input")
	}
	objects, err := readFiles(config.In, c.files)
	if err != nil {
		return err
	}
	found, err := sorted(fromFiles(objects))
	if err != nil {
		return err
	}
	if len(found.policies) != 1 {
		return fmt.Errorf("the files of -f have %d AutoNodePolicies: want the one to check", len(found.policies))
	}
	from := fromFilesOnly
	if len(found.wrappers) == 0 || c.connection.named() != "" {
		if found.wrappers, found.others, found.unread, err = hosted(ctx, config, c.connection,
			c.now.costs.resources()); err != nil {
			return err
		}
		from = fromLive
	}
	now, err := c.now.at()
	if err != nil {
		return err
	}
	answer, world, offered, err := found.check(c.catalogue, c.now.costs, now)
	if err != nil {
		return err
	}
	footer := ""
	if world != nil {
		footer = sources(world, from, offered)
	}
	return report(config.Out, printer, answer, footer)
}

// underPolicy is the input of policy check.
type underPolicy struct {
	policies []hypershiftv1beta1.AutoNodePolicy
	wrappers []hypershiftv1beta1.OpenshiftNodePool
	others   []whatif.Document
	unread   []string
}

// sorted sorts documents by kind. A field that a kind does not have is an error.
func sorted(documents []whatif.Document) (found underPolicy, err error) {
	for _, d := range documents {
		switch kind := (&unstructured.Unstructured{Object: d.Content}).GroupVersionKind(); kind.GroupKind() {
		case hypershiftv1beta1.GroupVersion().WithKind("AutoNodePolicy").GroupKind():
			found.policies, err = decodedInto(found.policies, d)
		case hypershiftv1beta1.GroupVersion().WithKind("OpenshiftNodePool").GroupKind():
			found.wrappers, err = decodedInto(found.wrappers, d)
		default:
			found.others = append(found.others, d)
		}
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

func decodedInto[T any](list []T, d whatif.Document) ([]T, error) {
	var one T
	data, err := json.Marshal(d.Content)
	if err == nil {
		decoder := json.NewDecoder(bytes.NewReader(data))
		if !d.Stored { // a cluster may have newer fields
			decoder.DisallowUnknownFields()
		}
		err = decoder.Decode(&one)
	}
	if err != nil {
		o := unstructured.Unstructured{Object: d.Content}
		return list, fmt.Errorf("%s: %s %s: %w", d.Where, o.GetKind(), o.GetName(), err)
	}
	return append(list, one), nil
}

// hosted reads the pools of a hosted cluster, and what they are planned with.
func hosted(ctx context.Context, config Config, to *Connection, resources []whatif.Resource) (
	wrappers []hypershiftv1beta1.OpenshiftNodePool, others []whatif.Document, unread []string, err error) {
	if config.Client == nil {
		return nil, nil, nil, errNoCluster(errors.New("no kubeconfig is known"))
	}
	client, err := config.Client(*to)
	if err != nil {
		return nil, nil, nil, errNoCluster(err)
	}
	resource := hypershiftv1beta1.GroupVersion().WithResource("openshiftnodepools")
	err = eachObject(ctx, client, resource, func(o *unstructured.Unstructured) (err error) {
		wrappers, err = decodedInto(wrappers, whatif.Document{Where: "the cluster", Content: o.Object, Stored: true})
		return err
	})
	if err != nil {
		return nil, nil, nil, err
	}
	if len(wrappers) == 0 {
		return nil, nil, nil,
			errors.New("there is no OpenshiftNodePool among the files, and none in the cluster: ask the " +
				"hosted cluster, a management cluster has none")
	}
	others, missing, err := readWhole(ctx, client, resources,
		func(d whatif.Document) whatif.Document { return d }) // a policy needs whole objects
	if err != nil {
		return nil, nil, nil, err
	}
	more, lacking, err := readWorkloads(ctx, client)
	return wrappers, append(others, more...), notLookedAt(append(missing, lacking...)), err
}

// check merges and plans. The world is nil if the policy itself is wrong.
func (u underPolicy) check(catalogue string, with costs,
	now time.Time) (policyCheckAnswer, *whatif.World, offers, error) {
	answer := policyCheckAnswer{typed: ofKind("PolicyCheck"), Pools: []poolUnderPolicy{}, Notes: u.unread}
	policy := &u.policies[0]
	for _, problem := range merge.Check(policy) {
		answer.Problems = append(answer.Problems, problem.String())
	}
	if len(answer.Problems) > 0 {
		return answer, nil, offers{}, nil
	}
	before, change := slices.Clone(u.others), []whatif.Document{}
	for i := range u.wrappers {
		verdict, plain, merged, err := under(policy, &u.wrappers[i])
		if err != nil {
			return answer, nil, offers{}, err
		}
		answer.Pools = append(answer.Pools, verdict)
		if plain != nil && !has(before, *plain) {
			before = append(before, *plain)
		}
		if merged != nil {
			change = append(change, *merged)
		}
	}
	slices.SortFunc(answer.Pools, func(a, b poolUnderPolicy) int { return strings.Compare(a.Name, b.Name) })
	before, notes := withClasses(append(before, change...), before)
	answer.Notes = append(answer.Notes, notes...)
	world, offered, err := pictureAt(before, catalogue, with, now)
	if err != nil {
		return answer, nil, offers{}, err
	}
	compared, err := world.Compare(whatif.Change{Documents: change}, whatif.UntilQuiet)
	if err != nil {
		return answer, nil, offers{}, err
	}
	after, _, err := pictureAt(replaced(before, change), catalogue, with, now)
	if err != nil {
		return answer, nil, offers{}, err
	}
	for i := range answer.Pools {
		answer.Pools[i].counted(before, world, after, compared)
	}
	return answer, world, offered, nil
}

// under merges a policy with a pool. It returns a first verdict, the NodePool without a policy, and the NodePool with
// the policy, nil if none would be written.
func under(policy *hypershiftv1beta1.AutoNodePolicy,
	wrapper *hypershiftv1beta1.OpenshiftNodePool) (verdict poolUnderPolicy,
	plain, merged *whatif.Document, err error) {
	verdict = poolUnderPolicy{Name: wrapper.Name}
	settings := merge.NodePoolSettings{
		NodeClasses: []schema.GroupKind{{Group: "karpenter.kwok.sh", Kind: "KWOKNodeClass"}},
	}
	result := merge.NodePool(policy, wrapper, settings)
	for _, problem := range result.Problems {
		verdict.Refused = append(verdict.Refused, problem.String())
	}
	for _, conflict := range result.Conflicts {
		verdict.Conflicts = append(verdict.Conflicts, conflict.String())
	}
	for _, shortage := range result.MinValues {
		verdict.Conflicts = append(verdict.Conflicts, shortage.String())
	}
	plain, err = documentOf(merge.NodePool(nil, wrapper, settings))
	if err == nil {
		merged, err = documentOf(result)
	}
	return verdict, plain, merged, err
}

func documentOf(of merge.NodePoolResult) (*whatif.Document, error) {
	if of.NodePool == nil {
		return nil, nil
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of.NodePool)
	if err != nil {
		return nil, err
	}
	delete(content, "status")
	content["apiVersion"], content["kind"] = "karpenter.sh/v1", "NodePool"
	return &whatif.Document{Where: "OpenshiftNodePool " + of.NodePool.Name, Content: content}, nil
}

func has(documents []whatif.Document, one whatif.Document) bool {
	return slices.ContainsFunc(documents, func(d whatif.Document) bool { return identity(d) == identity(one) })
}

// replaced returns documents in which those of change replace those with the same identity.
func replaced(documents, change []whatif.Document) []whatif.Document {
	kept := slices.DeleteFunc(slices.Clone(documents), func(d whatif.Document) bool { return has(change, d) })
	return append(kept, change...)
}

// withClasses adds node classes that pools name and that are missing. A file with a policy seldom has them, and their
// offers come from the catalogue anyway.
func withClasses(pools, documents []whatif.Document) (all []whatif.Document, notes []string) {
	all = documents
	for _, pool := range pools {
		ref, found, _ := unstructured.NestedStringMap(pool.Content, "spec", "template", "spec", "nodeClassRef")
		kind, _ := pool.Content["kind"].(string)
		if !found || kind != "NodePool" {
			continue
		}
		class := unstructured.Unstructured{Object: map[string]any{"kind": ref["kind"]}}
		class.SetName(ref["name"])
		switch ref["kind"] {
		case ec2NodeClass:
			class.SetAPIVersion("karpenter.k8s.aws/v1")
			terms := []any{map[string]any{"tags": map[string]any{"of": "no account"}}}
			class.Object["spec"] = map[string]any{"role": "unknown", "subnetSelectorTerms": terms,
				"securityGroupSelectorTerms": terms,
				"amiSelectorTerms":           []any{map[string]any{"alias": "al2023@latest"}}}
		case "KWOKNodeClass":
			class.SetAPIVersion("karpenter.kwok.sh/v1alpha1")
		default:
			continue
		}
		one := whatif.Document{Where: "a node class that is not there", Content: class.Object}
		if !has(all, one) {
			all = append(all, one)
			notes = append(notes, fmt.Sprintf("%s %s is not there; it is taken to offer the whole catalogue",
				ref["kind"], ref["name"]))
		}
	}
	return all, notes
}

// counted fills in what both snapshots of the cluster and the comparison say about the pool.
func (p *poolUnderPolicy) counted(documents []whatif.Document, before, after *whatif.World,
	compared whatif.Comparison) {
	for _, d := range documents {
		o := unstructured.Unstructured{Object: d.Content}
		if o.GetKind() == "NodeClaim" && o.GetLabels()["karpenter.sh/nodepool"] == p.Name {
			p.Nodes++
		}
	}
	if left, _, known := before.Types(p.Name); known {
		p.TypesNow = &left
	}
	if len(p.Refused) > 0 {
		return // the NodePool stays as it was written before
	}
	if left, _, known := after.Types(p.Name); known {
		p.TypesAfter = &left
	}
	for _, node := range compared.Nodes {
		if node.Pool != p.Name || node.Reason != "Drifted" {
			continue
		}
		switch node.Fate {
		case whatif.Replaced, whatif.Goes:
			p.Replaced++
		case whatif.Held:
			p.Held++
		}
	}
}

// empty reports whether the policy leaves the pool no instance type that it had.
func (p poolUnderPolicy) empty() bool {
	return p.TypesAfter != nil && *p.TypesAfter == 0 && (p.TypesNow == nil || *p.TypesNow > 0)
}

// clean reports whether there is nothing to report about the pool.
func (p poolUnderPolicy) clean() bool {
	return !p.empty() && len(p.Refused)+len(p.Conflicts)+p.Replaced+p.Held == 0
}

// result describes what would happen to the pool, the worst first.
func (p poolUnderPolicy) result() string {
	var parts []string
	for _, why := range p.Refused {
		parts = append(parts, "not written: "+why)
	}
	for _, conflict := range p.Conflicts {
		parts = append(parts, "launches nothing: "+conflict)
	}
	if len(parts) == 0 && p.empty() {
		parts = append(parts, "launches nothing: no instance type of the catalogue is left")
	}
	if p.Replaced > 0 {
		parts = append(parts, "replaces nodes that drift: "+fmt.Sprint(p.Replaced))
	}
	if p.Held > 0 {
		parts = append(parts, "nodes that drift and cannot go: "+fmt.Sprint(p.Held))
	}
	return cmp.Or(strings.Join(parts, "; "), "-")
}

// Clean reports whether the policy refuses nothing, empties no pool and replaces no node.
func (a policyCheckAnswer) Clean() bool {
	return len(a.Problems) == 0 && !slices.ContainsFunc(a.Pools, func(p poolUnderPolicy) bool { return !p.clean() })
}

// Names returns the pools that the policy would affect.
func (a policyCheckAnswer) Names() []string {
	var names whatif.Names
	for _, p := range a.Pools {
		if !p.clean() {
			names.Add("OpenshiftNodePool", "", p.Name)
		}
	}
	return names.List()
}

// Rows implements printer.Rowed.
func (policyCheckAnswer) Rows() string { return "pools" }

// WriteText writes the table.
func (a policyCheckAnswer) WriteText(out io.Writer) error { return a.WriteTable(out, false, true) }

// WriteTable writes a line for each pool.
func (a policyCheckAnswer) WriteTable(out io.Writer, _, headers bool) error {
	if len(a.Problems) > 0 {
		_, err := fmt.Fprintf(out, "The policy is not valid, and nothing of it would be applied:\n  %s\n",
			strings.Join(a.Problems, "\n  "))
		return err
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	if headers {
		fmt.Fprintln(w, "POOL\tTYPES NOW\tAFTER\tNODES\tDRIFT\tRESULT")
	}
	shown := func(n *int) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	for _, p := range a.Pools {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\n", p.Name, shown(p.TypesNow), shown(p.TypesAfter), p.Nodes,
			p.Replaced+p.Held, p.result())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, note := range a.Notes {
		fmt.Fprintln(out, "note: "+note)
	}
	return nil
}
