package translate

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
)

// commitmentsFile is what --commitments-file holds, in YAML or JSON (K-55).
type commitmentsFile struct {
	Commitments []commitmentEntry `json:"commitments"`
}

// commitmentEntry is one commitment of the file.
type commitmentEntry struct {
	Name string `json:"name"`
	// Requirements choose offerings by their labels, as those of a NodeOverlay do; none chooses all.
	Requirements   []corev1.NodeSelectorRequirement `json:"requirements,omitempty"`
	DollarsPerHour *float64                         `json:"dollarsPerHour,omitempty"`
	Instances      *int64                           `json:"instances,omitempty"`
}

// maxCommitmentName bounds names: they are values of a label of metrics.
const maxCommitmentName = 63

// Commitments reads a file of commitments. The error names every entry and field that cannot be understood, its value and what
// is allowed; none of the file counts then.
func Commitments(text []byte) ([]cluster.Commitment, error) {
	var file commitmentsFile
	if err := yaml.UnmarshalStrict(text, &file); err != nil {
		return nil, fmt.Errorf("want YAML with the list commitments: %w", err)
	}
	var faults []error
	if n := len(file.Commitments); n > catalog.MaxCommitments {
		faults = append(faults, fmt.Errorf("commitments has %d entries: want at most %d", n, catalog.MaxCommitments))
	}
	var list []cluster.Commitment
	seen := map[string]int{}
	for i, entry := range file.Commitments {
		own, err := entry.read(fmt.Sprintf("commitments[%d]", i))
		if err != nil {
			faults = append(faults, err)
		}
		if first, twice := seen[entry.Name]; twice && entry.Name != "" {
			faults = append(faults, fmt.Errorf("commitments[%d].name is %q, as commitments[%d].name is: give each its own", i,
				entry.Name, first))
		} else {
			seen[entry.Name] = i
		}
		list = append(list, own)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return list, nil
}

func (e commitmentEntry) read(where string) (cluster.Commitment, error) {
	c := cluster.Commitment{Name: e.Name}
	var faults []error
	fail := func(format string, args ...any) { faults = append(faults, fmt.Errorf(where+format, args...)) }
	if e.Name == "" || len(e.Name) > maxCommitmentName {
		fail(".name is %q: want 1 to %d characters", e.Name, maxCommitmentName)
	}
	var parsed []requirement.Requirement
	for i, entry := range e.Requirements {
		if Key(entry.Key) == catalog.LabelCapacityType {
			fail(".requirements[%d].key is %s: leave it out, a commitment covers what is bought on demand", i, entry.Key)
			continue
		}
		r, err := requirement.New(Key(entry.Key), requirement.Operator(entry.Operator), entry.Values...)
		if err != nil {
			fail(".requirements[%d]: %w", i, err)
			continue
		}
		parsed = append(parsed, r)
	}
	c.Requirements = requirement.NewSet(parsed...)
	for _, key := range c.Requirements.EmptyKeys() {
		fail(".requirements: those on %s contradict each other", key)
	}
	switch {
	case (e.DollarsPerHour == nil) == (e.Instances == nil):
		fail(": want one of dollarsPerHour and instances")
	case e.Instances != nil:
		if c.Instances = *e.Instances; c.Instances <= 0 {
			fail(".instances is %d: want a number above 0", c.Instances)
		}
	default:
		price, err := resources.FromDollars(*e.DollarsPerHour)
		if c.PerHour = price; err != nil || price == 0 {
			fail(".dollarsPerHour is %v: want dollars per hour at the price on demand, above 0 and at most 1000000",
				*e.DollarsPerHour)
		}
	}
	return c, errors.Join(faults...)
}
