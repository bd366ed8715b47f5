package translate_test

import (
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/translate"
)

// K-55. The content of a valid file of commitments.
func TestK55_CommitmentsAreRead(t *testing.T) {
	t.Parallel()
	list, err := translate.Commitments([]byte(`
commitments:
- name: m5-plan
  requirements:
  - {key: karpenter.k8s.aws/instance-family, operator: In, values: [m5, m5d]}
  - {key: topology.kubernetes.io/region, operator: In, values: [eu-central-1]}
  dollarsPerHour: 12.5
- name: everything
  instances: 3
`))
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	first, second := list[0], list[1]
	if first.Name != "m5-plan" || first.PerHour != 12_500_000 || first.Instances != 0 ||
		!first.Requirements.Get("karpenter.k8s.aws/instance-family").Equal(
			requirement.OneOf("karpenter.k8s.aws/instance-family", "m5", "m5d")) ||
		!first.Requirements.Holds("topology.kubernetes.io/region") {
		t.Errorf("first is %+v", first)
	}
	if second.Name != "everything" || second.PerHour != 0 || second.Instances != 3 || second.Requirements.Len() != 0 {
		t.Errorf("second is %+v", second)
	}
	if list, err := translate.Commitments(nil); len(list) != 0 || err != nil {
		t.Errorf("no file: %v, %v", list, err)
	}
	if list, err := translate.Commitments([]byte("commitments: []\n")); len(list) != 0 || err != nil {
		t.Errorf("a file with none: %v, %v", list, err)
	}
}

// K-55. Errors have position, value and what is allowed, and all are reported at once.
func TestK55_CommitmentsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	refused := func(text, want string) {
		t.Helper()
		if list, err := translate.Commitments([]byte(text)); err == nil || list != nil ||
			!strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "translate.") {
			t.Errorf("%s\n%v, %v\nwant %s", text, list, err, want)
		}
	}
	for text, want := range map[string]string{
		"commitments: {}": "want YAML with the list commitments",
		"commitments:\n- {name: a, instances: 1, hourly: 2}": `commitments[0]: unknown field "hourly"`,
		"\n":                          "want YAML with the list commitments, in which [] stands for none: it has none",
		"commitments:\n":              "it has none",
		"- {name: a, instances: 1}\n": "it is array",
		"commitments:\n- {name: a, instances: 99999999999999999999}": "commitments[0].instances is 1",
		"commitments:\n- m5":             `commitments[0] is "m5": want name, requirements`,
		"commitments:\n- {instances: 1}": `commitments[0].name is "": want 1 to 63 characters`,
		"commitments:\n- {name: a, instances: 1}\n- {name: a, instances: 1}": `commitments[1].name is "a", as commitments[0].name is`,
		"commitments:\n- {name: a}":                                  "commitments[0]: want one of dollarsPerHour and instances",
		"commitments:\n- {name: a, instances: 1, dollarsPerHour: 1}": "commitments[0]: want one of dollarsPerHour and instances",
		"commitments:\n- {name: a, instances: 0}":                    "commitments[0].instances is 0: want a number above 0",
		"commitments:\n- {name: a, dollarsPerHour: -1}":              "commitments[0].dollarsPerHour is -1: want dollars per hour",
		"commitments:\n- {name: a, dollarsPerHour: 1e9}":             "commitments[0].dollarsPerHour is 1e+09: want dollars per hour",
		"commitments:\n- {name: a, instances: 1, requirements: [{key: karpenter.sh/capacity-type, operator: In, " +
			"values: [spot]}]}": "commitments[0].requirements[0].key is karpenter.sh/capacity-type: leave it out",
		"commitments:\n- {name: a, instances: 1, " +
			"requirements: [{key: zone, operator: Is, values: [a]}]}": "commitments[0].requirements[0]: ",
		"commitments:\n- {name: a, instances: 1, requirements: [{key: z, operator: In, values: [a]}, {key: z, " +
			"operator: In, values: [b]}]}": "commitments[0].requirements: those on z contradict each other",
		"commitments:\n" + strings.Repeat("- {name: a, instances: 1}\n",
			65): "commitments has 65 entries: want at most 64",
		"commitments:\n- {instances: 0}": `commitments[0].name is "": want 1 to 63 characters; commitments[0].instances is 0`,
	} {
		refused(text, want)
	}
	refused("commitments:\n- {name: a, instances: 1}\n---\ncommitments:\n- {name: b, instances: 1}",
		"it has 2 YAML documents, with --- between them")
	refused("commitments:\n- {name: b, instances: 1}\n- {name: a, dollarsPerHour: '12,50'}",
		`commitments[1].dollarsPerHour is "12,50": want a number`)
	refused("commitments:\n- {name: a, instances: 1.5}",
		"commitments[0].instances is 1.5: want a whole number")
	refused("commitments:\n- {name: a, instances: 1, requirements: {zone: a}}",
		`commitments[0].requirements is {"zone":"a"}: want a list`)
	refused("commitments:\n- {name: a, instances: 1, requirements: [{key: 'Zone!', operator: In, values: [a]}]}",
		`commitments[0].requirements[0].key is "Zone!": want the name of a label`)
}
