package admission

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/internal/limit"
	"github.com/joiner-autoscaler/joiner/autonodepolicy/policy"
)

// ReasonRuleTooLarge says that the guest is not wholly protected, since the rule for NodeClaims lacks labels of the
// policy.
const ReasonRuleTooLarge = "RuleTooLarge"

// ClaimRuleName is the name of the admission policy with the content rule for NodeClaims.
const ClaimRuleName = "karpenter.nodeclaim-policy.hypershift.io"

// ClaimRule says what NodeClaims may ask for, whoever writes them. It adds to the protection of [Policies], and
// exempts nobody.
type ClaimRule struct {
	// Requirements are those of the provider's policy. They must pass policy.Check. Without any, the rule checks only
	// node classes.
	Requirements []fold.Requirement
	// Classes are the node classes that a claim may refer to.
	Classes []policy.NodeClass
	// Kinds are the kinds of which a claim may refer to any node class.
	Kinds []policy.NodeClassKind
	// Labels are put on both objects.
	Labels map[string]string
}

const (
	// mostCost is how much an expression may cost, for the largest claim that Karpenter makes: a third of what an API
	// server allows for a call (U11).
	mostCost = 1_000_000 / 3
	// mostCostTogether is the same for all expressions of a binding (U11).
	mostCostTogether = 10_000_000 / 3
	// mostText is how long an expression may be, in bytes: parsers accept 100,000 code points.
	mostText = 90_000
	// mostTextTogether and mostClassText keep the object well below the size limit of etcd. Node classes have a share
	// of their own: their number is up to the users of the guest, who must not push out labels of the policy.
	mostTextTogether = 700_000
	mostClassText    = 200_000
)

// Protection returns the rule as an admission policy with its binding. For each label of the policy, a claim's
// entries, and its label if it has one, must lie within the policy, as in policy.Conforms. Its node class must be one
// of r.Classes or r.Kinds. The API server evaluates the rule after all mutation, when a NodeClaim is created or its
// spec changes.
//
// leftOut are the labels, sorted, that the rule lacks. Their expression would cost more than a third of the API
// server's limit, is too long, or has more than policy.MaxValues exclusions: see [ReasonRuleTooLarge]. Protection
// returns an error if the requirements fail policy.Check; then keep the last rule. For node classes that do not fit
// see [ClaimRule.ClassesLeftOut].
func (r ClaimRule) Protection() (protection Protection, leftOut []fold.Key, err error) {
	if problems := policy.Check(policy.Policy{Requirements: r.Requirements}); len(problems) > 0 {
		return Protection{}, nil, fmt.Errorf("rule for NodeClaims: %s", policy.Join(problems))
	}
	sets, judged, _ := r.classes()
	protection = Config{Labels: r.Labels}.protection("NodeClaim-Policy", rule{
		group: karpenterGroup, resources: []string{"nodeclaims"},
		operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		exempt: []admissionv1.MatchCondition{{
			Name: "spec-is-written", Expression: "request.operation == 'CREATE' || object.spec != oldObject.spec",
		}},
		validations: []admissionv1.Validation{{Expression: judged, Message: classMessage}},
	})
	spec := &protection.Policy.Spec
	spec.Variables = sets
	cost, text := 0, 0
	for i, l := range limit.Of(r.Requirements) {
		e := expression{Limit: l, entries: fmt.Sprintf("entries%d", i), set: fmt.Sprintf("values%d", i)}
		variables := e.variables()
		length := 0
		for _, variable := range variables {
			length = max(length, len(variable.Expression))
		}
		if len(e.Except) > policy.MaxValues || e.cost() > mostCost || length > mostText ||
			cost+e.cost() > mostCostTogether || text+length > mostTextTogether {
			leftOut = append(leftOut, l.Key)
			continue
		}
		cost, text = cost+e.cost(), text+length
		spec.Variables = append(spec.Variables, variables...)
		spec.Validations = append(spec.Validations, admissionv1.Validation{
			Expression: e.judged(), Message: fmt.Sprintf(limitMessage, l.Key),
		})
	}
	return protection, leftOut, nil
}

