package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/joiner-autoscaler/joiner/autonodepolicy/fold"
)

const (
	// MaxRequirements is how many entries a NodePool may have (K4). It bounds a policy too.
	MaxRequirements = 100
	// MaxValues is how many values one entry of a policy may have. It is far more than the instance types of a region,
	// and small enough for a NodePool to stay below the size limit of etcd (G12).
	MaxValues = 1000
	// maxMinValues is Karpenter's limit (K4).
	maxMinValues = 50
	// maxDigits is how many digits the value of Gt, Lt, Gte and Lte may have.
	maxDigits = 18
)

// Problem is something that keeps an object from being written.
type Problem struct {
	// Reason is one of the constants of this package.
	Reason string
	// Field is the path of what is wrong.
	Field string
	// Message says what is wrong with it: the value and what is allowed.
	Message string
}

// String returns the problem for people, in one line.
func (p Problem) String() string { return p.Field + ": " + p.Message }

// Policy is what a provider allows: the parts of an AutoNodePolicy's spec that this version knows.
type Policy struct {
	// Requirements are those of spec.nodePoolDefaults. Every pool has to satisfy them too. They restrict; none is a
	// default (G1).
	Requirements []fold.Requirement
	// RootVolume is that of spec.ec2NodeClassDefaults; nil if the policy does not set it.
	RootVolume *RootVolumeChange
}

// Check returns what is wrong with a policy by itself, in the order of the fields of an AutoNodePolicy (R44, G8, G12,
// G13). None means that it may be applied. Check repeats the rules of the CRD, since a policy can be older than they
// are. A policy that this version does not understand must not be applied in part (G14). Unknown fields are no problem
// (R47).
func Check(p Policy) []Problem {
	list := checkRequirements("spec.nodePoolDefaults.requirements", p.Requirements)
	if p.RootVolume != nil {
		list = append(list, DefaultRootVolume().With(p.RootVolume).Check("spec.ec2NodeClassDefaults.rootVolume")...)
	}
	return list
}

func checkRequirements(field string, entries []fold.Requirement) []Problem {
	var list []Problem
	if len(entries) > MaxRequirements {
		list = append(list, Problem{ReasonTooManyRequirements, field,
			fmt.Sprintf("has %d entries; a NodePool takes at most %d", len(entries), MaxRequirements)})
	}
	for i, entry := range entries {
		list = append(list, checkEntry(fmt.Sprintf("%s[%d]", field, i), entry)...)
	}
	if len(list) > 0 {
		return list // invalid entries cannot be folded
	}
	folded, _, err := fold.Of(entries)
	if err != nil {
		return []Problem{{ReasonInvalidRequirements, field, err.Error()}}
	}
	for _, key := range folded.EmptyKeys() {
		list = append(list, Problem{ReasonConflictingRequirements, entriesFor(field, entries, string(key)),
			fmt.Sprintf("contradict each other: no value of %s satisfies them all; leave at least one", key)})
	}
	for _, s := range shortages(entries, folded) {
		list = append(list, Problem{ReasonMinValuesUnsatisfiable, entriesFor(field, entries, string(s.Key)),
			s.String()})
	}
	return list
}

// entriesFor names the entries for a label: "requirements[0], [3]".
func entriesFor(field string, entries []fold.Requirement, key string) string {
	var indexes []string
	for i, entry := range entries {
		if string(fold.Canonical(entry.Key)) == key {
			indexes = append(indexes, fmt.Sprintf("[%d]", i))
		}
	}
	return field + strings.Join(indexes, ", ")
}

func checkEntry(field string, entry fold.Requirement) []Problem {
	var list []Problem
	add := func(part, format string, values ...any) {
		list = append(list, Problem{ReasonInvalidRequirements, field + part, fmt.Sprintf(format, values...)})
	}
	if complaint := checkKey(entry.Key); complaint != "" {
		add(".key", "is %q: %s", entry.Key, complaint)
	}
	if !slices.Contains(operators(), entry.Operator) {
		add(".operator", "is %q: it must be one of %s", entry.Operator, strings.Join(names(operators()), ", "))
	}
	if complaint := checkCount(entry); complaint != "" {
		add(".values", "%s", complaint)
	} else if i := slices.IndexFunc(entry.Values, badValue); i >= 0 {
		add(fmt.Sprintf(".values[%d]", i), "is %q, which is no value of a label: %s", entry.Values[i], labelValue)
	}
	if entry.MinValues != nil && (*entry.MinValues < 1 || *entry.MinValues > maxMinValues) {
		add(".minValues", "is %d: it must be from 1 to %d", *entry.MinValues, maxMinValues)
	}
	return list
}

