package admission

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DefaultOperator is the operator's user name in the guest cluster, unless it is configured otherwise. It comes from a
// client certificate, not from a service account (G4).
const DefaultOperator = "system:hosted-cluster-config"

// NodeClaimRule says how NodeClaims are protected (G5).
type NodeClaimRule string

const (
	// NodeClaimsAuto is NodeClaimsByIdentity if Config.Operand is set, otherwise NodeClaimsOpen.
	NodeClaimsAuto NodeClaimRule = ""
	// NodeClaimsOpen protects nothing.
	NodeClaimsOpen NodeClaimRule = "Open"
	// NodeClaimsByIdentity lets only the operand and the operator create NodeClaims and change their spec.
	NodeClaimsByIdentity NodeClaimRule = "ByIdentity"
	// NodeClaimsByContent lets everyone create NodeClaims that name the same NodePool as owner and in their label. It
	// keeps out nodes without a pool. It is the weaker rule: it does not compare the claim with its pool.
	NodeClaimsByContent NodeClaimRule = "ByContent"
)

// Config says who may write what in the guest cluster. Validate checks it.
type Config struct {
	// Operator is the user name of the operator, which writes the merged objects; see DefaultOperator. An operator
	// must ask the guest for its own user name, and refuse to start under another. Otherwise it locks itself out (G4).
	Operator string
	// Operand is the user name of the autoscaler in the guest cluster. Leave it empty if others have that name too: in
	// HyperShift today, the autoscaler shares the name of the cluster's admin.
	Operand string
	// Strict refuses writes of metadata too, except by the operator, the operand and the cluster's own controllers. It
	// needs Operand.
	Strict bool
	// NodeClaims says how NodeClaims are protected.
	NodeClaims NodeClaimRule
	// Labels are put on every object.
	Labels map[string]string
}

// Names of Karpenter's API.
const (
	karpenterGroup = "karpenter.sh"
	nodePoolLabel  = karpenterGroup + "/nodepool"
)

// adminNames are user names that people have: exempting them would protect nothing.
var adminNames = []string{"system:admin", "kubernetes-admin", "kube-admin", "system:anonymous"}

// clusterControllers are the users of a cluster's own controllers that write metadata of every kind: the garbage
// collector (finalizers, owner references) and the storage version migrator (writes that change nothing). The last
// entry is for clusters without service accounts for controllers: all controllers have this name there.
var clusterControllers = []string{
	"system:serviceaccount:kube-system:generic-garbage-collector",
	"system:serviceaccount:kube-system:storage-version-migrator-controller",
	"system:kube-controller-manager",
}

// Validate returns an error that names each wrong field, its value and what is allowed.
func (c Config) Validate() error {
	var errs []error
	if c.Operator == "" {
		errs = append(errs,
			fmt.Errorf(
				"operator user name is empty: give the name that the operator has in the guest cluster, usually %s",
				DefaultOperator))
	}
	for _, user := range []struct{ field, name string }{{"operator", c.Operator}, {"operand", c.Operand}} {
		if slices.Contains(adminNames, user.name) {
			errs = append(errs,
				fmt.Errorf("%s user name is %q, which people have too: exempting it would protect nothing", user.field,
					user.name))
		}
		if !utf8.ValidString(user.name) || strings.ContainsFunc(user.name, unicode.IsControl) {
			errs = append(errs, fmt.Errorf("%s user name is %q: it must be text without control characters",
				user.field, user.name))
		}
	}
	if c.Strict && c.Operand == "" {
		errs = append(errs,
			errors.New(
				"strict needs the operand's user name, one that nobody else has: without it the operand could not write its annotations"))
	}
	switch c.NodeClaims {
	case NodeClaimsAuto, NodeClaimsOpen, NodeClaimsByContent:
	case NodeClaimsByIdentity:
		if c.Operand == "" {
			errs = append(errs,
				fmt.Errorf("nodeClaims is %s, which needs the operand's user name, one that nobody else has",
					c.NodeClaims))
		}
	default:
		errs = append(errs, fmt.Errorf("nodeClaims is %q: it must be empty, %s, %s or %s", c.NodeClaims,
			NodeClaimsOpen, NodeClaimsByIdentity, NodeClaimsByContent))
	}
	return errors.Join(errs...)
}