const (
	classMessage = "The node class of this NodeClaim is not managed by the provider. Use the OpenshiftNodePools of this cluster, " +
		"with a node class that an OpenshiftEC2NodeClass stands for."
	limitMessage = "This NodeClaim asks for %s outside of what the provider's policy allows. Use the OpenshiftNodePools of this cluster: " +
		"their status says what the policy leaves."
)

// ClassesLeftOut returns those of r.Classes, by kind and name, that the rule lacks since their names together are too
// long: see [ReasonRuleTooLarge]. A claim that refers to one of them is refused.
func (r ClaimRule) ClassesLeftOut() []policy.NodeClass {
	_, _, leftOut := r.classes()
	return leftOut
}

// classes returns an expression that holds if the claim's node class is one of r.Classes or r.Kinds, the variables
// with their names that it needs, and the classes that do not fit.
func (r ClaimRule) classes() (sets []admissionv1.Variable, expression string, leftOut []policy.NodeClass) {
	byKind := map[policy.NodeClassKind][]string{}
	for _, class := range r.Classes {
		kind := policy.NodeClassKind{Group: class.Group, Kind: class.Kind}
		byKind[kind] = append(byKind[kind], class.Name)
	}
	for _, kind := range r.Kinds {
		byKind[kind] = nil
	}
	kinds := slices.SortedFunc(maps.Keys(byKind), func(a, b policy.NodeClassKind) int {
		return strings.Compare(a.Group+"/"+a.Kind, b.Group+"/"+b.Kind)
	})
	var terms []string
	room := mostClassText
	for _, kind := range kinds {
		term := fmt.Sprintf("object.spec.nodeClassRef.group == %s && object.spec.nodeClassRef.kind == %s",
			celString(kind.Group), celString(kind.Kind))
		if names := byKind[kind]; names != nil {
			slices.Sort(names)
			parts, rest := parted(slices.Compact(names), &room)
			for _, name := range rest {
				leftOut = append(leftOut, policy.NodeClass{Group: kind.Group, Kind: kind.Kind, Name: name})
			}
			if len(parts) == 0 {
				continue
			}
			listed := make([]string, len(parts))
			for i, part := range parts {
				set := fmt.Sprintf("classes%d", len(sets))
				sets = append(sets, admissionv1.Variable{Name: set, Expression: celSet(part)})
				listed[i] = "object.spec.nodeClassRef.name in variables." + set
			}
			term += " && (" + strings.Join(listed, " || ") + ")"
		}
		terms = append(terms, "("+term+")")
	}
	if len(terms) == 0 {
		return nil, "false", leftOut
	}
	return sets, "has(object.spec.nodeClassRef) && (" + strings.Join(terms, " || ") + ")", leftOut
}

// parted divides names into sets that each fit into an expression, as long as there is room, and returns the rest.
func parted(names []string, room *int) (parts [][]string, rest []string) {
	text := 0
	for i, name := range names {
		length := len(celSet([]string{name}))
		if *room -= length; *room < 0 {
			return parts, names[i:]
		}
		if text += length; len(parts) == 0 || text > mostText {
			parts, text = append(parts, nil), length
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], name)
	}
	return parts, nil
}

// expression writes a limit in the Common Expression Language. It means the same as limit.Limit.Allows.
type expression struct {
	limit.Limit
	entries string // the variable with the claim's entries for the label, by its current name
	set     string // the variable with the limit's allowed or excluded values
}

// variables returns the variables of the expression. An API server evaluates each at most once, when it is needed.
func (e expression) variables() []admissionv1.Variable {
	list := []admissionv1.Variable{{
		Name: e.entries, Expression: "has(object.spec.requirements) ? object.spec.requirements.filter(r, r.key == " +
			celString(e.Names[0]) + ") : []",
	}}
	if values := slices.Concat(e.Values, e.Except); len(values) > 0 { // at most one is not empty
		list = append(list, admissionv1.Variable{Name: e.set, Expression: celSet(values)})
	}
	return list
}

