package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// layout describes a type's JSON form.
type layout struct {
	opaque bool             // values unmarshal themselves, like times and quantities
	fields map[string][]int // of a struct: field indexes by JSON name
}

// layouts has every type that is part of an object.
type layouts map[reflect.Type]layout

// opaque reports whether values of a type unmarshal themselves.
func (l layouts) opaque(t reflect.Type) bool { return l[t].opaque }

// learn adds a type and all types that it contains.
func (l layouts) learn(t reflect.Type) {
	if _, known := l[t]; known {
		return
	}
	own := layout{opaque: reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())}
	l[t] = own
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		l.learn(t.Elem())
	case reflect.Struct:
		own.fields = map[string][]int{}
		for i := range t.NumField() {
			each := t.Field(i)
			if !each.IsExported() {
				continue
			}
			l.learn(each.Type)
			name, _, _ := strings.Cut(each.Tag.Get("json"), ",")
			if name == "" && each.Anonymous {
				for inner, index := range l[each.Type].fields {
					own.fields[inner] = append([]int{i}, index...)
				}
			} else if name != "" && name != "-" {
				own.fields[name] = []int{i}
			}
		}
		l[t] = own
	}
}

// members calls visit with each name and value of an object. raw must be valid JSON. It fails if raw is no object, or
// if visit does.
func members(raw []byte, visit func(name string, value []byte) error) error {
	rest := bytes.TrimSpace(raw)
	if len(rest) == 0 || rest[0] != '{' {
		return fmt.Errorf("%s is no object", raw)
	}
	for rest = skipSpace(rest[1:]); rest[0] != '}'; rest = skipSpace(rest) {
		if rest[0] == ',' {
			rest = skipSpace(rest[1:])
		}
		n := valueLength(rest)
		name, err := text(rest[:n])
		if err != nil {
			return err
		}
		rest = skipSpace(skipSpace(rest[n:])[1:]) // the colon
		n = valueLength(rest)
		if err := visit(name, rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// elements calls visit with each value of a list. raw must be valid JSON.
func elements(raw []byte, visit func(value []byte) error) error {
	for rest := skipSpace(raw[1:]); rest[0] != ']'; rest = skipSpace(rest) {
		if rest[0] == ',' {
			rest = skipSpace(rest[1:])
		}
		n := valueLength(rest)
		if err := visit(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

func skipSpace(raw []byte) []byte { return bytes.TrimLeft(raw, " \t\r\n") }

// text decodes a JSON string.
func text(raw []byte) (string, error) {
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), nil
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}

// valueLength returns the length in bytes of the value at the beginning of valid JSON.
func valueLength(raw []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted:
			if c == '\\' {
				i++
			} else if c == '"' {
				if quoted = false; depth == 0 {
					return i + 1
				}
			}
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth < 0 {
				return i // a number or a word ends where something else begins
			}
			if depth == 0 {
				return i + 1
			}
		case depth == 0 && (c == ',' || c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			return i
		}
	}
	return len(raw)
}