// Protection is an admission policy with the binding that puts it into force. All fields that the API server would
// default are set, so that the specs can be compared with those in a cluster (R38).
type Protection struct {
	Policy  admissionv1.ValidatingAdmissionPolicy
	Binding admissionv1.ValidatingAdmissionPolicyBinding
}

// Policies returns the policies for the guest cluster (R34 to R39), ordered by name. Write them before the first
// merged object (G22). They do not stop anyone who may impersonate users or write admission policies; the operator
// repairs and reports that (G4). Policies returns an error if Validate does.
func Policies(config Config) ([]Protection, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("admission policies: %w", err)
	}
	list := []Protection{config.wrapped("EC2NodeClass", "OpenshiftEC2NodeClass", "karpenter.k8s.aws",
		"ec2nodeclasses")}
	if claims, wanted := config.nodeClaims(); wanted {
		list = append(list, claims)
	}
	// The scale subresource is a separate request. A rule for nodepools alone would let it pass (G3, K7).
	return append(list, config.wrapped("NodePool", "OpenshiftNodePool", karpenterGroup, "nodepools",
		"nodepools/scale")), nil
}

// Unwanted returns the policies that [Policies] leaves out under this configuration but not under others, with names
// and labels only. Delete them if an operator with another configuration left them: otherwise they could shut
// Karpenter out for good.
func Unwanted(config Config) []Protection {
	if _, wanted := config.nodeClaims(); wanted {
		return nil
	}
	claims := config.protection("NodeClaim", rule{})
	claims.Policy.Spec, claims.Binding.Spec = admissionv1.ValidatingAdmissionPolicySpec{},
		admissionv1.ValidatingAdmissionPolicyBindingSpec{}
	return []Protection{claims}
}

// sameSpec holds for writes of metadata only: the autoscaler and the garbage collector need annotations and finalizers
// (R39). Status is a subresource that no rule matches. On CREATE and DELETE one of the objects is null, so sameSpec
// checks the operation first.
const sameSpec = "request.operation == 'UPDATE' && has(object.spec) && has(oldObject.spec) && object.spec == oldObject.spec"

// wrapped protects a kind that users write through a wrapper (R34, R35).
func (c Config) wrapped(kind, wrapper, group string, resources ...string) Protection {
	expression := sameSpec
	if c.Strict {
		expression = fmt.Sprintf("%s && request.userInfo.username in %s", sameSpec,
			celList(append([]string{c.Operand}, clusterControllers...)))
	}
	return c.protection(kind, rule{
		group: group, resources: resources,
		operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update, admissionv1.Delete},
		exempt:     []admissionv1.MatchCondition{exclude("exclude-hcco-user", c.Operator)},
		validations: []admissionv1.Validation{{
			Expression: expression,
			Message:    fmt.Sprintf("%s resources cannot be modified directly. Use %s instead.", kind, wrapper),
		}},
	})
}

const nodeClaimMessage = "NodeClaim resources cannot be created or changed directly. Use OpenshiftNodePool instead; " +
	"to have a node replaced, delete its NodeClaim."

// ownedByItsPool holds for a claim whose label names a NodePool that owns it.
const ownedByItsPool = "has(object.metadata.labels) && '" + nodePoolLabel + "' in object.metadata.labels && " +
	"has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, o.kind == 'NodePool' && " +
	"o.apiVersion.startsWith('" + karpenterGroup + "/') && o.name == object.metadata.labels['" + nodePoolLabel + "'])"

