package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/internal/takeover"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// takeoverChecking holds the flags of takeover check.
type takeoverChecking struct {
	explainer
	values, from, failOn   string
	back, fix, dryRun, yes bool
}

func takeoverCheck(config Config) *cobra.Command {
	with := &takeoverChecking{}
	command := &cobra.Command{
		Use: "check", Short: "Show what Joiner would do differently on a cluster that Karpenter " +
			"runs", Args: cobra.NoArgs,
		Long: `Writes to the cluster with --fix, and never without. Show what Joiner would do differently on this
cluster, before you switch. Each finding names the object, what would become of it, and what to do.
It plans with the engine of the controller. It asks no controller, so it works while Karpenter
runs.

With --back it shows what to know before Karpenter gets the cluster back: what its definitions
refuse or drop, limits that become soft, and pauses that Karpenter does not know. --fix patches
what can be patched; --fix --dry-run prints the patches. It asks before it writes, unless --yes is
given.

It reads flags and variables from Karpenter's Deployment: the one whose image or label says so, or
--from-deployment. --values is the values file that Joiner will be installed with; one written for
Karpenter's chart works too. It names everything that it may not read, and leaves it out.

docs/takeover.md lists what it checks.

Exit code: 0 nothing is found, 1 something is (with --fail-on, something of at least that weight),
2 failed, or not everything could be read and nothing was found in the rest.`,
		Example: "  joinerctl takeover check\n  joinerctl takeover check --values values.yaml --fail-on danger\n" +
			"  joinerctl takeover check --back --fix --dry-run",
		RunE: func(command *cobra.Command, _ []string) error { return with.check(command.Context(), config) },
	}
	flags := command.Flags()
	flags.StringVar(&with.values, "values", "", "values file of the chart that Joiner will be installed with")
	flags.StringVar(&with.from, "from-deployment", "",
		"Deployment of Karpenter, NAMESPACE/NAME; the default is the one whose image or label says so")
	flags.StringVar(&with.failOn, "fail-on", string(takeover.Info),
		"exit with 1 for findings of at least this weight: info, warning or danger; what passes by itself (wait) "+
			"counts as a warning")
	flags.BoolVar(&with.back, "back", false, "check the way back to Karpenter")
	flags.BoolVar(&with.fix, "fix", false, "with --back: patch what can be patched")
	flags.BoolVar(&with.dryRun, "dry-run", false, "with --fix: print the patches, and write nothing")
	flags.BoolVar(&with.yes, "yes", false, "do not ask before writing")
	flags.StringArrayVarP(&with.files, "filename", "f", nil,
		"file or directory with manifests (.yaml, .yml, .json), or - for standard input, instead of a cluster; may be repeated")
	flags.StringVar(&with.catalogue, "catalogue", catalogueAuto,
		"instance types and prices: auto, aws, default, or a file (joinerctl simulate --help)")
	with.now.flag(command)
	with.now.costs.flags(command)
	with.connection, with.printing = connects(command), prints(command)
	command.MarkFlagsMutuallyExclusive("filename", "kubeconfig")
	command.MarkFlagsMutuallyExclusive("back", "values")
	return command
}

// takeoverAnswer is what takeover check prints.
type takeoverAnswer struct {
	typed
	// Findings are the worst first.
	Findings []takeover.Finding `json:"findings"`
	// Checked are the rows of the table, by name.
	Checked []string `json:"checked"`
	// Notes say what could not be seen.
	Notes []string `json:"notes,omitempty"`

	failOn  takeover.Severity
	patches bool // whether WriteText shows them
}

// Clean reports whether no finding is as severe as --fail-on.
func (a takeoverAnswer) Clean() bool {
	return !slices.ContainsFunc(a.Findings, func(f takeover.Finding) bool {
		return !f.Patched && f.Severity.AtLeast(a.failOn)
	})
}

// Rows implements printer.Rowed.
func (takeoverAnswer) Rows() string { return "findings" }

// Names returns the objects with findings.
func (a takeoverAnswer) Names() []string {
	var names whatif.Names
	for _, f := range a.Findings {
		if f.Name != "" && f.Kind != takeover.KindSettings {
			names.Add(f.Kind, f.Namespace, f.Name)
		}
	}
	return names.List()
}

