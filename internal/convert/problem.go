package convert

import "strings"

// maxProblems is how many problems of one object are reported. More do not help, and they go into an annotation.
const maxProblems = 5

// Problem is a field that cannot be converted.
type Problem struct {
	// Field is the path of the field, such as spec.disruption.expireAfter.
	Field string
	// Value is its value as JSON, shortened.
	Value string
	// Allowed says what is allowed there.
	Allowed string
}

// String returns one line with all three.
func (p Problem) String() string {
	if p.Value == "" {
		return p.Field + ": " + p.Allowed
	}
	return p.Field + " is " + p.Value + ": " + p.Allowed
}

// Describe joins problems to one line.
func Describe(problems []Problem) string {
	var lines []string
	for _, p := range problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "; ")
}
