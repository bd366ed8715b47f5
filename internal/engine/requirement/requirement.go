package requirement

import "github.com/joiner-autoscaler/joiner/autonodepolicy/fold"

// Key is the name of a node label, such as topology.kubernetes.io/zone.
type Key = fold.Key

// Operator is how a requirement's values are meant, spelled as in the Kubernetes and Karpenter APIs.
type Operator = fold.Operator

// The operators of V-05 and P-02. Gte and Lte exist on pools only.
const (
	In           = fold.In
	NotIn        = fold.NotIn
	Exists       = fold.Exists
	DoesNotExist = fold.DoesNotExist
	Gt           = fold.Gt
	Lt           = fold.Lt
	Gte          = fold.Gte
	Lte          = fold.Lte
)

// Requirement is the set of values that the label Key may have. The zero value allows nothing for the key "".
type Requirement = fold.Allowed

// Set is a conjunction of requirements: at most one for each key, ordered by key.
type Set = fold.Set

// Term is a requirement as the API writes it: an operator and its values in canonical order.
type Term = fold.Term

// New returns the requirement that an operator and its values state; see [fold.New] for the errors.
func New(key Key, op Operator, values ...string) (Requirement, error) {
	return fold.New(key, op, values...)
}

// Any returns the whole universe for key: any value, or no label.
func Any(key Key) Requirement { return fold.Any(key) }

// Present returns any value for key, but not absent.
func Present(key Key) Requirement { return fold.Present(key) }

// Absent returns the set whose only member is a node without the label.
func Absent(key Key) Requirement { return fold.Absent(key) }

// Nothing returns the empty set for key.
func Nothing(key Key) Requirement { return fold.Nothing(key) }

// OneOf returns the set of exactly these values. values is in any order and may repeat; none gives Nothing.
func OneOf(key Key, values ...string) Requirement { return fold.OneOf(key, values...) }

// NewSet returns the conjunction of requirements, which may come in any order; those of one key are intersected.
func NewSet(requirements ...Requirement) Set { return fold.NewSet(requirements...) }

// FromLabels returns the set that exactly the given labels satisfy on their keys.
func FromLabels(labels map[string]string) Set { return fold.FromLabels(labels) }
