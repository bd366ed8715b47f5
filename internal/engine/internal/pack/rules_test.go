package pack

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
)

// unruled are the fields of a shape that no constraint reads.
var unruled = map[string]string{
	"Buffer": "it says whose room the pod holds, and nothing of where",
}

// A field that no rule reads is a constraint that nobody keeps.
func TestEveryFieldOfAShapeIsInARule(t *testing.T) {
	t.Parallel()
	read := map[string]bool{}
	shape := reflect.TypeFor[cluster.Shape]()
	for _, r := range rules.all {
		for _, name := range r.reads() {
			read[name] = true
			if _, is := shape.FieldByName(name); !is {
				t.Errorf("%T reads %s, which shapes do not have", r, name)
			}
		}
	}
	for i := range shape.NumField() {
		field := shape.Field(i)
		_, except := unruled[field.Name]
		switch {
		case !field.IsExported():
		case !read[field.Name] && !except:
			t.Errorf("no rule reads Shape.%s: make it a part of one, or say here why not", field.Name)
		case read[field.Name] && except:
			t.Errorf("Shape.%s is in a rule, and listed as being in none", field.Name)
		}
	}
}

// sources parses the files of the package that are not tests.
func sources(t *testing.T) map[string]*ast.File {
	t.Helper()
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	files, set := map[string]*ast.File{}, token.NewFileSet()
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		if files[name], err = parser.ParseFile(set, name, nil, parser.SkipObjectResolution); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// A rule that is written and not listed is never asked.
func TestEveryRuleIsInTheList(t *testing.T) {
	t.Parallel()
	var written, listed []string
	for _, file := range sources(t) {
		for _, decl := range file.Decls {
			if types, is := decl.(*ast.GenDecl); is && types.Tok == token.TYPE {
				for _, spec := range types.Specs {
					if name := spec.(*ast.TypeSpec).Name.Name; strings.HasSuffix(name, "Rule") {
						written = append(written, name)
					}
				}
			}
		}
	}
	for _, r := range rules.all {
		listed = append(listed, reflect.TypeOf(r).Name())
	}
	slices.Sort(written)
	slices.Sort(listed)
	if !slices.Equal(written, listed) {
		t.Errorf("rules that are written:\n%s\nrules in the list:\n%s", written, listed)
	}
}

// The tutorial has a table of the rules, in their order, each with its file.
func TestTheTutorialHasTheRules(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 3 || !strings.HasSuffix(words[1], "Rule") || !strings.HasSuffix(words[2], ".go") {
			continue
		}
		told = append(told, words[1])
		if file := sources(t)[words[2]]; file == nil || !declares(file, words[1]) {
			t.Errorf("%s is not in %s", words[1], words[2])
		}
	}
	var listed []string
	for _, r := range rules.all {
		listed = append(listed, reflect.TypeOf(r).Name())
	}
	if !slices.Equal(told, listed) {
		t.Errorf("the tutorial has\n%s\nand the list\n%s", told, listed)
	}
}

func declares(file *ast.File, name string) bool {
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		spec, is := n.(*ast.TypeSpec)
		found = found || is && spec.Name.Name == name
		return !found
	})
	return found
}

// homes are the files that may look at a field of a shape.
var homes = map[string][]string{
	"Tolerations":  {"taints.go"},
	"Alternatives": {"selection.go"},
	"HostPorts":    {"ports.go"},
	"Spread":       {"topology.go", "counting.go"},
	"Affinity":     {"topology.go"},
	"AntiAffinity": {"topology.go"},
	"BlockedBy":    {"blocked.go", "ready.go"}, // a pool has such a field too
	"Devices":      {"solver.go"},              // a round begins with those of the snapshot
	"Claims":       {"devices.go"},
	"Wishes":       {"likings.go", "wishes.go"},
	"SoftSpread":   {"wishes.go"},
	"PassedOver":   {"passedover.go"},
	"IsPassedOver": {"passedover.go"},
	"Held":         {"brake.go"},
	"RelaxMinValues": {
		"minvalues.go",
		"reserved.go", // which reservation a node takes depends on it
	},
}

// A constraint has one home: whoever changes its meaning finds all of it in its file.
func TestAConstraintHasOneHome(t *testing.T) {
	t.Parallel()
	seen := map[string]map[string]bool{}
	for name, file := range sources(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			if selector, is := n.(*ast.SelectorExpr); is && !ofPackage(selector) && homes[selector.Sel.Name] != nil {
				field := selector.Sel.Name
				if seen[field] == nil {
					seen[field] = map[string]bool{}
				}
				seen[field][name] = true
				if !slices.Contains(homes[field], name) {
					t.Errorf("%s looks at %s, which is for %s", name, field, strings.Join(homes[field], " and "))
				}
			}
			return true
		})
	}
	for field, files := range homes {
		for _, file := range files {
			if !seen[field][file] {
				t.Errorf("%s does not look at %s any more", file, field)
			}
		}
	}
}

// ofPackage reports whether the selector names something of package cluster itself, such as a type.
func ofPackage(selector *ast.SelectorExpr) bool {
	id, is := selector.X.(*ast.Ident)
	return is && id.Name == "cluster"
}

// The order is that of explanations. What comes late judges what the others leave.
func TestTheOrderOfRules(t *testing.T) {
	t.Parallel()
	at := func(r rule) int { return slices.Index(rules.all, r) }
	for _, pair := range []struct {
		first, second rule
		why           string
	}{
		{blockedRule{}, poolRule{}, "a pod that no node is right for says so, whatever the pool"},
		{poolRule{}, offerRule{}, "a pool without a catalogue has no offers to filter"},
		{taintRule{}, offerRule{}, "what is beyond a taint is what comes after it"},
		{offerRule{}, selectionRule{}, "the filters of the pool come before those of the pod"},
		{stockRule{}, topologyRule{}, "a domain that only used-up reservations have is none"},
		{roomRule{}, topologyRule{}, "a domain where the pod has no room is none"},
		{topologyRule{}, reservationRule{}, "a reservation in another domain is none"},
		{reservationRule{}, limitRule{}, "what the plan counts is the offer of the reservation"},
		{limitRule{}, minValuesRule{}, "a limit is named first"},
		{daemonRule{}, topologyRule{}, "anti-affinity to a daemon is the daemon's matter"},
		{spotShareRule{}, topologyRule{}, "what is open is decided by price, and spot is the cheapest"},
		{topologyRule{}, portRule{}, "ports are blamed when nothing else can be"},
	} {
		if at(pair.first) > at(pair.second) {
			t.Errorf("%T comes after %T: %s", pair.first, pair.second, pair.why)
		}
	}
	if last := rules.existing[len(rules.existing)-1]; last != (deviceRule{}) {
		t.Errorf("existing nodes are asked for %T last: to search for devices costs most", last)
	}
	if rules.existing[0] != (roomRule{}) {
		t.Errorf("existing nodes are asked for %T first: most of a large cluster are full", rules.existing[0])
	}

	for _, part := range [][]rule{rules.existing, rules.planned, rules.pools} {
		if len(part) == 0 || len(part) == len(rules.all) {
			t.Errorf("%d of %d rules are asked: those that embed that they have nothing to say need not be", len(part),
				len(rules.all))
		}
	}
}