// judged returns an expression that holds if the claim lies within the limit.
func (e expression) judged() string {
	own, without := "variables."+e.entries, "variables."+e.entries+".exists(r, r.operator == 'DoesNotExist')"
	switch {
	case e.Absent:
		return e.labels() + " && " + without
	case e.Finite:
		return e.labels() + " && !" + without + " && " + e.lists()
	}
	terms := []string{own + ".size() > 0"}
	low := own + ".filter(r, r.operator in ['Gt', 'Gte']).map(r, int(r.values[0]) + (r.operator == 'Gt' ? 1 : 0))"
	high := own + ".filter(r, r.operator in ['Lt', 'Lte']).map(r, int(r.values[0]) - (r.operator == 'Lt' ? 1 : 0))"
	if e.Low != nil {
		terms = append(terms, fmt.Sprintf("%s.exists(n, n >= %d)", low, *e.Low))
	}
	if e.High != nil {
		terms = append(terms, fmt.Sprintf("%s.exists(n, n <= %d)", high, *e.High))
	}
	terms = append(terms, fmt.Sprintf("%s.all(a, %s.all(b, a <= b)) && %s.all(b, b >= 0)", low, high, high))
	if len(e.Except) > 0 {
		terms = append(terms, fmt.Sprintf(
			"(%s.exists(r, r.operator in ['Gt', 'Gte', 'Lt', 'Lte']) || "+
				"variables.%s.all(x, %s.exists(r, r.operator == 'NotIn' && has(r.values) && x in r.values)))", own,
			e.set, own))
	}
	return fmt.Sprintf("%s && (%s ? %t : %s.exists(r, r.operator == 'In') ? %s : %s)",
		e.labels(), without, !e.Present, own, e.lists(), strings.Join(terms, " && "))
}

// lists returns an expression that holds if an entry lists only allowed values.
func (e expression) lists() string {
	alone := ""
	if len(e.Names) == 1 {
		alone = "variables." + e.entries + ".size() == 1 && "
	}
	return fmt.Sprintf("%svariables.%s.exists(r, r.operator == 'In' && has(r.values) && r.values.all(v, %s))", alone,
		e.entries, e.takes("v"))
}

// labels returns an expression that holds if the claim's own label, if any, has an allowed value.
func (e expression) labels() string {
	terms := make([]string, len(e.Names))
	for i, name := range e.Names {
		literal := celString(name)
		terms[i] = fmt.Sprintf("(!(%s in object.metadata.labels) || %s)", literal,
			e.takes("object.metadata.labels["+literal+"]"))
	}
	return "(!has(object.metadata.labels) || (" + strings.Join(terms, " && ") + "))"
}

// takes returns an expression that holds if a node may have the value of the expression v.
func (e expression) takes(v string) string {
	switch {
	case e.Absent:
		return "false"
	case e.Finite:
		return v + " in variables." + e.set
	}
	var terms []string
	if e.Low != nil || e.High != nil {
		terms = append(terms, v+".matches('^(0|[1-9][0-9]{0,17})$')")
	}
	if e.Low != nil {
		terms = append(terms, fmt.Sprintf("int(%s) >= %d", v, *e.Low))
	}
	if e.High != nil {
		terms = append(terms, fmt.Sprintf("int(%s) <= %d", v, *e.High))
	}
	if len(e.Except) > 0 {
		terms = append(terms, "!("+v+" in variables."+e.set+")")
	}
	if len(terms) == 0 {
		return "true"
	}
	return "(" + strings.Join(terms, " && ") + ")"
}

// cost returns an upper bound on what the API server counts for the largest claim that Karpenter makes: 100 entries,
// one of which lists 600 values or excludes what the policy excludes. The API server counts a search in a list that it
// does not know beforehand as 1, however long the list is. So [policy.MaxValues] bounds the exclusions, and with them
// the time.
func (e expression) cost() int {
	const (
		entries, values = 100, 600
		each            = 40 // for an entry, a value or an exclusion
	)
	return (entries + values + len(e.Except)) * each
}

// celSet returns a set of texts as a literal: the keys of a map, in which a lookup costs the same whatever its size.
func celSet(texts []string) string {
	literals := make([]string, len(texts))
	for i, text := range texts {
		literals[i] = celString(text) + ": 0"
	}
	return "{" + strings.Join(literals, ", ") + "}"
}
