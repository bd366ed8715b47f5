package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/joiner-autoscaler/joiner/internal/cli/printer"
	"github.com/joiner-autoscaler/joiner/internal/migrate"
	"github.com/joiner-autoscaler/joiner/internal/provider/kwok"
	"github.com/joiner-autoscaler/joiner/internal/whatif"
)

// What --catalogue takes beside a path.
const (
	catalogueAuto    = "auto"
	catalogueDefault = "default"
	ec2NodeClass     = "EC2NodeClass"
)

func simulate(config Config) *cobra.Command {
	var files []string
	var catalogue string
	var printing *printing
	command := &cobra.Command{
		Use: "simulate", Short: "Plan nodes for manifests, without a cluster", Args: cobra.NoArgs,
		Long: `Plan nodes for the pools, node classes and workloads of files, with the engine that the controller has: which nodes would be
launched, at which price, and why a pod would get none. No cluster is asked and nothing is written.

Instance types and prices come from a catalogue: "aws" is 584 EC2 types with the on-demand prices of us-east-1 of July 2026 and
made-up spot prices, "default" is that of the KWOK provider, anything else a file (docs/catalogues.md). Without --catalogue it is
"aws" where a NodePool names an EC2NodeClass, else "default".

Exit code: 0 every pod has a place, 1 a pod waits, 2 nothing could be planned.`,
		Example: "  joinerctl simulate -f examples/simulate\n  kubectl get nodepools,ec2nodeclasses,deployments,daemonsets -A -o yaml | " +
			"joinerctl simulate -f -\n" +
			"  helm template . | joinerctl simulate -f pools.yaml -f -",
		RunE: func(*cobra.Command, []string) error {
			printer, err := printing.printer(config)
			if err != nil {
				return err
			}
			if len(files) == 0 {
				return errors.New("-f is missing: name a file or a directory with manifests, or - for standard input")
			}
			return runSimulate(config, files, catalogue, printer)
		},
	}
	command.Flags().StringArrayVarP(&files, "filename", "f", nil,
		"file or directory with manifests (.yaml, .yml, .json), or - for standard input; may be repeated")
	command.Flags().StringVar(&catalogue, "catalogue", catalogueAuto,
		"instance types and prices: auto, aws, default, or a file")
	printing = prints(command)
	return command
}

func runSimulate(config Config, files []string, catalogue string, to *printer.Printer) error {
	objects, err := readFiles(config.In, files)
	if err != nil {
		return err
	}
	world, offered, err := picture(fromFiles(objects), catalogue)
	if err != nil {
		return err
	}
	return report(config.Out, to, world.Plan(), sources(world, "files", offered))
}

func fromFiles(objects []migrate.Object) []whatif.Document {
	documents := make([]whatif.Document, 0, len(objects))
	for _, o := range objects {
		documents = append(documents, whatif.Document{Where: o.Where, Content: o.Content})
	}
	return documents
}

// offers is the catalogue that counts.
type offers struct {
	name  string
	types int
}

// picture makes a world of documents, in which all node classes offer the catalogue that is set.
func picture(documents []whatif.Document, setting string) (*whatif.World, offers, error) {
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
	world, err := whatif.New(whatif.Input{Documents: documents, Catalogue: catalogue, Now: time.Now(),
		Estimated: chosen == kwok.EC2Types})
	return world, offers{name: chosen, types: len(catalogue.Types)}, err
}

// chosenCatalogue says which catalogue counts: that of EC2 where there is a node class of EC2, or a pool that names one.
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

// sources says where the numbers come from (U-21): what was read, what was not looked at, and whose prices count.
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
	return line + "\n"
}
