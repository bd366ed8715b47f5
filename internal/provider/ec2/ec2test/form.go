package ec2test

import (
	"fmt"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// maxDepth bounds the parts of a parameter's name. No parameter of AWS has as many.
const maxDepth = 16

// parameter is a part of a name between dots, with its value and what is below it:
// Filter.1.Name=a and Filter.1.Value.1=b make a tree of Filter, 1, Name and Value.
type parameter struct {
	value string
	set   bool
	below map[string]*parameter
}

// parseForm returns the tree of a form. It refuses names that are invalid in AWS's query protocols: duplicates, and
// names with an empty part or too many parts.
func parseForm(form url.Values) (*parameter, error) {
	root := &parameter{}
	for _, name := range slices.Sorted(maps.Keys(form)) {
		values := form[name]
		if len(values) != 1 {
			return nil, refuse(400, "MalformedQueryString", "parameter %q is given %d times; once is allowed", name,
				len(values))
		}
		parts := strings.Split(name, ".")
		if len(parts) > maxDepth {
			return nil, refuse(400, "MalformedQueryString", "parameter %q has %d parts; at most %d", name, len(parts),
				maxDepth)
		}
		at := root
		for _, part := range parts {
			if part == "" {
				return nil, refuse(400, "MalformedQueryString", "parameter %q has an empty part", name)
			}
			if at.below == nil {
				at.below = map[string]*parameter{}
			}
			next := at.below[part]
			if next == nil {
				next = &parameter{}
				at.below[part] = next
			}
			at = next
		}
		at.value, at.set = values[0], true
	}
	return root, nil
}

// decodeForm fills the struct that into points to. Fields have the tag `query:"Name"`; a name with dots is a path of
// several parts; a slice's items are numbered below its name; an embedded struct without a tag is part of the struct
// around it. Every parameter without a field is an error: the endpoint must not silently ignore what it does not know.
func decodeForm(root *parameter, into any) error {
	d := &formDecoder{}
	d.structure(root, reflect.ValueOf(into).Elem(), "")
	if d.err != nil {
		return d.err
	}
	d.unknown(root, "")
	if len(d.surplus) > 0 {
		return &unknownParameters{names: d.surplus}
	}
	return nil
}

// unknownParameters are parameters that the action has no field for.
type unknownParameters struct{ names []string }

func (u *unknownParameters) Error() string {
	return "parameters that the endpoint does not know: " + strings.Join(u.names, ", ")
}

type formDecoder struct {
	taken   map[*parameter]bool
	surplus []string
	err     error
}

func (d *formDecoder) take(p *parameter) {
	if d.taken == nil {
		d.taken = map[*parameter]bool{}
	}
	d.taken[p] = true
}

func (d *formDecoder) structure(p *parameter, v reflect.Value, path string) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		tag := field.Tag.Get("query")
		if tag == "" {
			if field.Anonymous {
				d.structure(p, v.Field(i), path)
			}
			continue
		}
		at, way := p, path
		for part := range strings.SplitSeq(tag, ".") {
			if at != nil {
				at, way = at.below[part], join(way, part)
			}
		}
		if at != nil {
			d.field(at, v.Field(i), way)
		}
	}
}

func join(path, part string) string {
	if path == "" {
		return part
	}
	return path + "." + part
}

func (d *formDecoder) field(p *parameter, v reflect.Value, path string) {
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		d.scalar(p, v, path)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.field(p, v.Elem(), path)
	case v.Kind() == reflect.Struct:
		d.structure(p, v, path)
	case v.Kind() == reflect.Slice:
		d.list(p, v, path)
	default:
		d.scalar(p, v, path)
	}
}

// list decodes the numbered items below p in the order of their numbers. As with AWS, numbers may be left out.
func (d *formDecoder) list(p *parameter, v reflect.Value, path string) {
	var numbers []int
	for name := range p.below {
		n, err := strconv.Atoi(name)
		if err != nil || n < 1 || strconv.Itoa(n) != name {
			continue // no field takes it, so it is unknown
		}
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	for _, n := range numbers {
		item := reflect.New(v.Type().Elem()).Elem()
		name := strconv.Itoa(n)
		d.field(p.below[name], item, join(path, name))
		v.Set(reflect.Append(v, item))
	}
}

func (d *formDecoder) scalar(p *parameter, v reflect.Value, path string) {
	if !p.set {
		return // only something below it was given, which no field takes
	}
	d.take(p)
	var err error
	switch v.Interface().(type) {
	case string:
		v.SetString(p.value)
	case bool:
		var b bool
		if p.value != "true" && p.value != "false" {
			err = fmt.Errorf("true or false is allowed")
		}
		b = p.value == "true"
		v.SetBool(b)
	case int, int64:
		var n int64
		n, err = strconv.ParseInt(p.value, 10, 64)
		v.SetInt(n)
	case float64:
		var f float64
		f, err = strconv.ParseFloat(p.value, 64)
		v.SetFloat(f)
	case time.Time:
		var at time.Time
		at, err = time.Parse(time.RFC3339, p.value)
		v.Set(reflect.ValueOf(at))
	default:
		panic(fmt.Sprintf("a field of kind %s has no form", v.Kind()))
	}
	if err != nil && d.err == nil {
		d.err = refuse(400, "InvalidParameterValue", "value %q for parameter %s is invalid: %v", p.value, path, err)
	}
}

// unknown collects every parameter that has a value and that no field took.
func (d *formDecoder) unknown(p *parameter, path string) {
	if p.set && !d.taken[p] {
		d.surplus = append(d.surplus, path)
	}
	for _, part := range slices.Sorted(maps.Keys(p.below)) {
		d.unknown(p.below[part], join(path, part))
	}
}
