package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/cli/printer"
	"github.com/joiner-autoscaler/joiner/internal/condition"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// switching holds the flags of the commands that pause and resume disruption.
type switching struct {
	place
	reason     string
	length     time.Duration
	dryRun     bool
	connection *Connection
	printing   *printing
}

func (s *switching) flags(command *cobra.Command) {
	s.place.flags(command)
	command.Flags().BoolVar(&s.dryRun, "dry-run", false, "show what would be written, and write nothing")
	s.connection, s.printing = connects(command), prints(command, printer.Text, printer.JSON, printer.YAML)
}

func pause(config Config) *cobra.Command {
	var with switching
	command := &cobra.Command{
		Use: "pause", Short: "Pause voluntary disruption (whatever budgets limit)", Args: cobra.NoArgs,
		Long: `Writes to the cluster. Pause voluntary disruption (whatever budgets limit) in the whole cluster,
until joinerctl resume, or for the time of --for. docs/disruption.md lists what a pause stops and
what goes on.

It writes one ConfigMap, ` + translate.SwitchName + `, in the namespace of Joiner. Run it again to change
the reason or the end. It needs the right to get, create and update that ConfigMap. Karpenter does
not read the ConfigMap: where Karpenter leads, nothing is written.

Exit code: 0 written, 2 failed.`,
		Example: "  joinerctl pause --reason 'release week'\n  joinerctl pause --reason 'moving the database' --for 2h",
		RunE: func(command *cobra.Command, _ []string) error {
			if command.Flags().Changed("for") && with.length < time.Second {
				return fmt.Errorf("--for is %s: it must be a second or more, or left out", with.length)
			}
			return with.run(command.Context(), config, with.pause)
		},
	}
	command.Flags().StringVar(&with.reason, "reason", "",
		"reason for the pause; NodePools and events show it")
	command.Flags().DurationVar(&with.length, "for", 0, "how long to pause, such as 2h; the default is until "+
		"joinerctl resume")
	with.flags(command)
	return command
}

func resume(config Config) *cobra.Command {
	var with switching
	command := &cobra.Command{
		Use: "resume", Short: "End a pause", Args: cobra.NoArgs,
		Long: `Writes to the cluster. End a pause: delete the ConfigMap ` + translate.SwitchName + `, whoever wrote
it. Joiner disrupts again within a minute. It needs the right to get and delete that ConfigMap.

Exit code: 0 nothing is paused any more, 2 failed.`,
		Example: "  joinerctl resume",
		RunE: func(command *cobra.Command, _ []string) error {
			return with.run(command.Context(), config, with.resume)
		},
	}
	with.flags(command)
	return command
}

// switched is what became of the switch.
type switched struct {
	typed
	// Paused is how it is now, or would be, and Changed whether it was otherwise before.
	Paused  bool `json:"paused"`
	Changed bool `json:"changed"`
	DryRun  bool `json:"dryRun,omitempty"`
	// Reason and Until are those of the pause; of a resumption those of the pause that it ends.
	Reason string     `json:"reason,omitempty"`
	Until  *time.Time `json:"until,omitempty"`
	// ConfigMap is the switch, namespace/name.
	ConfigMap string `json:"configMap"`
	// TakenBack counts nodes that were chosen and not deleted yet, Draining those that go on to go; nil where they
	// could not be counted.
	TakenBack *int `json:"takenBack,omitempty"`
	Draining  *int `json:"draining,omitempty"`
	// Notes are what else is to be known: that nobody reads the switch at the moment, for example.
	Notes []string `json:"notes,omitempty"`

	length time.Duration
}

// Clean is always true: writing a switch is no finding.
func (switched) Clean() bool { return true }

