package cli

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	karpenterv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1alpha1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	kwokv1alpha1 "github.com/joiner-autoscaler/joiner/api/karpenterkwok/v1alpha1"
	autonodev1beta1 "github.com/joiner-autoscaler/joiner/autonodepolicy/api/v1beta1"
)

// userPages are the pages for those who use Joiner, by their path from here.
func userPages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, folder := range []string{"../../README.md", "../../docs", "../../charts", "../../upstream"} {
		err := filepath.WalkDir(folder, func(name string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(name) != ".md" {
				return err
			}
			content, err := os.ReadFile(name)
			all[name] = string(content)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

var (
	fence  = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	inline = regexp.MustCompile("`([^`\n]+)`")
	shown  = regexp.MustCompile(`^(?:[a-z]*[$#] )?(?:bin/)?joinerctl (.+)$`)
)

// commandsOf are the command lines of joinerctl on a page, in blocks and between words, without joinerctl itself.
func commandsOf(page string) (all []string) {
	add := func(line string) {
		if found := shown.FindStringSubmatch(strings.TrimSpace(line)); found != nil {
			all = append(all, found[1])
		}
	}
	for _, block := range fence.FindAllStringSubmatch(page, -1) {
		for line := range strings.Lines(strings.ReplaceAll(block[2], "\\\n", " ")) {
			if !strings.HasPrefix(line, "joinerctl: ") { // what it says, not what is typed
				add(line)
			}
		}
	}
	for _, code := range inline.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		add(code[1])
	}
	return all
}

// wrongCommand says what is wrong with a command line; arguments in capitals and in brackets stand for others.
func wrongCommand(line string) error {
	line = regexp.MustCompile(`\s(?:\\?\||>|#|&&|2>|…|\.\.\.|;)(?:.*)$|\s{3,}.*$|[)]+$`).ReplaceAllString(line, "")
	words := strings.Fields(strings.NewReplacer("'", "", `"`, "", "[", "", "]", "").Replace(line))
	command := root(Config{})
	command.InitDefaultHelpCmd()
	command.InitDefaultCompletionCmd("bash")
	found, rest, err := command.Find(words)
	if err != nil {
		return err
	}
	found.InitDefaultHelpFlag()
	if found.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return found.Args(found, rest)
	}
	err = found.ParseFlags(rest)
	if err != nil && strings.Contains(err.Error(), "needs an argument") { // a flag that is only named
		return nil
	}
	return err
}

// U-12: every command line of joinerctl that a page shows has commands and flags that joinerctl has.
func TestU12_CommandsOfPagesExist(t *testing.T) {
	t.Parallel()
	seen := 0
	for name, page := range userPages(t) {
		for _, line := range commandsOf(page) {
			seen++
			if err := wrongCommand(line); err != nil {
				t.Errorf("%s shows `joinerctl %s`: %v", name, line, err)
			}
		}
	}
	const fewest = 50
	if seen < fewest {
		t.Errorf("only %d command lines were found", seen)
	}
	for _, line := range []string{"exlpain pod a/b", "status --wotch", "explain pot a/b", "simulate --chnage x"} {
		if wrongCommand(line) == nil {
			t.Errorf("joinerctl %s passes", line)
		}
	}
}

// kinds are those of ours, with a new object of each.
func kinds(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{karpenterv1.AddToScheme, karpenterv1alpha1.AddToScheme,
		awsv1.AddToScheme, kwokv1alpha1.AddToScheme, hypershiftv1.AddToScheme, autonodev1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// U-12: every manifest of a kind of ours that a page shows has fields that the kind has.
func TestU12_ManifestsOfPagesAreOfOurKinds(t *testing.T) {
	t.Parallel()
	scheme, seen := kinds(t), 0
	for name, page := range userPages(t) {
		for _, block := range fence.FindAllStringSubmatch(page, -1) {
			if block[1] != "yaml" {
				continue
			}
			for document := range strings.SplitSeq(block[2], "\n---\n") {
				of, err := wrongManifest(scheme, document)
				if err != nil {
					t.Errorf("%s: a manifest of %s: %v", name, of, err)
				}
				if of != "" {
					seen++
				}
			}
		}
	}
	if seen == 0 {
		t.Error("no manifest was looked at")
	}
	const wrong = "apiVersion: karpenter.sh/v1\nkind: NodePool\nspec: {hardLimit: {nodes: 1}}\n"
	if _, err := wrongManifest(scheme, wrong); err == nil {
		t.Error("a manifest with a field that is not there passes")
	}
}

// wrongManifest decodes a manifest strictly and says of which kind it is; none is of no kind of ours.
func wrongManifest(scheme *runtime.Scheme, document string) (string, error) {
	var header runtime.TypeMeta
	if err := yaml.Unmarshal([]byte(document), &header); err != nil || header.Kind == "" {
		return "", nil // a part of a manifest, or a file of another form
	}
	kind := schema.FromAPIVersionAndKind(header.APIVersion, header.Kind)
	into, err := scheme.New(kind)
	if runtime.IsNotRegisteredError(err) {
		return "", nil
	}
	if err != nil {
		return kind.Kind, err
	}
	return kind.Kind, yaml.UnmarshalStrict([]byte(document), into)
}

// othersFlags are flags of programs of others that pages name: Helm, kubectl and kube-apiserver.
func othersFlags() []string {
	return []string{"set", "take-ownership", "force-conflicts", "cascade", "enable-admission-plugins", "api-versions",
		"reset-then-reuse-values", "reuse-values"}
}

// U-12: every flag that a page names is one of our programs.
func TestU12_FlagsOfPagesExist(t *testing.T) {
	t.Parallel()
	// the last is read before the others are
	known := map[string]bool{"help": true, "version": true, "unknown-flags": true}
	var add func(*cobra.Command)
	add = func(c *cobra.Command) {
		for _, flags := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
			flags.VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
		}
		for _, below := range c.Commands() {
			add(below)
		}
	}
	add(root(Config{}))
	maps.Copy(known, declaredFlags(t))
	named := regexp.MustCompile(`^--([a-z][a-z0-9-]+)(?:[= ].*)?$`)
	seen := 0
	for name, page := range userPages(t) {
		if strings.Contains(name, "docs/spec/") { // what must hold once, and is there in part
			continue
		}
		for _, code := range inline.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
			flag := named.FindStringSubmatch(code[1])
			if flag == nil {
				continue
			}
			seen++
			if !known[flag[1]] && !slices.Contains(othersFlags(), flag[1]) {
				t.Errorf("%s names --%s, which no program of ours has", name, flag[1])
			}
		}
	}
	const fewest = 100
	if seen < fewest {
		t.Errorf("only %d flags were found", seen)
	}
}

// declaredFlags are those that our programs declare, read from their sources: a command imports no other.
func declaredFlags(t *testing.T) map[string]bool {
	t.Helper()
	declared := regexp.MustCompile(`(?:VarP?|Func|Bool|String|Int|Int64|Uint64|Float64|Duration|StringSlice)\(\s*` +
		`(?:[^"\n]*,\s*)?"([a-z][a-z0-9-]*)"`)
	all := map[string]bool{}
	for _, folder := range []string{"../../cmd", "../../internal", "../../localcluster", "../../bench", "../../tools",
		"../../upstream"} {
		err := filepath.WalkDir(folder, func(name string, _ fs.DirEntry, err error) error {
			if err != nil || filepath.Ext(name) != ".go" {
				return err
			}
			source, err := os.ReadFile(name)
			for _, found := range declared.FindAllSubmatch(source, -1) {
				all[string(found[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}
