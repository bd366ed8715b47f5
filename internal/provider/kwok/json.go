package kwok

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// maxValueInMessage bounds the part of a bad value in an error.
const maxValueInMessage = 60

// value is a piece of a JSON document, with its path for messages.
type value struct {
	path string
	raw  json.RawMessage
}

// badValue returns an error that names the field, the value and what is allowed.
func (v value) badValue(allowed string, args ...any) error {
	text := strings.ToValidUTF8(string(v.raw), "�")
	if runes := []rune(text); len(runes) > maxValueInMessage {
		text = string(runes[:maxValueInMessage]) + "..."
	}
	if text == "" {
		text = "nothing"
	}
	return fmt.Errorf("%s: got %s; want %s", v.path, text, fmt.Sprintf(allowed, args...))
}

// missing reports whether the field is absent or null.
func (v value) missing() bool { return len(v.raw) == 0 || string(v.raw) == "null" }

// at returns the value with another path.
func (v value) at(path string) value { return value{path: path, raw: v.raw} }

// array returns the elements; at most limit.
func (v value) array(limit int) ([]value, error) {
	var elements []json.RawMessage
	if v.missing() || json.Unmarshal(v.raw, &elements) != nil {
		return nil, v.badValue("an array")
	}
	if len(elements) > limit {
		return nil, fmt.Errorf("%s: got %d elements; want at most %d", v.path, len(elements), limit)
	}
	list := make([]value, len(elements))
	for i, raw := range elements {
		list[i] = value{path: fmt.Sprintf("%s[%d]", v.path, i), raw: raw}
	}
	return list, nil
}

// object returns the fields by name. Only names in allowed are accepted, each once; case does not matter, as in
// encoding/json. If allowed is empty, every name is accepted, and case matters.
func (v value) object(allowed ...string) (map[string]value, error) {
	decoder := json.NewDecoder(bytes.NewReader(v.raw))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, v.badValue("an object")
	}
	fields := map[string]value{}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return nil, v.badValue("an object")
		}
		name, known := canonical(fmt.Sprint(token), allowed)
		if !known {
			return nil, fmt.Errorf("%s: unknown field %q; allowed are %s", v.path, name, strings.Join(allowed, ", "))
		}
		if _, twice := fields[name]; twice {
			return nil, fmt.Errorf("%s: field %q stands twice; want it once", v.path, name)
		}
		field := value{path: v.path + "." + name}
		if err := decoder.Decode(&field.raw); err != nil {
			return nil, v.badValue("an object")
		}
		fields[name] = field
	}
	for _, name := range allowed {
		if _, found := fields[name]; !found {
			fields[name] = value{path: v.path + "." + name}
		}
	}
	return fields, nil
}

func canonical(name string, allowed []string) (string, bool) {
	i := slices.IndexFunc(allowed, func(each string) bool { return strings.EqualFold(each, name) })
	if i < 0 {
		return name, len(allowed) == 0
	}
	return allowed[i], true
}

// text returns a string that check accepts.
func (v value) text(allowed string, check func(string) bool) (string, error) {
	var s *string
	if json.Unmarshal(v.raw, &s) != nil || s == nil || !check(*s) {
		return "", v.badValue("%s", allowed)
	}
	return *s, nil
}

// texts returns an array of strings that check accepts.
func (v value) texts(limit int, allowed string, check func(string) bool) ([]string, error) {
	elements, err := v.array(limit)
	if err != nil {
		return nil, err
	}
	list := make([]string, len(elements))
	for i, element := range elements {
		if list[i], err = element.text(allowed, check); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// flag returns a boolean; otherwise is the default if the field is missing.
func (v value) flag(otherwise bool) (bool, error) {
	if v.missing() {
		return otherwise, nil
	}
	parsed, err := strconv.ParseBool(string(v.raw))
	if err != nil {
		return false, v.badValue("true or false")
	}
	return parsed, nil
}

// syntax returns an error with the byte at which the document stops being JSON.
func syntax(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	var document json.RawMessage
	err := decoder.Decode(&document)
	if err == nil {
		if _, err = decoder.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		return fmt.Errorf("not JSON: more text after the array, at byte %d", decoder.InputOffset())
	}
	if problem := (*json.SyntaxError)(nil); errors.As(err, &problem) {
		return fmt.Errorf("not JSON: at byte %d: %w", problem.Offset, err)
	}
	return fmt.Errorf("not JSON: %w", err)
}
