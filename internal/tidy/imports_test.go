package tidy

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/joiner-autoscaler/joiner/"

// golistPackage is what we read of `go list -json`.
type golistPackage struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
	GoFiles    []string
	Dir        string
}

// packages lists the packages of the root module and of the modules that it offers to others, and all that they are
// made of, by import path.
func packages(t *testing.T) map[string]golistPackage {
	t.Helper()
	all := list(t, "../../autonodepolicy")
	maps.Copy(all, list(t, "../.."))
	maps.Copy(all, list(t, "../../localcluster", module+"nodescheduling/..."))
	return all
}

func list(t *testing.T, folder string, patterns ...string) map[string]golistPackage {
	t.Helper()
	command := exec.Command("go", "list", "-deps", "-json=ImportPath,Standard,Imports,Deps,GoFiles,Dir")
	if len(patterns) == 0 {
		patterns = []string{"./..."}
	}
	command.Args = append(command.Args, patterns...)
	command.Dir = folder
	out, err := command.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatal(err)
	}
	all := map[string]golistPackage{}
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p golistPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
}

// layer is a part of the tree and what of ours it may import, beside itself.
type layer struct {
	name   string // path below the module; everything under it belongs to it
	may    []string
	reason string
}

// layers is the direction of imports, from architecture 4.3. The first that matches a package decides.
var layers = []layer{
	{"api", []string{"autonodepolicy/api"},
		"public types without behaviour: outsiders import them and nothing else comes along"},
	{"autonodepolicy/api", nil, "types that others import without our other kinds (A-25)"},
	{"deploy", nil, "manifests"},
	{"charts", []string{"api/crd"}, "Helm charts, as files"},
	{"autonodepolicy/fold", nil,
		"sets of label values, for planning and for whoever enforces a provider's policy (A-26)"},
	{"autonodepolicy/internal", []string{"autonodepolicy/fold"},
		"what policy judges and admission writes as an expression"},
	{"autonodepolicy/policy", []string{"autonodepolicy/fold", "autonodepolicy/internal"},
		"pure: what a provider's policy comes to, in nobody's API types (A-25)"},
	{"autonodepolicy/admission", []string{"autonodepolicy/fold", "autonodepolicy/internal", "autonodepolicy/policy"},
		"pure: admission policies as objects (A-25)"},
	{"autonodepolicy", nil, "tests of what the module promises (A-27)"},
	{"internal/engine", []string{"autonodepolicy/fold"},
		"the engine knows nothing but itself, and the sets that a policy folds to"},
	{"internal/condition", []string{"api"}, "reads and writes status conditions"},
	{"internal/onedocument", nil, "pure: a file of several YAML documents is refused where one is read"},
	{"internal/nearest", nil, "pure: the name that a mistyped one stands for"},
	{"internal/settings", []string{"internal/nearest"},
		"data: Karpenter's settings, and what becomes of each here (K-01)"},
	{"internal/translate", []string{"api", "internal/engine", "autonodepolicy/fold", "internal/onedocument",
		"internal/nearest"}, "the only package that knows API objects and engine values"},
	{"internal/devices", []string{"internal/engine"}, "the allocator of kube-scheduler, as planning asks it (K-42)"},
	{"internal/world", []string{"api", "internal/translate", "internal/devices", "internal/engine"},
		"events in, snapshots out"},
	{"internal/apply", []string{"api", "internal/world", "internal/translate", "internal/engine",
		"internal/condition"}, "the only creator and remover of NodeClaims"},
	{"internal/kube", []string{"api"},
		"how a step function is woken; helpers of controllers and plug-ins that are no controllers"},
	{"internal/plugin", []string{"api", "internal/provider", "internal/kube", "internal/engine/catalog"},
		"what a provider brings to a program beside machines"},
	{"internal/provider/kwok/plug", []string{"api", "internal/provider", "internal/plugin", "internal/kube"},
		"a provider as a part of a program: clients, watches, controllers"},
	{"internal/provider/ec2/plug", []string{"api", "internal/provider", "internal/plugin", "internal/kube",
		"internal/condition", "internal/engine/catalog"},
		"a provider as a part of a program: clients, watches, controllers"},
	{"internal/provider/ec2/rights", []string{"internal/provider", "deploy"},
		"the policies that users are given, for tests"},
	{"internal/provider", []string{"api", "internal/condition", "internal/translate", "internal/engine/catalog",
		"internal/engine/requirement", "internal/engine/resources",
		"internal/onedocument"}, "a cloud, and what it offers"},
	{"internal/controller", []string{"api", "internal/world", "internal/apply", "internal/provider",
		"internal/translate",
		"internal/engine", "internal/condition", "internal/view", "internal/kube"}, "gather, decide, act"},
	{"internal/convert", []string{"api"}, "pure: one version of an object to another"},
	{"internal/autonode/merge", []string{"api", "autonodepolicy", "internal/condition"},
		"pure: what a policy and a wrapper come to, in our API's types"},
	{"internal/autonode/conformance", []string{"api", "autonodepolicy/fold", "internal/condition"},
		"pure: a second opinion on what the merge and the operator made (A-20: not a word of theirs)"},
	{"internal/autonode/approver", nil, "pure: which certificate requests of kubelets may be approved"},
	{"internal/autonode/operator", []string{"api", "internal/autonode/merge", "internal/autonode/approver",
		"internal/autonode/conformance", "internal/condition", "internal/kube"},
		"when what packages merge and approver say may be written; two clusters, two client types"},
	{"nodescheduling/api", nil, "types that others import without the plugin (A-35)"},
	{"nodescheduling/evaluator", []string{"nodescheduling/api"},
		"pure: whether a request may place a pod on protected nodes"},
	{"nodescheduling/door", []string{"nodescheduling/api", "nodescheduling/evaluator"},
		"what every door of the node scheduling policy needs of a cluster"},
	{"nodescheduling/plugin", []string{"nodescheduling/api", "nodescheduling/evaluator", "nodescheduling/door"},
		"requests of a kube-apiserver to those of the evaluator: decides nothing"},
	{"internal/admission", []string{"api", "nodescheduling/api", "nodescheduling/evaluator"},
		"pure: what of a cluster the policy would refuse"},
	{"internal/webhook", []string{"api", "nodescheduling/api", "nodescheduling/evaluator", "internal/convert"},
		"HTTP to requests, verdicts to HTTP: decides nothing"},
	{"internal/certificate", nil, "certificates of a webhook's own: who serves and when is app's"},
	{"internal/migrate", []string{"api", "internal/convert"}, "pure: what of v1beta1 is left"},
	{"internal/view", []string{"internal/engine"}, "pure: the answers that people get, one word for one thing (U-15)"},
	{"internal/readmodel", []string{"internal/engine", "internal/view"},
		"pure: what a console shows, of engine values (U-41)"},
	{"internal/console", nil, "the page, as files"},
	{"internal/history", nil, "pure: decisions, kept for people (U-32)"},
	{"internal/dump", []string{"internal/engine"}, "pure: what the engine planned with and said, as a file (U-40)"},
	{"internal/foretell", []string{"api", "internal/engine", "internal/translate", "internal/world",
		"internal/condition", "internal/provider"}, "pure: plans carried out on a copy in memory"},
	{"internal/whatif", []string{"api", "internal/engine", "internal/translate", "internal/world",
		"internal/condition",
		"internal/view", "internal/foretell", "internal/nearest"}, "plans for manifests that nobody has applied"},
	{"internal/takeover", []string{"api", "internal/engine", "internal/translate", "internal/condition",
		"internal/whatif",
		"internal/settings", "internal/nearest"}, "pure: what changes when a cluster changes hands (K-25, K-28)"},
	{"internal/cli", []string{"api", "charts", "autonodepolicy/api", "internal/convert", "internal/migrate",
		"internal/admission", "nodescheduling", "internal/autonode/merge", "internal/whatif", "internal/takeover",
		"internal/dump",
		"internal/history", "internal/translate", "internal/condition", "internal/provider/kwok", "internal/nearest"},
		"commands: files and clusters to pure packages, findings to text"},
	{"internal/app/serve/readers", []string{"internal/readmodel", "internal/console", "internal/engine"},
		"the read model to whoever reads it: decides nothing"},
	{"internal/app/serve", []string{"internal/kube", "internal/certificate"},
		"what all programs have in common around their controllers"},
	{"internal/app/joiner", []string{"api", "internal"}, "puts the controller together"},
	{"internal/app/operator", []string{"api", "internal"}, "puts the operator together"},
	{"internal/app/webhook", []string{"api", "internal", "charts", "nodescheduling"}, "puts the webhook together"},
	{"upstream", []string{"api", "internal/admission", "nodescheduling"},
		"what is offered to OpenShift's repositories, as text of ours, and its tests"},
	{"internal/sim", []string{"api", "internal"}, "runs everything, in a world of its own"},
	{"internal/tidy", nil, "looks at files, not at packages"},
	{"cmd", []string{"internal/app", "internal/cli", "internal/sim", "internal/settings", "internal/onedocument"},
		"flags to configuration"},
}