// samePool holds if an update does not change the label of the pool.
const samePool = "(has(oldObject.metadata.labels) && '" + nodePoolLabel + "' in oldObject.metadata.labels ? " +
	"oldObject.metadata.labels['" + nodePoolLabel + "'] : '') == " +
	"(has(object.metadata.labels) && '" + nodePoolLabel + "' in object.metadata.labels ? " +
	"object.metadata.labels['" + nodePoolLabel + "'] : '')"

// nodeClaims protects NodeClaims; it returns false if the configuration leaves them open. Anyone may still delete
// them: that is how users have a node replaced.
func (c Config) nodeClaims() (Protection, bool) {
	r := rule{
		group: karpenterGroup, resources: []string{"nodeclaims"},
		operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		exempt:     []admissionv1.MatchCondition{exclude("exclude-hcco-user", c.Operator)},
	}
	switch {
	case c.NodeClaims == NodeClaimsByIdentity || c.NodeClaims == NodeClaimsAuto && c.Operand != "":
		r.exempt = append(r.exempt, exclude("exclude-operand", c.Operand))
		r.validations = []admissionv1.Validation{{Expression: sameSpec, Message: nodeClaimMessage}}
	case c.NodeClaims == NodeClaimsByContent:
		r.validations = []admissionv1.Validation{
			{Expression: "request.operation != 'CREATE' || " + ownedByItsPool, Message: nodeClaimMessage},
			{Expression: "request.operation != 'UPDATE' || " + sameSpec + " && " + samePool,
				Message: nodeClaimMessage},
		}
	default:
		return Protection{}, false
	}
	return c.protection("NodeClaim", r), true
}

// rule is the part that differs between the policies.
type rule struct {
	group       string
	resources   []string
	operations  []admissionv1.OperationType
	exempt      []admissionv1.MatchCondition
	validations []admissionv1.Validation
}

func (c Config) protection(kind string, r rule) Protection {
	kind = strings.ToLower(kind)
	name, binding := "karpenter."+kind+".hypershift.io", "karpenter-binding."+kind+".hypershift.io" // R37
	meta := metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: "ValidatingAdmissionPolicy"}
	bindingMeta := meta
	bindingMeta.Kind += "Binding"
	return Protection{
		Policy: admissionv1.ValidatingAdmissionPolicy{
			TypeMeta: meta, ObjectMeta: metav1.ObjectMeta{Name: name, Labels: maps.Clone(c.Labels)},
			Spec: admissionv1.ValidatingAdmissionPolicySpec{
				FailurePolicy:   new(admissionv1.Fail),
				MatchConditions: r.exempt,
				Validations:     r.validations,
				MatchConstraints: &admissionv1.MatchResources{
					MatchPolicy:       new(admissionv1.Equivalent),
					NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
					ResourceRules: []admissionv1.NamedRuleWithOperations{
						{RuleWithOperations: admissionv1.RuleWithOperations{
							Operations: r.operations,
							Rule: admissionv1.Rule{
								APIGroups: []string{r.group}, APIVersions: []string{"*"}, Resources: r.resources,
								Scope: new(admissionv1.AllScopes),
							},
						}}},
				},
			},
		},
		Binding: admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta: bindingMeta, ObjectMeta: metav1.ObjectMeta{Name: binding, Labels: maps.Clone(c.Labels)},
			Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			},
		},
	}
}

// exclude returns a condition that exempts a user from a policy.
func exclude(name, user string) admissionv1.MatchCondition {
	return admissionv1.MatchCondition{Name: name, Expression: celString(user) + " != request.userInfo.username"}
}

// celString returns a text without control characters as a literal of the Common Expression Language.
func celString(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(text) + "'"
}

func celList(texts []string) string {
	literals := make([]string, len(texts))
	for i, text := range texts {
		literals[i] = celString(text)
	}
	return "[" + strings.Join(literals, ", ") + "]"
}
