package cli

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/joiner-autoscaler/joiner/internal/history"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// recalling holds the flags of history.
type recalling struct {
	reaching
	filter       history.Filter
	since, until string
	printing     *printing
}

// mostHistoryShown is the default of --limit.
const mostHistoryShown = 100

func historyCommand(config Config) *cobra.Command {
	with := &recalling{}
	with.instead = "the ConfigMaps of the history are read instead"
	command := &cobra.Command{
		Use: "history", Short: "List decisions about nodes: launched, replaced, removed, refused, and why",
		Args: cobra.NoArgs,
		Long: `List Joiner's decisions about nodes, newest first: what it launched, replaced, removed, took back
or refused. Each has the cause, the pods, the price and the outcome.

It asks the controller that leads. If that is not possible, it reads the ConfigMaps in which the
controller keeps its decisions; those of the last minute may be missing. Nothing is ever written.
It needs the right to list leases and, in the namespace of the controller, to create
pods/portforward or to get ConfigMaps.

Exit code: 0 the history was read; 2 failed.`,
		Example: "  joinerctl history --since 2h\n  joinerctl history --nodepool default --cause Underutilized\n" +
			"  joinerctl history --pod shop/web-0 -o json",
		RunE: func(command *cobra.Command, _ []string) error {
			return with.run(command.Context(), config, time.Now())
		},
	}
	flags := command.Flags()
	flags.StringVar(&with.since, "since", "",
		"only decisions after this: a time such as 2026-11-20T08:00:00Z, or a duration such as 2h")
	flags.StringVar(&with.until, "until", "", "only decisions before this, in the same form")
	flags.StringVar(&with.filter.NodePool, "nodepool", "", "only decisions about nodes of this NodePool")
	flags.StringVar(&with.filter.Node, "node", "", "only decisions about this node or NodeClaim")
	flags.StringVar(&with.filter.Pod, "pod", "",
		"only launches for this pod, as namespace/name; at most 20 pods of a launch are kept")
	flags.StringVar(&with.filter.Cause, "cause", "", "only decisions with this cause, such as Pending or Empty")
	flags.IntVar(&with.filter.Limit, "limit", mostHistoryShown, "how many decisions to list, newest first; 0 for all")
	flags.IntVar(&with.port, "read-port", usualReadPort, "loopback port of the controller's pod to ask")
	with.where.flags(command)
	with.connection, with.printing = connects(command), prints(command)
	return command
}

func (with *recalling) run(ctx context.Context, config Config, now time.Time) error {
	to, err := with.printing.printer(config)
	if err != nil {
		return err
	}
	if with.filter.Since, err = moment("since", with.since, now); err != nil {
		return err
	}
	if with.filter.Until, err = moment("until", with.until, now); err != nil {
		return err
	}
	if with.filter.Limit < 0 {
		return fmt.Errorf("--limit is %d: it must be a number from 0", with.filter.Limit)
	}
	answer := historyAnswer{typed: ofKind("History")}
	leads, err := with.find(ctx, config, now)
	if err == nil {
		answer.Answer, err = with.ask(ctx, leads)
		answer.Source = "controller"
	}
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		why := err
		if answer.Answer, err = with.fromConfigMaps(ctx, config, leads.namespace); err != nil {
			return fmt.Errorf("%w\n%w", why, err)
		}
		answer.Source = "configMaps"
		answer.Notes = append([]string{strings.ReplaceAll(why.Error(), "\n", "; ")}, answer.Notes...)
	}
	return report(config.Out, to, answer, "")
}

// moment parses a time, or a duration before now; it returns the zero time for "".
func moment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at,
			fmt.Errorf("--%s is %q: it must be a time such as 2026-11-20T08:00:00Z, or for how long, such as 2h",
				flag, text)
	}
	return at, nil
}

// ask asks the leading controller.
func (with *recalling) ask(ctx context.Context, leads leader) (got history.Answer, err error) {
	failed := func(err error) (history.Answer, error) {
		return history.Answer{}, fmt.Errorf("pod %s: %w: %s", leads, err, with.instead)
	}
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	address, stop, err := with.forward(ctx, leads)
	if err != nil {
		return failed(err)
	}
	defer stop()
	answer, err := with.get(ctx, address, history.Path+"?"+with.filter.Query().Encode())
	if err != nil {
		return failed(err)
	}
	defer answer.Body.Close()
	if err := refusal(answer); err != nil {
		return failed(err)
	}
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		return failed(fmt.Errorf("it sends no history (%w)", err))
	}
	return got, nil
}

