package claimrule

import (
	"context"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	apiservercel "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	autonode "github.com/joiner-autoscaler/joiner/autonodepolicy/admission"
)

// rule is an admission policy as an API server has it after compiling.
type rule struct {
	spec       admissionv1.ValidatingAdmissionPolicySpec
	conditions cel.ConditionEvaluator
}

// environments returns what expressions may use, as an API server has it. Making it takes longer than making a policy.
var environments = sync.OnceValue(func() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
})

func compile(t testing.TB, protection autonode.Protection) rule {
	t.Helper()
	compiler, err := cel.NewCompositedCompiler(environments())
	if err != nil {
		t.Fatal(err)
	}
	options := cel.OptionalVariableDeclarations{HasAuthorizer: true}
	spec := protection.Policy.Spec
	var variables []cel.NamedExpressionAccessor
	for _, variable := range spec.Variables {
		variables = append(variables, &validating.Variable{Name: variable.Name, Expression: variable.Expression})
	}
	compiler.CompileAndStoreVariables(variables, options, environment.StoredExpressions)
	var validations []cel.ExpressionAccessor
	for _, validation := range spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: validation.Expression,
			Message: validation.Message})
	}
	conditions := compiler.CompileCondition(validations, options, environment.StoredExpressions)
	for _, err := range conditions.CompilationErrors() {
		t.Errorf("the API server does not take the rule: %v", err)
	}
	return rule{spec: spec, conditions: conditions}
}

// verdict is an API server's decision on a claim.
type verdict struct {
	refused []string // the messages
	failed  []error  // of expressions that could not be evaluated; they refuse, too
	cost    int64    // of all expressions
}

func (v verdict) allowed() bool { return len(v.refused)+len(v.failed) == 0 }

// judge evaluates the rule for the creation of a claim.
func (r rule) judge(t testing.TB, claim *karpenterv1.NodeClaim) verdict {
	t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(claim)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: content}
	kind, resource := karpenterv1.GroupVersion().WithKind("NodeClaim"),
		karpenterv1.GroupVersion().WithResource("nodeclaims")
	attributes := admission.NewAttributesRecord(object, nil, kind, "", claim.Name, resource, "", admission.Create, nil,
		false, nil)
	versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: object}
	request := cel.CreateAdmissionRequest(attributes, metav1.GroupVersionResource(resource),
		metav1.GroupVersionKind(kind))
	results, left, err := r.conditions.ForInput(context.Background(), versioned, request,
		cel.OptionalVariableBindings{}, nil, apiservercel.RuntimeCELCostBudget)
	if err != nil {
		return verdict{failed: []error{err}}
	}
	v := verdict{cost: apiservercel.RuntimeCELCostBudget - left}
	for i, result := range results {
		switch {
		case result.Error != nil:
			v.failed = append(v.failed, result.Error)
		case result.EvalResult == nil || result.EvalResult.Value() != true:
			v.refused = append(v.refused, r.spec.Validations[i].Message)
		}
	}
	return v
}

// names reports whether a refusal names the label.
func (v verdict) names(key string) bool {
	for _, message := range v.refused {
		if strings.Contains(message, key+" ") {
			return true
		}
	}
	return false
}
