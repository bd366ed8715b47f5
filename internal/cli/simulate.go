package cli

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/joiner-autoscaler/joiner/internal/migrate"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// Values of --catalogue beside paths.
const (
	catalogueAuto    = "auto"
	catalogueDefault = "default"
	ec2NodeClass     = "EC2NodeClass"
)

func simulate(config Config) *cobra.Command {
	with := &foreseen{}
	command := &cobra.Command{
		Use: "simulate", Short: "Plan nodes for manifests or a cluster, and predict what a change would do",
		Args: cobra.NoArgs,
		Long: `Plan nodes for pools, node classes and workloads, with the engine of the controller: which nodes
it would launch, at which price, and why a pod would get none. Nothing is written. With -f it
reads the objects from files and needs no cluster; without -f it reads the cluster.

--change, --delete, --scale and --remove-node describe a change. It then plans with and without
the change, and prints the difference: at the time of the change, and when nothing changes any
more. To find the latter, it carries out plans on a copy in memory, round by round: nodes come,
pods move, nodes that drift are replaced within their budgets, and nodes that cost too much go.

For a cluster it uses the settings of its controller, as far as the pod shows them and no flag
says otherwise; the last line says which ones.

Instance types and prices come from a catalogue. "aws" is 584 EC2 types with the on-demand prices
of us-east-1 of July 2026 and made-up spot prices. "default" is that of the KWOK provider.
Anything else is a file (docs/catalogues.md). Without --catalogue it is "aws" where a NodePool
names an EC2NodeClass, otherwise "default".

Exit code: 0 every pod has a place, 1 a pod waits, 2 nothing could be planned. With a change: 0
nothing of --fail-on happens, 1 something of it does, 2 the change would be refused, or nothing
could be planned.`,
		Example: "  joinerctl simulate -f examples/simulate\n" +
			"  joinerctl simulate -f examples/simulate --change examples/change/pools.yaml\n" +
			"  joinerctl simulate --scale shop/web=40\n" +
			"  helm template . | joinerctl simulate -f pools.yaml -f -",
		RunE: func(command *cobra.Command, _ []string) error { return with.run(command.Context(), config) },
	}
	with.flags(command)
	return command
}

func fromFiles(objects []migrate.Object) []whatif.Document {
	documents := make([]whatif.Document, 0, len(objects))
	for _, o := range objects {
		documents = append(documents, whatif.Document{Where: o.Where, Content: o.Content})
	}
	return documents
}

// offers describes the catalogue in use.
type offers struct {
	name  string
	types int
	// settings says, for the line of sources, whose settings the plan was made with.
	settings string
}

// planTime is --now, the time to plan for, and the controller's flags about costs and the whole cluster.
type planTime struct {
	text  string
	costs costs
}

// costs are the controller's --price-tolerance, in percent, --node-overhead-price, in dollars per hour, --max-nodes,
// --max-node-claims-hard, --commitments-file and --ignore-dra-requests.
type costs struct {
	// noDevices is --ignore-dra-requests; nil, for a command without the flag, means true.
	noDevices *bool
	tolerance int
	overhead  float64
	maxNodes  int64
	maxClaims int64
	// commitments is --commitments-file (K-55).
	commitments string
	gates       whatif.Gates // of the cluster's controller
	// given reports whether the user has set a flag. Another one has the value of the cluster's controller, if its pod
	// shows that.
	given func(flag string) bool
}

func (m *planTime) flag(command *cobra.Command) {
	command.Flags().StringVar(&m.text, "now", "",
		"the time to plan for, as 2026-11-22T07:00:00Z; the default is now")
}

func (c *costs) flags(command *cobra.Command) {
	c.given = command.Flags().Changed
	command.Flags().IntVar(&c.tolerance, "price-tolerance", whatif.DefaultPriceTolerance,
		"the controller's --price-tolerance: take fewer nodes if they cost at most this many percent more than the "+
			"cheapest ones")
	c.noDevices = command.Flags().Bool("ignore-dra-requests", true,
		"the controller's --ignore-dra-requests: false reads ResourceClaims, ResourceSlices and DeviceClasses")
	command.Flags().Int64Var(&c.maxNodes, "max-nodes", 0,
		"the controller's --max-nodes: the most nodes that the whole cluster should have; 0 is no limit")
	command.Flags().Int64Var(&c.maxClaims, "max-node-claims-hard", 0,
		"the controller's --max-node-claims-hard: the most NodeClaims that the whole cluster may have; 0 is no limit")
	command.Flags().StringVar(&c.commitments, "commitments-file", "",
		"a copy of the controller's --commitments-file: capacity that is paid for whether nodes use it or not")
	command.Flags().Float64Var(&c.overhead, "node-overhead-price", 0,
		"the controller's --node-overhead-price: what a node costs on top of its price, in dollars per hour")
}