// TestTheTerminalIsOfJoinerctl: only joinerctl's screens are made with the library for terminals, so no controller is.
func TestTheTerminalIsOfJoinerctl(t *testing.T) {
	t.Parallel()
	const library, screens = "charm.land/bubbletea/v2", module + "internal/cli/top"
	all, found := packages(t), false
	for path, p := range all {
		name, ours := strings.CutPrefix(path, module)
		if !ours {
			continue
		}
		if slices.Contains(p.Imports, library) {
			if found = true; path != screens {
				t.Errorf("%s imports %s", name, library)
			}
		}
		if strings.HasPrefix(name, "cmd/") && name != "cmd/joinerctl" && slices.Contains(p.Deps, library) {
			t.Errorf("%s is made of %s", name, library)
		}
	}
	if !found {
		t.Errorf("nothing imports %s: this test looks at nothing", library)
	}
}

// TestImportsFollowTheLayers holds every package of ours to its layer, and controllers apart from one another.
func TestImportsFollowTheLayers(t *testing.T) {
	t.Parallel()
	used := map[string]bool{}
	for path, p := range packages(t) {
		name, ours := strings.CutPrefix(path, module)
		if !ours {
			continue
		}
		i := slices.IndexFunc(layers, func(l layer) bool { return within(name, l.name) })
		if i < 0 {
			t.Errorf("%s belongs to no layer; add it to the list with a reason", name)
			continue
		}
		l := layers[i]
		used[l.name] = true
		for _, imported := range p.Imports {
			target, ours := strings.CutPrefix(imported, module)
			if !ours || within(target, l.name) {
				continue
			}
			if !slices.ContainsFunc(l.may, func(allowed string) bool { return within(target, allowed) }) {
				t.Errorf("%s imports %s; %s (%s) may import of ours: %v", name, target, l.name, l.reason, l.may)
			}
			program := within(target, "internal/app") && !within(target, "internal/app/serve")
			if program && !within(name, "cmd") && !within(name, "internal/sim") {
				t.Errorf("%s imports %s: only cmd and sim may", name, target)
			}
		}
	}
	for _, l := range layers {
		if !used[l.name] && l.name != "internal/tidy" {
			t.Errorf("the rule for %s applies to nothing: take it away", l.name)
		}
	}
}

