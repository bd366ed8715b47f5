package translate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/internal/engine/catalog"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/requirement"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/onedocument"
)

// commitmentsFile is the content of --commitments-file, in YAML or JSON (K-55).
type commitmentsFile struct {
	Commitments []commitmentEntry `json:"commitments"`
}

// commitmentEntry is one commitment of the file.
type commitmentEntry struct {
	Name string `json:"name"`
	// Requirements choose offerings by their labels, as in a NodeOverlay. An empty list chooses all.
	Requirements   []corev1.NodeSelectorRequirement `json:"requirements,omitempty"`
	DollarsPerHour *float64                         `json:"dollarsPerHour,omitempty"`
	Instances      *int64                           `json:"instances,omitempty"`
}

// maxCommitmentName bounds names because they become label values of metrics.
const maxCommitmentName = 63

// Commitments reads a file of commitments. The error names every entry and field that cannot be understood, its value
// and what is allowed; then nothing of the file counts. An empty text means no file and no commitments.
func Commitments(text []byte) ([]cluster.Commitment, error) {
	if len(text) == 0 {
		return nil, nil
	}
	file, faults := readCommitmentsFile(text)
	if len(faults) > 0 {
		return nil, oneLine(faults)
	}
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
			faults = append(faults,
				fmt.Errorf("commitments[%d].name is %q, as commitments[%d].name is: give each its own", i,
					entry.Name, first))
		} else {
			seen[entry.Name] = i
		}
		list = append(list, own)
	}
	if len(faults) > 0 {
		return nil, oneLine(faults)
	}
	return list, nil
}

func oneLine(faults []error) error {
	return errors.New(strings.ReplaceAll(errors.Join(faults...).Error(), "\n", "; "))
}

// readCommitmentsFile reads the fields of the file, entry by entry, so that an error names the entry.
func readCommitmentsFile(text []byte) (file commitmentsFile, faults []error) {
	wrong := func(err error) (commitmentsFile, []error) {
		return file, []error{fmt.Errorf("want YAML with the list commitments, in which [] stands for none: %s",
			strings.Join(strings.Fields(err.Error()), " "))}
	}
	if err := onedocument.Check(text); err != nil {
		return wrong(err)
	}
	document, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return wrong(err)
	}
	var list struct {
		Commitments []json.RawMessage `json:"commitments"`
	}
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.DisallowUnknownFields()
	var kind *json.UnmarshalTypeError
	switch err := decoder.Decode(&list); {
	case errors.As(err, &kind):
		return wrong(fmt.Errorf("it is %s", kind.Value))
	case err != nil:
		return wrong(err)
	case list.Commitments == nil:
		return wrong(errors.New("it has none"))
	}
	for i, raw := range list.Commitments {
		var entry commitmentEntry
		if err := readCommitment(raw, &entry); err != nil {
			faults = append(faults, fmt.Errorf("commitments[%d]%w", i, err))
		}
		file.Commitments = append(file.Commitments, entry)
	}
	return file, faults
}

// readCommitment reads the fields of one entry. The error text continues the place of the entry, such as
// commitments[0].
func readCommitment(raw json.RawMessage, entry *commitmentEntry) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(entry)
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) {
		if err != nil {
			return fmt.Errorf(": %s", strings.TrimPrefix(err.Error(), "json: "))
		}
		return nil
	}
	want := map[string]string{"name": "a text", "dollarsPerHour": "a number such as 12.5, without quotes",
		"instances": "a whole number", "requirements": "a list of requirements with key, operator and values"}
	field, _, _ := strings.Cut(kind.Field, ".")
	if want[field] == "" {
		return fmt.Errorf(" is %s: want name, requirements, and dollarsPerHour or instances", raw)
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil {
		return fmt.Errorf(": %w", err)
	}
	return fmt.Errorf(".%s is %s: want %s", field, values[field], want[field])
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
			fail(".requirements[%d].key is %s: leave it out, a commitment covers what is bought on demand", i,
				entry.Key)
			continue
		}
		if faults := validation.IsQualifiedName(entry.Key); entry.Key != "" && len(faults) > 0 {
			fail(".requirements[%d].key is %q: want the name of a label: %s", i, entry.Key, faults[0])
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