// devices reports whether device claims are looked at (K-42).
func (c costs) devices() bool { return c.noDevices != nil && !*c.noDevices }

// resources returns what to read from a cluster: with the flag for devices also what drivers publish, and claims.
func (c costs) resources() []whatif.Resource {
	if c.devices() {
		return append(whatif.Resources(), whatif.DeviceResources()...)
	}
	return whatif.Resources()
}

// at returns the time to plan for.
func (m planTime) at() (time.Time, error) {
	if m.text == "" {
		return time.Now(), nil
	}
	at, err := time.Parse(time.RFC3339, m.text)
	if err != nil {
		return at, fmt.Errorf("--now is %q: it must be a time, such as 2026-11-22T07:00:00Z", m.text)
	}
	return at, nil
}

// picture is pictureAt for that time and these costs.
func (m planTime) picture(documents []whatif.Document, setting string) (*whatif.World, offers, error) {
	at, err := m.at()
	if err != nil {
		return nil, offers{}, err
	}
	return pictureAt(documents, setting, m.costs, at)
}

// pictureAt makes a world of documents for a controller with these costs. All node classes offer the chosen catalogue.
func pictureAt(documents []whatif.Document, setting string, with costs, now time.Time) (*whatif.World, offers, error) {
	with, settings := with.of(startedWith(documents, now))
	if with.tolerance < 0 || with.tolerance > 100 {
		return nil, offers{}, fmt.Errorf("--price-tolerance is %d: want percent from 0 to 100", with.tolerance)
	}
	if with.maxNodes < 0 {
		return nil, offers{}, fmt.Errorf("--max-nodes is %d: want a number of nodes above 0, or 0 for no limit",
			with.maxNodes)
	}
	if with.maxClaims < 0 {
		return nil, offers{},
			fmt.Errorf("--max-node-claims-hard is %d: want a number of NodeClaims above 0, or 0 for no limit",
				with.maxClaims)
	}
	overhead, err := whatif.PerHour(with.overhead)
	if err != nil {
		return nil, offers{}, fmt.Errorf("--node-overhead-price: %w", err)
	}
	var commitments []byte
	if with.commitments != "" {
		if commitments, err = os.ReadFile(with.commitments); err == nil {
			_, err = translate.Commitments(commitments)
		}
		if err != nil {
			return nil, offers{}, fmt.Errorf("--commitments-file %s: %w", with.commitments, err)
		}
	}
	chosen := chosenCatalogue(setting, documents)
	path := chosen
	if path == catalogueDefault {
		path = ""
	}
	inventory, err := kwok.LoadInventory(path, os.ReadFile)
	if err != nil {
		return nil, offers{}, fmt.Errorf("--catalogue %s: %w", chosen, err)
	}
	catalogue := inventory.Catalog()
	world, err := whatif.New(whatif.Input{Documents: documents, Catalogue: catalogue, Now: now,
		PriceTolerance: with.tolerance, NodeOverheadPrice: overhead, MaxNodes: with.maxNodes,
		MaxClaims:   with.maxClaims,
		Commitments: commitments, Devices: with.devices(), Gates: with.gates, Estimated: chosen == kwok.EC2Types})
	return world, offers{name: chosen, types: len(catalogue.Types), settings: settings}, err
}

// chosenCatalogue returns the catalogue to use: that of EC2 if there is a node class of EC2, or a pool that names one.
func chosenCatalogue(setting string, documents []whatif.Document) string {
	if setting != catalogueAuto {
		return setting
	}
	for _, o := range documents {
		kind, _ := o.Content["kind"].(string)
		of, _, _ := unstructured.NestedString(o.Content, "spec", "template", "spec", "nodeClassRef", "kind")
		if kind == ec2NodeClass || kind == "NodePool" && of == ec2NodeClass {
			return kwok.EC2Types
		}
	}
	return catalogueDefault
}

// sources says where the numbers come from (U-21): what was read, what was ignored, and whose prices are used.
func sources(w *whatif.World, from string, catalogue offers) string {
	var read, ignored []string
	kinds := w.Kinds()
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		read = append(read, fmt.Sprintf("%d %s", kinds[kind], kind))
	}
	for _, kind := range w.IgnoredKinds() {
		ignored = append(ignored, fmt.Sprintf("%d %s", w.Ignored[kind], kind))
	}
	line := "\nobjects: " + from + " (" + strings.Join(read, ", ") + ")"
	if len(ignored) > 0 {
		line += "; not looked at: " + strings.Join(ignored, ", ")
	}
	line += fmt.Sprintf("; catalogue: %s (%d types)", catalogue.name, catalogue.types)
	if catalogue.name == kwok.EC2Types {
		line += ", on-demand prices of us-east-1 of July 2026, spot prices are made up"
	}
	return line + catalogue.settings + "\n"
}
