package merge_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	hypershiftv1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1"
	hypershiftv1beta1 "github.com/joiner-autoscaler/joiner/api/hypershift/v1beta1"
	public "github.com/joiner-autoscaler/joiner/autonodepolicy/admission"
	"github.com/joiner-autoscaler/joiner/internal/autonode/merge"
)

// nodeClassScript is the input of nodeclass, as YAML. What it leaves out of infra is there already in defaultInfra.
type nodeClassScript struct {
	// Policy is the spec of the policy; without it there is none.
	Policy *hypershiftv1beta1.AutoNodePolicySpec `json:"policy"`
	// Spec is the wrapper's.
	Spec hypershiftv1.OpenshiftEC2NodeClassSpec `json:"spec"`
	// Infra replaces parts of defaultInfra.
	Infra merge.Infra `json:"infra"`
	// Default is the size of the root volume where the policy says nothing, when it is not the built-in one.
	Default string `json:"default"`
	// Show names the fields of the result to print; empty for all.
	Show []string `json:"show"`
}

func defaultInfra() merge.Infra {
	return merge.Infra{
		InfraID: "demo-x7k", InstanceProfile: "demo-nodes",
		Bootstrap: &merge.Bootstrap{UserData: "ignition", AMIs: []string{"ami-amd", "ami-arm"}},
	}
}

func nodeClass(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	s := nodeClassScript{Infra: defaultInfra()}
	if err := yaml.UnmarshalStrict([]byte(d.Input), &s); err != nil {
		d.Fatalf(t, "%v", err)
	}
	var policy *hypershiftv1beta1.AutoNodePolicy
	if s.Policy != nil {
		policy = &hypershiftv1beta1.AutoNodePolicy{Spec: *s.Policy}
	}
	wrapper := &hypershiftv1.OpenshiftEC2NodeClass{Spec: s.Spec}
	wrapper.Name = "default"
	defaults := merge.DefaultRootVolume()
	if s.Default != "" {
		defaults.Size = resource.MustParse(s.Default)
	}
	result := merge.EC2NodeClass(policy, wrapper, defaults, s.Infra)
	var b strings.Builder
	switch {
	case result.EC2NodeClass != nil:
		b.WriteString(show(t, d, result.EC2NodeClass.Spec, s.Show))
	case result.Wait != nil:
		fmt.Fprintf(&b, "wait %s: %s\n", result.Wait.Reason, result.Wait.Message)
	default:
		b.WriteString(problems("nothing is wrong, and nothing written", result.Problems))
	}
	if len(result.IgnoredTags) > 0 {
		fmt.Fprintf(&b, "ignored tags %v\n", result.IgnoredTags)
	}
	if len(result.Overridden) > 0 {
		fmt.Fprintln(&b, text(result.RootVolume()))
	}
	return b.String()
}

// show prints the named fields of a value as YAML.
func show(t *testing.T, d *datadriven.TestData, value any, fields []string) string {
	t.Helper()
	var b strings.Builder
	if len(fields) == 0 {
		return marshal(t, d, value)
	}
	all := map[string]any{}
	if err := yaml.Unmarshal([]byte(marshal(t, d, value)), &all); err != nil {
		d.Fatalf(t, "%v", err)
	}
	for _, field := range fields {
		if part, found := all[field]; found {
			b.WriteString(marshal(t, d, map[string]any{field: part}))
			continue
		}
		fmt.Fprintf(&b, "%s: not set\n", field)
	}
	return b.String()
}

func marshal(t *testing.T, d *datadriven.TestData, value any) string {
	t.Helper()
	out, err := yaml.Marshal(value)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	return string(out)
}

// admission reads operator=NAME operand=NAME strict nodeclaims=RULE, and prints the parts of the policies that differ;
// with full, all of the first.
func admission(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	config := merge.AdmissionConfig{Operator: merge.DefaultOperator, Strict: d.HasArg("strict")}
	var rule string
	for name, into := range map[string]*string{"operator": &config.Operator, "operand": &config.Operand,
		"nodeclaims": &rule} {
		if d.HasArg(name) {
			d.ScanArgs(t, name, into)
		}
	}
	config.NodeClaims = merge.NodeClaimRule(rule)
	config.Labels = map[string]string{merge.ManagedByLabel: merge.ManagedByValue}
	list, err := public.Policies(config)
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	for _, p := range list {
		if d.HasArg("full") {
			b.WriteString(marshal(t, d, p.Policy) + "---\n" + marshal(t, d, p.Binding))
			return b.String()
		}
		rules := p.Policy.Spec.MatchConstraints.ResourceRules[0]
		fmt.Fprintf(&b, "%s, bound by %s\n  %v of %v\n", p.Policy.Name, p.Binding.Name, rules.Operations,
			rules.Resources)
		for _, condition := range p.Policy.Spec.MatchConditions {
			fmt.Fprintf(&b, "  only if %s\n", condition.Expression)
		}
		for _, validation := range p.Policy.Spec.Validations {
			fmt.Fprintf(&b, "  allow if %s\n  or say %s\n", validation.Expression, validation.Message)
		}
	}
	return b.String()
}
