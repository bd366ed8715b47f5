package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// object is a JSON object; its values are nil, bool, string, json.Number, []any and object.
type object = map[string]any

// Decode reads one JSON object and keeps the spelling of its numbers.
func Decode(data []byte) (map[string]any, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var o object
	if err := decoder.Decode(&o); err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("reading the object: something follows it")
	}
	if o == nil {
		return nil, errors.New("reading the object: it is null")
	}
	return o, nil
}

// child returns the object under a key, and creates it if there is none. ok is false if the value is not an object.
func child(o object, key string) (found object, ok bool) {
	if o == nil {
		return nil, false
	}
	value, present := o[key]
	if !present || value == nil {
		found = object{}
		o[key] = found
		return found, true
	}
	found, ok = value.(object)
	return found, ok
}

// at returns the object at the path keys, nil if there is none.
func at(o object, keys ...string) object {
	for _, key := range keys {
		o, _ = o[key].(object)
		if o == nil {
			return nil
		}
	}
	return o
}

// text returns the string under a key, "" if there is none.
func text(o object, key string) string {
	value, _ := o[key].(string)
	return value
}

// setDefault sets a key that is absent or null.
func setDefault(o object, key string, value any) {
	if o[key] == nil {
		o[key] = value
	}
}

func clone(value any) any {
	switch value := value.(type) {
	case object:
		return cloneObject(value)
	case []any:
		list := make([]any, len(value))
		for i, item := range value {
			list[i] = clone(item)
		}
		return list
	}
	return value
}

func cloneObject(o object) object {
	copied := make(object, len(o))
	for key, value := range o {
		copied[key] = clone(value)
	}
	return copied
}

// equal compares by value: 1.0 is 1.
func equal(a, b any) bool {
	switch a := a.(type) {
	case object:
		b, same := b.(object)
		if !same || len(a) != len(b) {
			return false
		}
		for key, value := range a {
			other, found := b[key]
			if !found || !equal(value, other) {
				return false
			}
		}
		return true
	case []any:
		b, same := b.([]any)
		return same && slices.EqualFunc(a, b, equal)
	case json.Number:
		b, same := b.(json.Number)
		return same && equalNumbers(a, b)
	}
	switch b.(type) {
	case object, []any:
		return false
	}
	return a == b
}

func equalNumbers(a, b json.Number) bool {
	if a == b {
		return true
	}
	x, errX := strconv.ParseInt(string(a), 10, 64)
	y, errY := strconv.ParseInt(string(b), 10, 64)
	if errX == nil && errY == nil {
		return x == y
	}
	f, errF := strconv.ParseFloat(string(a), 64)
	g, errG := strconv.ParseFloat(string(b), 64)
	return errF == nil && errG == nil && f == g
}

// keys returns the keys of both objects, each once, sorted.
func keys(a, b object) []string {
	all := slices.AppendSeq(make([]string, 0, len(a)+len(b)), maps.Keys(a))
	all = slices.AppendSeq(all, maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}

// pointer and unpointer write and read a path as RFC 6901 does.
func pointer(path []string) string {
	var b strings.Builder
	for _, key := range path {
		b.WriteByte('/')
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1"))
	}
	return b.String()
}

func unpointer(text string) []string {
	parts := strings.Split(strings.TrimPrefix(text, "/"), "/")
	for i, part := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
	}
	return parts
}

// encode writes a value of the kinds that Decode returns. This cannot fail.
func encode(value any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return ""
	}
	return strings.TrimSuffix(b.String(), "\n")
}