// operators are those that a requirement may have (R4, G26).
func operators() []fold.Operator {
	return []fold.Operator{
		fold.In, fold.NotIn, fold.Exists, fold.DoesNotExist,
		fold.Gt, fold.Lt, fold.Gte, fold.Lte,
	}
}

const (
	labelName = "use letters, digits, \"-\", \"_\" and \".\", beginning and ending with a letter or digit, at most 63, " +
		"with an optional lower-case domain name and a slash before it"
	labelValue = "use letters, digits, \"-\", \"_\" and \".\", beginning and ending with a letter or digit, at most 63"
)

func names[T ~string](list []T) []string {
	texts := make([]string, len(list))
	for i, item := range list {
		texts[i] = string(item)
	}
	return texts
}

// badValue reports whether a text cannot be the value of a label, as the API's regular expression does. It is faster,
// which matters: a policy may list a thousand instance types, and is checked for every pool.
func badValue(value string) bool {
	if value == "" {
		return false
	}
	inner := func(r rune) bool { return !alphanumeric(r) && r != '-' && r != '_' && r != '.' }
	return len(value) > validation.LabelValueMaxLength || strings.ContainsFunc(value, inner) ||
		!alphanumeric(rune(value[0])) || !alphanumeric(rune(value[len(value)-1]))
}

func alphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// restricted returns why a policy may not require a label whose value the autoscaler decides, "" if it may (K4). A
// provider's labels are left to the CRD of the written NodePools: it knows those of this version and of later ones
// (G13).
func restricted(key string) string {
	domain, _, prefixed := strings.Cut(key, "/")
	switch {
	case key == nodePoolLabel:
		return "the autoscaler sets it to the name of the pool"
	case key == ec2NodeClassLabel:
		return "the autoscaler sets it to the name of the node class"
	case key == hostnameLabel:
		return "the name of a node is not known before it exists"
	case key == capacityTypeLabel:
		return ""
	case !fold.ReadByKarpenter(key):
		return "Karpenter does not read it as the zone; write " + zoneLabel
	case prefixed && strings.HasSuffix(domain, karpenterGroup):
		return "of the domain " + karpenterGroup + " only " + capacityTypeLabel + " may be required"
	}
	return ""
}

// checkKey says what is wrong with the key of an entry, "" if nothing is.
func checkKey(key string) string {
	if len(validation.IsQualifiedName(key)) > 0 {
		return "it is no name of a label: " + labelName
	}
	if reason := restricted(key); reason != "" {
		return "it is restricted: " + reason
	}
	return ""
}

// checkCount says what is wrong with the number of an entry's values for its operator. It is stricter than the API,
// which silently ignores values of Exists and a NotIn that excludes nothing (K4, G13).
func checkCount(entry fold.Requirement) string {
	count := len(entry.Values)
	if count > MaxValues {
		return fmt.Sprintf("has %d values: at most %d are allowed", count, MaxValues)
	}
	switch entry.Operator {
	case fold.In, fold.NotIn:
		if count == 0 {
			return fmt.Sprintf("is empty: operator %s needs at least one value", entry.Operator)
		}
	case fold.Exists, fold.DoesNotExist:
		if count > 0 {
			return fmt.Sprintf("has %d values: operator %s takes none, and would ignore them", count, entry.Operator)
		}
	case fold.Gt, fold.Lt, fold.Gte, fold.Lte:
		if count != 1 || !wholeNumber(entry.Values[0]) {
			return fmt.Sprintf("is %q: operator %s needs exactly one value, a whole number of at most %d digits",
				entry.Values, entry.Operator, maxDigits)
		}
	}
	return ""
}

func wholeNumber(text string) bool {
	_, err := strconv.ParseUint(text, 10, 64)
	return err == nil && len(text) <= maxDigits
}