// fromConfigMaps reads what controllers have stored.
func (with *recalling) fromConfigMaps(ctx context.Context, config Config, namespace string) (got history.Answer,
	err error) {
	client, err := config.Client(*with.connection)
	if err != nil {
		return got, err
	}
	if namespace == "" || with.where.namespace != "" {
		found, _ := leasesOf(ctx, client, with.where) // its error has been reported already
		namespace = with.where.of(found)
	}
	var pages []history.Page
	for slot := range history.Slots {
		name := history.ConfigMap(slot)
		object, err := client.Resource(configMaps()).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return got, fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, name, err)
		}
		text, _, _ := unstructured.NestedString(object.Object, "binaryData", history.Key)
		data, err := base64.StdEncoding.DecodeString(text)
		page, skipped := history.Page{}, 0
		if err == nil {
			page, skipped, err = history.Unpack(data)
		}
		if err != nil || skipped > 0 {
			got.Notes = append(got.Notes, fmt.Sprintf("ConfigMap %s/%s cannot be read as a whole", namespace, name))
		}
		if err == nil {
			pages = append(pages, page)
		}
	}
	if len(pages) == 0 {
		got.Notes = append(got.Notes, "namespace "+namespace+" has no ConfigMaps of a history")
	}
	kept := history.New(0, 0)
	kept.Load(pages, time.Time{})
	got.Records = with.filter.Select(kept.Records())
	return got, nil
}

// historyAnswer is what history prints.
type historyAnswer struct {
	typed
	// Source is who told it: controller, or configMaps.
	Source string `json:"source"`
	history.Answer
}

// Clean is always true: decisions are no findings.
func (historyAnswer) Clean() bool { return true }

// Rows implements printer.Rowed.
func (historyAnswer) Rows() string { return "records" }

// Names returns the NodeClaims of the decisions.
func (a historyAnswer) Names() []string {
	var names whatif.Names
	for _, r := range a.Records {
		if r.NodeClaim != "" {
			names.Add("NodeClaim", "", r.NodeClaim)
		}
	}
	return names.List()
}

// WriteText writes the decisions as a table.
func (a historyAnswer) WriteText(out io.Writer) error { return a.WriteTable(out, false, true) }

// WriteTable writes a row for each decision. Wide rows also have ID and reason.
func (a historyAnswer) WriteTable(out io.Writer, wide, headers bool) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	row := func(cells ...string) {
		if !wide {
			cells = cells[:len(cells)-2]
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if headers {
		row("TIME", "ID", "WHAT", "CAUSE", "POOL", "NODECLAIM", "PODS", "$/H", "OUTCOME", "TYPES", "WHY")
	}
	for _, r := range a.Records {
		outcome, types := strings.ReplaceAll(r.Outcome, "_", " "), strings.Join(r.Types, "|")
		if r.Times > 1 {
			outcome += fmt.Sprintf(" (%d times)", r.Times)
		}
		if more := r.TypeCount - len(r.Types); more > 0 {
			types += fmt.Sprintf("|+%d", more)
		}
		row(r.Time.Format(time.RFC3339), r.ID, r.Verb, r.Cause, cmp.Or(r.NodePool, "-"), cmp.Or(r.NodeClaim, "-"),
			podsOf(r), priceOf(r), outcome, cmp.Or(types, "-"), cmp.Or(r.Why, "-"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, note := range a.Notes {
		if _, err := fmt.Fprintln(out, "note: "+note); err != nil {
			return err
		}
	}
	return nil
}

func podsOf(r history.Record) string {
	switch {
	case r.Pods == 0:
		return "-"
	case r.Pods == 1 && len(r.PodNames) == 1:
		return r.PodNames[0]
	case len(r.PodNames) > 0:
		return fmt.Sprintf("%s and %d more", r.PodNames[0], r.Pods-1)
	}
	return fmt.Sprint(r.Pods)
}

// priceOf returns the change of the cluster's price; "-" when it is not known, or nothing was done.
func priceOf(r history.Record) string {
	if r.Before == nil || r.After == nil || r.Verb == history.VerbLead {
		return "-"
	}
	return fmt.Sprintf("%+.3f", *r.After-*r.Before)
}