func within(name, folder string) bool { return name == folder || strings.HasPrefix(name, folder+"/") }

// sharedControllers are packages under internal/controller that the controllers have in common.
var sharedControllers = []string{"metrics"}

func TestControllersDoNotKnowEachOther(t *testing.T) {
	t.Parallel()
	const root = "internal/controller/"
	for path, p := range packages(t) {
		name, ours := strings.CutPrefix(path, module+root)
		if !ours {
			continue
		}
		own, _, _ := strings.Cut(name, "/")
		for _, imported := range p.Imports {
			if target, controller := strings.CutPrefix(imported, module+root); controller {
				other, _, _ := strings.Cut(target, "/")
				if other != own && !slices.Contains(sharedControllers, other) {
					t.Errorf("controller %s imports controller %s; they speak through API objects", own, other)
				}
			}
		}
	}
}

// closures are limits on everything that a part of the tree is made of, direct or not.
var closures = []struct {
	part string
	// prefix of an import path; "" forbids all but the standard library, and of ours fold, which is no more
	forbidden string
	except    []string
	reason    string
}{
	{"internal/engine", "", []string{"internal/engine/enginetest"},
		"tests in milliseconds, and no API change can reach the algorithms"},
	{"autonodepolicy/fold", "", nil, "whoever imports it gets nothing else (A-26)"},
	{"autonodepolicy", "k8s.io/client-go", nil, "pure: no client (A-25)"},
	{"autonodepolicy/policy", "k8s.io/api/", nil, "of Kubernetes it needs apimachinery only (A-26)"},
	{"internal/autonode/merge", module + "internal/engine", nil,
		"what a policy decides, others decide without our engine (A-26)"},
	{"api", "k8s.io/client-go", nil, "types for outsiders bring no client"},
	{"internal/translate", "sigs.k8s.io/controller-runtime", nil, "pure: no client"},
	{"internal/autonode/merge", "sigs.k8s.io/controller-runtime", nil, "pure: no client"},
	{"internal/autonode/approver", "sigs.k8s.io/controller-runtime", nil, "pure: no client"},
	{"internal/autonode/conformance", "sigs.k8s.io/controller-runtime", nil, "pure: no client"},
	{"internal/autonode/conformance", "k8s.io/client-go", nil, "pure: no client"},
	{"internal/autonode/approver", "k8s.io/client-go", nil, "pure: no client"},
	{"internal/admission", "sigs.k8s.io/controller-runtime", nil, "pure: no client"},
	{"internal/admission", "k8s.io/client-go", nil, "pure: no client"},
	{"nodescheduling/evaluator", "k8s.io/client-go", nil,
		"pure, and a part of kube-apiserver: it asks through narrow ports"},
	{"nodescheduling/evaluator", "sigs.k8s.io/controller-runtime", nil, "pure: no client"},
	{"nodescheduling/api", "k8s.io/client-go", nil, "types for outsiders bring no client"},
	{"nodescheduling", "k8s.io/kubernetes", nil, "what kube-apiserver takes over cannot require it (A-36)"},
	{"internal/convert", "k8s.io/client-go", nil, "pure: no client"},
	{"internal/migrate", "k8s.io/client-go", nil, "pure: no client"},
	{"internal/provider", "k8s.io/client-go", []string{"internal/provider/kwok/plug", "internal/provider/ec2/plug"},
		"a provider reaches the cluster through its own narrow port"},
	{"internal/provider", "sigs.k8s.io/controller-runtime",
		[]string{"internal/provider/kwok/plug", "internal/provider/ec2/plug"}, "as above"},
}

func TestClosures(t *testing.T) {
	t.Parallel()
	all := packages(t)
	for _, rule := range closures {
		applied := false
		for path, p := range all {
			name, ours := strings.CutPrefix(path, module)
			if !ours || !within(name, rule.part) ||
				slices.ContainsFunc(rule.except, func(e string) bool { return within(name, e) }) {
				continue
			}
			applied = true
			for _, dep := range p.Deps {
				target, ours := strings.CutPrefix(dep, module)
				allowed := all[dep].Standard ||
					ours && (within(target, rule.part) || within(target, "autonodepolicy/fold"))
				if rule.forbidden != "" {
					allowed = !strings.HasPrefix(dep, rule.forbidden)
				}
				if !allowed {
					t.Errorf("%s is made of %s, among others: forbidden, because: %s", name, dep, rule.reason)
				}
			}
		}
		if !applied {
			t.Errorf("the closure rule for %s applies to nothing: take it away", rule.part)
		}
	}
}
