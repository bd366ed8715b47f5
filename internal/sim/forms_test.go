package sim

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEachVerbHasAForm(t *testing.T) {
	t.Parallel()
	known, formed := slices.Sorted(maps.Keys(verbs())), slices.Sorted(maps.Keys(forms))
	if !slices.Equal(known, formed) {
		t.Errorf("verbs:\n%v\nforms:\n%v", known, formed)
	}
}

func TestGeneratedScriptsHaveTheirForms(t *testing.T) {
	t.Parallel()
	for cloud, generate := range Generators() {
		for seed := range uint64(2000) {
			for _, action := range generate(seed).Actions {
				if err := checkForm(action.Verb, action.Args); err != nil {
					t.Fatalf("seed %d, cloud %q: %s: %v", seed, cloud, action, err)
				}
			}
		}
	}
}

func TestAWordThatMeansNothingIsRefused(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"pool":                          "NAME is missing",
		"pool after=0s":                 "NAME is missing",
		"pool a types=m-4":              `"types=m-4" means nothing here`,
		"pool a after=soon":             `after is "soon": want TIME`,
		"pool a soft=few":               `soft is "few": want LIMIT`,
		"pool a weight=1 weight=2":      "weight stands there twice",
		"pool a graceful=yes":           `"graceful=yes" means nothing here`,
		"pool a weight":                 `"weight" means nothing here`,
		"workload web cpu=much":         `cpu is "much": want AMOUNT`,
		"workload web replicas=1 cling": `"cling" means nothing here`,
		"fault 1 broken":                `"broken" is no cured|stubborn|lost`,
		"hold machine 1":                `"machine" is no node|claim`,
		"scale web":                     "N is missing",
		"weather late-share=half":       `late-share is "half": want NUMBER`,
		"crash now":                     `"now" means nothing here`,
	} {
		if _, err := Parse("seed 1\nat 1s " + line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", line, err, want)
		}
	}
	for _, line := range []string{"pool a hard=none soft=3 graceful", "fault 1", "fault 1 lost", "jump -20s",
		"see claims=a:1 claims=b:2"} {
		if _, err := Parse("seed 1\nat 1s " + line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestThePageNamesEachWordOfTheForms(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/simulation.md")
	if err != nil {
		t.Fatal(err)
	}
	named := func(word string) bool {
		return regexp.MustCompile("[` ,]" + regexp.QuoteMeta(word) + "([` ,|]|$)").Match(page)
	}
	for verb, form := range forms {
		if !named(verb) {
			t.Errorf("the page does not name %s", verb)
		}
		for _, part := range strings.Fields(form) {
			switch name, _, valued := strings.Cut(part, "="); {
			case isPlace(part):
			case valued && !strings.Contains(string(page), name+"="), !valued && !named(name):
				t.Errorf("the page does not name %s of %s", part, verb)
			}
		}
	}
}
