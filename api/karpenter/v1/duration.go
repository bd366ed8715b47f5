package v1

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
)

// Never is the text of a NillableDuration that has no end.
const Never = "Never"

// longest is the longest time.Duration of whole seconds, about 292 years.
const longest = math.MaxInt64 / time.Second * time.Second

// Duration is a length of time. In JSON it is a string of whole numbers with the units s, m, h and
// d (24 hours), for example "90s", "1h30m" or "1d". Fractions and signs are refused.
//
// Lengths beyond the 292 years that time.Duration can hold are taken as that maximum, so that every
// text the CRD accepts can be decoded.
//
// +kubebuilder:validation:Type=string
type Duration struct {
	// Duration is the length itself.
	Duration time.Duration
	// Raw is the text the length was read from, empty for a value made in Go. It is written back
	// as long as it still means Duration, so that "1d" does not become "24h".
	Raw string
}

// NillableDuration is a Duration or the word Never. The zero value means Never.
//
// +kubebuilder:validation:Type=string
type NillableDuration struct {
	// Duration is the length of time; nil means Never.
	Duration *time.Duration
	// Raw is the text the value was read from, with the same rule as in Duration.
	Raw string
}

// String gives the text that stands in JSON.
func (d Duration) String() string {
	if length, err := parseDuration(d.Raw); err == nil && length == d.Duration {
		return d.Raw
	}
	return formatDuration(d.Duration)
}

// MarshalJSON writes the text as the user wrote it, or in h, m and s if there is none. A negative
// length and fractions of a second are errors, since the API has no text for them.
func (d Duration) MarshalJSON() ([]byte, error) {
	if d.Duration < 0 || d.Duration%time.Second != 0 {
		return nil, fmt.Errorf("writing the duration %s: it must be whole seconds and not negative", d.Duration)
	}
	return json.Marshal(d.String())
}

// UnmarshalJSON reads a string of whole numbers with the units s, m, h and d. JSON null leaves the
// value as it is, as for any other type.
func (d *Duration) UnmarshalJSON(data []byte) error {
	text, present, err := durationText(data)
	if err != nil || !present {
		return err
	}
	length, err := parseDuration(text)
	if err != nil {
		return err
	}
	*d = Duration{Duration: length, Raw: text}
	return nil
}

// String gives the text that stands in JSON.
func (d NillableDuration) String() string {
	if d.Duration == nil {
		return Never
	}
	return Duration{Duration: *d.Duration, Raw: d.Raw}.String()
}

// MarshalJSON writes Never for nil and otherwise the same as Duration does.
func (d NillableDuration) MarshalJSON() ([]byte, error) {
	if d.Duration == nil {
		return json.Marshal(Never)
	}
	return Duration{Duration: *d.Duration, Raw: d.Raw}.MarshalJSON()
}

// UnmarshalJSON reads Never or what Duration reads. JSON null leaves the value as it is.
func (d *NillableDuration) UnmarshalJSON(data []byte) error {
	text, present, err := durationText(data)
	if err != nil || !present {
		return err
	}
	if text == Never {
		*d = NillableDuration{Raw: Never}
		return nil
	}
	length, err := parseDuration(text)
	if err != nil {
		return fmt.Errorf("%w, or %q", err, Never)
	}
	*d = NillableDuration{Duration: &length, Raw: text}
	return nil
}

// durationText takes the string out of a JSON value; present is false for null.
func durationText(data []byte) (text string, present bool, err error) {
	if string(data) == "null" {
		return "", false, nil
	}
	if err := json.Unmarshal(data, &text); err != nil {
		return "", false, fmt.Errorf("reading the duration %s: it must be a string such as \"1h30m\"", data)
	}
	return text, true, nil
}

// parseDuration accepts exactly the texts that match ^([0-9]+[smhd])+$.
func parseDuration(text string) (time.Duration, error) {
	var total time.Duration
	rest := text
	for rest != "" {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		if digits == 0 || digits == len(rest) {
			return 0, durationError(text)
		}
		unit, known := durationUnit(rest[digits])
		if !known {
			return 0, durationError(text)
		}
		total = addSaturating(total, mulSaturating(rest[:digits], unit))
		rest = rest[digits+1:]
	}
	if text == "" {
		return 0, durationError(text)
	}
	return total, nil
}

func durationError(text string) error {
	return fmt.Errorf("reading the duration %q: it must be whole numbers with the units s, m, h or d, "+
		"for example \"90s\", \"1h30m\" or \"1d\"", text)
}

func durationUnit(letter byte) (time.Duration, bool) {
	switch letter {
	case 's':
		return time.Second, true
	case 'm':
		return time.Minute, true
	case 'h':
		return time.Hour, true
	case 'd':
		return 24 * time.Hour, true
	}
	return 0, false
}

// mulSaturating multiplies a string of digits by a unit, stopping at longest.
func mulSaturating(digits string, unit time.Duration) time.Duration {
	most := longest / unit
	var count time.Duration
	for i := range len(digits) {
		count = count*10 + time.Duration(digits[i]-'0')
		if count > most {
			return longest
		}
	}
	return count * unit
}

func addSaturating(a, b time.Duration) time.Duration {
	if a > longest-b {
		return longest
	}
	return a + b
}

// formatDuration writes hours, minutes and seconds, leaving out those that are zero.
func formatDuration(length time.Duration) string {
	seconds := int64(length / time.Second)
	var text strings.Builder
	for _, part := range []struct {
		count int64
		unit  byte
	}{{seconds / 3600, 'h'}, {seconds / 60 % 60, 'm'}, {seconds % 60, 's'}} {
		if part.count != 0 {
			fmt.Fprintf(&text, "%d%c", part.count, part.unit)
		}
	}
	if text.Len() == 0 {
		return "0s"
	}
	return text.String()
}