// WriteText writes the findings for people, the worst first, each with its remedy, and a summary.
func (a takeoverAnswer) WriteText(out io.Writer) error {
	var b strings.Builder
	for _, f := range a.Findings {
		fmt.Fprintf(&b, "%s: %s (%s)\n  %s\n  -> %s\n", f.Severity, f.Object(), f.Check, f.Consequence, f.Remedy)
		switch {
		case f.Patched:
			b.WriteString("  it is patched\n")
		case f.Patch != "" && a.patches:
			fmt.Fprintf(&b, "  %s\n", patchOf(f))
		}
	}
	var counts []string
	for _, severity := range []takeover.Severity{takeover.Danger, takeover.Wait, takeover.Warning, takeover.Info} {
		n := 0
		for _, f := range a.Findings {
			if f.Severity == severity {
				n++
			}
		}
		if n > 0 {
			counts = append(counts, fmt.Sprint(n, " ", severity))
		}
	}
	if len(counts) == 0 {
		counts = []string{"nothing is found"}
	}
	fmt.Fprintf(&b, "%s; checked: %s\n", strings.Join(counts, ", "), strings.Join(a.Checked, ", "))
	for _, note := range a.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// patchOf returns the command that applies the patch of a finding.
func patchOf(f takeover.Finding) string {
	namespace := ""
	if f.Namespace != "" {
		namespace = " --namespace " + f.Namespace
	}
	return fmt.Sprintf("kubectl patch %s %s%s --type=merge -p '%s'", strings.ToLower(f.Kind), f.Name, namespace,
		f.Patch)
}

func (with *takeoverChecking) check(ctx context.Context, config Config) error {
	to, err := with.printing.printer(config)
	if err != nil {
		return err
	}
	switch {
	case with.fix && !with.back:
		return errors.New("--fix is for --back: nothing is written before a takeover")
	case with.dryRun && !with.fix:
		return errors.New("--dry-run is for --fix: without it nothing is written")
	case with.fix && !with.dryRun && len(with.files) > 0:
		return errors.New("--fix writes to a cluster, and -f reads files: give --dry-run to see the patches")
	}
	answer := takeoverAnswer{typed: ofKind("TakeoverCheck"), patches: with.fix}
	if answer.failOn, err = takeover.ParseSeverity(with.failOn); err != nil {
		return err
	}
	in, unread, err := with.input(ctx, config)
	if err != nil {
		return err
	}
	world, offered, err := with.now.picture(in.Documents, with.catalogue)
	if err != nil {
		return err
	}
	in.World = world
	if in.Now, err = with.now.at(); err != nil {
		return err
	}
	judge, rows := takeover.Check, takeover.Checks()
	answer.Notes = append(in.Notes(), notLookedAt(unread)...)
	if with.back {
		judge, rows = takeover.Back, takeover.BackChecks()
		answer.Notes = append(answer.Notes, in.BackNotes()...)
	}
	if answer.Findings, err = judge(in); err != nil {
		return err
	}
	for _, row := range rows {
		answer.Checked = append(answer.Checked, row.Name)
	}
	var refused error
	if with.fix && !with.dryRun {
		if refused, err = with.patch(ctx, config, answer.Findings); err != nil {
			return err
		}
	}
	from := "cluster"
	if len(with.files) > 0 {
		from = "files"
	}
	err = report(config.Out, to, answer, sources(world, from, offered))
	switch {
	case refused != nil && (err == nil || errors.Is(err, errFindings)):
		return refused
	case err == nil && len(unread) > 0:
		return partial(unread)
	}
	return err
}

// patch writes the patches of findings, after asking. refused joins the errors of patches that were not written: the
// others were.
func (with *takeoverChecking) patch(ctx context.Context, config Config,
	findings []takeover.Finding) (refused, err error) {
	n := 0
	for _, f := range findings {
		if f.Patch != "" {
			n++
		}
	}
	if n == 0 {
		return nil, nil
	}
	if !with.yes {
		if err := config.confirm(fmt.Sprintf("patch %d objects of this cluster, so that Karpenter can read them",
			n)); err != nil {
			return nil, err
		}
	}
	client, err := config.Client(*with.connection)
	if err != nil {
		return nil, err
	}
	var faults []error
	for i := range findings {
		f := &findings[i]
		if f.Patch == "" {
			continue
		}
		resource := karpenterv1.GroupVersion().WithResource(strings.ToLower(f.Kind) + "s")
		if _, err := client.Resource(resource).Patch(ctx, f.Name, types.MergePatchType, []byte(f.Patch),
			metav1.PatchOptions{FieldManager: program}); err != nil {
			faults = append(faults, fmt.Errorf("patching %s: %w", f.Object(), err))
			continue
		}
		f.Patched = true
	}
	return errors.Join(faults...), nil
}

// input reads the cluster or the files, and the settings of both programs.
func (with *takeoverChecking) input(ctx context.Context,
	config Config) (in takeover.Input, unread []string, err error) {
	if in.Documents, unread, err = with.objects(ctx, config); err != nil {
		return in, nil, err
	}
	deployments := []unstructured.Unstructured{}
	for _, d := range in.Documents {
		if o := (unstructured.Unstructured{Object: d.Content}); o.GetKind() == "Deployment" {
			deployments = append(deployments, o)
		}
	}
	found, err := with.deployment(deployments)
	if err != nil {
		return in, nil, err
	}
	if found != nil {
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &d); err != nil {
			return in, nil, fmt.Errorf("reading Deployment %s/%s: %w", found.GetNamespace(), found.GetName(), err)
		}
		if in.Theirs, err = takeover.FromDeployment(&d); err != nil {
			return in, nil, err
		}
	}
	if with.values == "" {
		return in, unread, nil
	}
	keys, err := chartKeys()
	if err != nil {
		return in, nil, err
	}
	data, err := os.ReadFile(with.values)
	if err != nil {
		return in, nil, fmt.Errorf("--values: %w", err)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(data, &values); err != nil {
		return in, nil, fmt.Errorf("--values %s: it is no values file: %w", with.values, err)
	}
	in.Ours, in.Refused = takeover.FromValues(with.values, values, keys)
	return in, unread, nil
}

// deployment returns the Deployment that was named, or one that may be Karpenter's; nil for none.
func (with *takeoverChecking) deployment(all []unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if with.from == "" {
		return takeover.Running(all)
	}
	namespace, name, both := strings.Cut(with.from, "/")
	if !both || namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("--from-deployment is %q: want NAMESPACE/NAME", with.from)
	}
	for i := range all {
		if all[i].GetNamespace() == namespace && all[i].GetName() == name {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("--from-deployment: there is no Deployment %s that may be read", with.from)
}

// objects returns the objects to check.
func (with *takeoverChecking) objects(ctx context.Context,
	config Config) (documents []whatif.Document, unread []string, err error) {
	if len(with.files) > 0 {
		objects, err := readFiles(config.In, with.files)
		return fromFiles(objects), nil, err
	}
	if config.Client == nil {
		return nil, nil, errNoCluster(errors.New("no kubeconfig is known"))
	}
	client, err := config.Client(*with.connection)
	if err != nil {
		return nil, nil, err
	}
	documents, unread, err = readWhole(ctx, client, slices.Concat(whatif.Resources(), takeover.Resources()),
		func(d whatif.Document) whatif.Document { return d })
	if err != nil {
		return nil, nil, err
	}
	if with.back {
		own, err := ownConfigMaps(ctx, client)
		if apierrors.IsForbidden(err) {
			return documents, append(unread, "the ConfigMaps of a pause and of the first start, "+
				"for want of the right to list configmaps"), nil
		}
		return append(documents, own...), unread, err
	}
	boards, err := dashboards(ctx, client)
	if apierrors.IsForbidden(err) {
		return documents, append(unread, "configmaps with dashboards, for want of the right to list them"), nil
	}
	return append(documents, boards...), unread, err
}

// ownConfigMaps reads the ConfigMaps of a pause and of the first start.
func ownConfigMaps(ctx context.Context, client dynamic.Interface) (documents []whatif.Document, err error) {
	for _, name := range []string{translate.SwitchName, translate.TakeoverName} {
		found, err := client.Resource(configMaps()).List(ctx,
			metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			return nil, fmt.Errorf("listing configmaps: %w", err)
		}
		for _, o := range found.Items {
			if o.GetName() == name {
				documents = append(documents, whatif.Document{Where: "the cluster", Content: o.Object, Stored: true})
			}
		}
	}
	return documents, nil
}

// dashboards reads the ConfigMaps that Grafana's sidecar would read.
func dashboards(ctx context.Context, client dynamic.Interface) (documents []whatif.Document, err error) {
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.Resource(configMaps()).List(ctx, options)
	}
	err = each(ctx, "configmaps", list, metav1.ListOptions{LabelSelector: takeover.DashboardLabel},
		func(o *unstructured.Unstructured) error {
			documents = append(documents, whatif.Document{Where: "the cluster", Content: o.Object, Stored: true})
			return nil
		})
	return documents, err
}

// chartKeys returns the keys of values that the joiner chart accepts.
func chartKeys() ([]string, error) {
	data, err := charts.Files().ReadFile(charts.Joiner + "/values.schema.json")
	if err != nil {
		return nil, err
	}
	var schema properties
	if err := json.Unmarshal(data, &schema); err != nil {
		return nil, fmt.Errorf("the schema of the chart joiner: %w", err)
	}
	return schema.paths(""), nil
}

// properties is the part of a JSON schema that is read here.
type properties struct {
	Properties map[string]properties
}

// paths returns the known keys as dotted paths.
func (p properties) paths(above string) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		all = append(append(all, above+name), p.Properties[name].paths(above+name+".")...)
	}
	return all
}