// WriteText writes it for people.
func (s switched) WriteText(out io.Writer) error {
	var b strings.Builder
	would := ""
	if s.DryRun {
		would = "would be "
	}
	switch {
	case s.Paused:
		b.WriteString(would + "paused")
		if s.Until != nil {
			fmt.Fprintf(&b, " for %s, until %s", shortest(s.length), s.Until.Format(time.RFC3339))
		}
		if s.Reason != "" {
			fmt.Fprintf(&b, ": %q", s.Reason)
		}
		fmt.Fprintf(&b, " (ConfigMap %s)\n", s.ConfigMap)
		if s.TakenBack != nil && s.Draining != nil {
			fmt.Fprintf(&b, "taken back: nodes that were chosen and not deleted: %d\n", *s.TakenBack)
			fmt.Fprintf(&b, "goes on: nodes that drain: %d; launches, expiration by force, trimming\n", *s.Draining)
		}
	case s.Changed:
		fmt.Fprintf(&b, "%sresumed: disruption goes on within a minute (ConfigMap %s)\n", would, s.ConfigMap)
		if s.Reason != "" {
			fmt.Fprintf(&b, "the pause was for: %q\n", s.Reason)
		}
	default:
		fmt.Fprintf(&b, "disruption is not paused: there is no ConfigMap %s\n", s.ConfigMap)
	}
	for _, note := range s.Notes {
		fmt.Fprintf(&b, "note: %s\n", note)
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// shortest formats a duration without zero units: 2h, not 2h0m0s.
func shortest(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// run finds the switch, and calls write for it.
func (s *switching) run(ctx context.Context, config Config, write func(context.Context, dynamic.Interface, string,
	*switched) error) error {
	to, err := s.printing.printer(config)
	if err != nil {
		return err
	}
	client, err := config.Client(*s.connection)
	if err != nil {
		return err
	}
	in := whatif.Surroundings{LeaseName: s.lease}
	in.Leases, err = leasesOf(ctx, client, s.place)
	unread := apierrors.IsForbidden(err)
	if err != nil && !unread {
		return err
	}
	namespace := s.of(in.Leases)
	answer := switched{typed: ofKind("Pause"), DryRun: s.dryRun, ConfigMap: namespace + "/" + translate.SwitchName}
	leading, _ := in.Controllers(podOf(ctx, client), false, time.Now())
	switch {
	case len(leading) > 1 && s.namespace == "":
		return fmt.Errorf("more than one controller leads (leases %s and %s): give --system-namespace, that of Joiner",
			leading[0].Lease, leading[1].Lease)
	case len(leading) == 1 && leading[0].Program == whatif.ProgramKarpenter:
		return fmt.Errorf("here leads Karpenter (%s, lease %s), which does not read ConfigMap %s: "+
			"with Karpenter, set spec.disruption.budgets to [{nodes: \"0\"}] in each NodePool", leading[0].Leader,
			leading[0].Lease, answer.ConfigMap)
	case unread && s.namespace == "":
		answer.Notes = append(answer.Notes, "the lease of the controller may not be read: "+namespace+
			" is the usual namespace; --system-namespace is for another")
	case len(in.Leases) == 0 && !unread:
		answer.Notes = append(answer.Notes, "there is no lease "+s.lease+
			": nobody reads it now, unless Joiner runs with "+
			"--disable-leader-election; --system-namespace says where it reads")
	case len(leading) == 0 && !unread:
		answer.Notes = append(answer.Notes, "nobody leads: nobody reads it now")
	}
	if err := write(ctx, client, namespace, &answer); err != nil {
		return err
	}
	return report(config.Out, to, answer, "")
}

// podOf returns a function that reads a pod; nil for a pod that cannot be read.
func podOf(ctx context.Context, client dynamic.Interface) func(namespace, name string) *corev1.Pod {
	return func(namespace, name string) *corev1.Pod {
		resource := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
		object, err := client.Resource(resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil
		}
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: object.GetLabels()}}
	}
}

// pause writes the switch, and replaces an existing one.
func (s *switching) pause(ctx context.Context, client dynamic.Interface, namespace string, answer *switched) error {
	answer.Paused, answer.Changed, answer.Reason, answer.length = true, true, s.reason, s.length
	data := map[string]any{translate.SwitchPaused: "true"}
	if s.reason != "" {
		data[translate.SwitchReason] = s.reason
	}
	if s.length > 0 {
		until := time.Now().Add(s.length).UTC().Truncate(time.Second)
		answer.Until, data[translate.SwitchUntil] = &until, until.Format(time.RFC3339)
	}
	count(ctx, client, answer)
	maps := client.Resource(configMaps()).Namespace(namespace)
	var err error
	for range tries {
		var object *unstructured.Unstructured
		object, err = maps.Get(ctx, translate.SwitchName, metav1.GetOptions{})
		switch {
		case err != nil && !apierrors.IsNotFound(err), s.dryRun:
		case err != nil:
			object = &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
				"data": data, "metadata": map[string]any{"name": translate.SwitchName, "namespace": namespace}}}
			_, err = maps.Create(ctx, object, metav1.CreateOptions{})
		default:
			object.Object["data"] = data
			_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	if err != nil && !(s.dryRun && apierrors.IsNotFound(err)) {
		return fmt.Errorf("writing ConfigMap %s: %w", answer.ConfigMap, err)
	}
	return nil
}

// count counts what a pause takes back and what goes on. Without the right to read NodeClaims it adds nothing.
func count(ctx context.Context, client dynamic.Interface, answer *switched) {
	taken, draining := 0, 0
	err := eachObject(ctx, client, karpenterv1.GroupVersion().WithResource("nodeclaims"),
		func(o *unstructured.Unstructured) error {
			var claim karpenterv1.NodeClaim
			if err := understand(o.Object, &claim); err != nil {
				return err
			}
			switch {
			case claim.DeletionTimestamp != nil:
				draining++
			case condition.IsTrue(claim.Status.Conditions, karpenterv1.ConditionTypeDisruptionReason):
				taken++
			}
			return nil
		})
	if err != nil {
		answer.Notes = append(answer.Notes, "nodes that go are not counted: "+err.Error())
		return
	}
	answer.TakenBack, answer.Draining = &taken, &draining
}

// resume deletes the switch.
func (s *switching) resume(ctx context.Context, client dynamic.Interface, namespace string, answer *switched) error {
	maps := client.Resource(configMaps()).Namespace(namespace)
	object, err := maps.Get(ctx, translate.SwitchName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading ConfigMap %s: %w", answer.ConfigMap, err)
	}
	answer.Changed = true
	answer.Reason, _, _ = unstructured.NestedString(object.Object, "data", translate.SwitchReason)
	if s.dryRun {
		return nil
	}
	if err := maps.Delete(ctx, translate.SwitchName, metav1.DeleteOptions{}); err != nil &&
		!apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting ConfigMap %s: %w", answer.ConfigMap, err)
	}
	return nil
}
