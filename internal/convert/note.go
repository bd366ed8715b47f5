package convert

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// note is what an object of one version keeps for the other version.
type note struct {
	entries []entry
	// filled is the expireAfter that a v1 NodeClaim got from its pool, "" if it has its own.
	filled string
}

// entry says: if the way back gives was at path, the value should be is.
type entry struct {
	path    string // RFC 6901; for an item of a list its last part is an index
	was, is maybe
	// when is the value of the field at whenPath. With another value, was has another meaning.
	when     maybe
	whenPath string
}

// maybe is a value that may be absent.
type maybe struct {
	present bool
	value   any
}

func (m maybe) equal(other maybe) bool {
	return m.present == other.present && (!m.present || equal(m.value, other.value))
}

func get(o object, key string) maybe {
	value, present := o[key]
	return maybe{present, value}
}

func (n note) empty() bool { return len(n.entries) == 0 && n.filled == "" }

// knows reports whether the note has an entry for a field.
func (n *note) knows(path string) bool {
	return n != nil && slices.ContainsFunc(n.entries, func(e entry) bool { return e.path == path })
}

func (n note) String() string {
	fields := make([]any, 0, len(n.entries))
	for _, e := range n.entries {
		field := object{"path": e.path}
		for key, m := range map[string]maybe{"was": e.was, "is": e.is, "when": e.when} {
			if m.present {
				field[key] = m.value
			}
		}
		if e.whenPath != "" {
			field["whenPath"] = e.whenPath
		}
		fields = append(fields, field)
	}
	content := object{}
	if len(fields) > 0 {
		content["fields"] = fields
	}
	if n.filled != "" {
		content["filled"] = n.filled
	}
	return encode(content)
}

// readNote reads the output of String; nil if it is anything else.
func readNote(from string) *note {
	content, err := Decode([]byte(from))
	if err != nil {
		return nil
	}
	n := &note{}
	if value, present := content["filled"]; present {
		var isString bool
		if n.filled, isString = value.(string); !isString {
			return nil
		}
	}
	fields, isList := content["fields"].([]any)
	if _, present := content["fields"]; present && !isList {
		return nil
	}
	for _, value := range fields {
		field, _ := value.(object)
		e := entry{path: text(field, "path"), was: get(field, "was"), is: get(field, "is"), when: get(field, "when"),
			whenPath: text(field, "whenPath")}
		if !e.allowed() {
			return nil
		}
		n.entries = append(n.entries, e)
	}
	return n
}

// allowed reports whether one of our notes can have the entry. One that changes the identity of an object, or an
// annotation that conversion leaves alone, was made by hand. If the API server gets back another name than it asked
// for, or an invalid annotation, it gives up the whole list.
func (e entry) allowed() bool {
	if !strings.HasPrefix(e.path, "/") {
		return false
	}
	switch path := unpointer(e.path); path[0] {
	case "apiVersion", "kind":
		return false
	case "metadata":
		_, isString := e.is.value.(string)
		return len(path) == 3 && path[1] == "annotations" && slices.Contains(ours(), path[2]) &&
			(isString || !e.is.present)
	}
	return true
}

// diff returns the note with which apply turns got into want. coupled maps paths to the field that their value depends
// on.
func diff(got, want object, coupled map[string]string) note {
	got, want = annotated(got), annotated(want)
	d := differ{got: got, coupled: coupled}
	d.objects(nil, got, want)
	return note{entries: d.entries}
}

// annotated returns an object whose annotations exist, even if empty. So each annotation gets an entry of its own, and
// one more does not matter.
func annotated(o object) object {
	metadata, isObject := o["metadata"].(object)
	if !isObject || metadata["annotations"] != nil {
		return o
	}
	o, metadata = maps.Clone(o), maps.Clone(metadata)
	o["metadata"], metadata["annotations"] = metadata, object{}
	return o
}

type differ struct {
	got     object
	coupled map[string]string
	entries []entry
}

func (d *differ) objects(path []string, got, want object) {
	for _, key := range keys(got, want) {
		d.values(append(path[:len(path):len(path)], key), get(got, key), get(want, key))
	}
}

func (d *differ) values(path []string, got, want maybe) {
	if got.equal(want) {
		return
	}
	if got.present && want.present {
		if x, y, both := twoOf[object](got, want); both {
			d.objects(path, x, y)
			return
		}
		if x, y, both := twoOf[[]any](got, want); both && len(x) == len(y) {
			d.items(path, x, y)
			return
		}
	}
	d.note(path, got, want)
}

// items notes the items that differ, and all items with the same value on the way back. By their number, apply sees
// whether all are still there.
func (d *differ) items(path []string, got, want []any) {
	var differing []any
	for i := range got {
		if !equal(got[i], want[i]) {
			differing = append(differing, got[i])
		}
	}
	for i := range got {
		if slices.ContainsFunc(differing, func(other any) bool { return equal(other, got[i]) }) {
			d.note(append(path[:len(path):len(path)], strconv.Itoa(i)), maybe{true, got[i]}, maybe{true, want[i]})
		}
	}
}

func (d *differ) note(path []string, got, want maybe) {
	e := entry{path: pointer(path), was: got, is: want}
	if other, found := d.coupled[e.path]; found {
		where := unpointer(other)
		e.whenPath, e.when = other, get(at(d.got, where[:len(where)-1]...), where[len(where)-1])
	}
	d.entries = append(d.entries, e)
}

func twoOf[T any](a, b maybe) (x, y T, both bool) {
	x, isX := a.value.(T)
	y, isY := b.value.(T)
	return x, y, isX && isY
}

// apply applies the note to o, wherever o still has the value that it had when the note was written.
func (n *note) apply(o object) {
	if n == nil {
		return
	}
	if metadata := at(o, "metadata"); metadata != nil {
		setDefault(metadata, "annotations", object{})
		defer func() { setAnnotations(o, annotationsOf(o)) }()
	}
	taken := map[string][]int{} // by list, the items that entries have used
	var changes []func()        // made at the end, so that each entry sees the result of the way back
	for _, e := range n.entries {
		path := unpointer(e.path)
		last := path[len(path)-1]
		if e.whenPath != "" {
			where := unpointer(e.whenPath)
			if !get(at(o, where[:len(where)-1]...), where[len(where)-1]).equal(e.when) {
				continue
			}
		}
		if parent := at(o, path[:len(path)-1]...); parent != nil {
			if get(parent, last).equal(e.was) {
				changes = append(changes, func() { put(parent, last, e.is) })
			}
			continue
		}
		if len(path) > 1 && e.was.present && e.is.present {
			list, _ := at(o, path[:len(path)-2]...)[path[len(path)-2]].([]any)
			within := pointer(path[:len(path)-1])
			if i := find(list, last, e.was.value, taken[within]); i >= 0 {
				taken[within] = append(taken[within], i)
				if n.alike(within, e.was) <= count(list, e.was.value) {
					changes = append(changes, func() { list[i] = clone(e.is.value) })
				}
			}
		}
	}
	for _, change := range changes {
		change()
	}
}

func put(o object, key string, is maybe) {
	if is.present {
		o[key] = clone(is.value)
	} else {
		delete(o, key)
	}
}

// alike returns how many items of a list had the value was when the note was written. If fewer are left, nobody can
// say which ones, and their notes do not count.
func (n *note) alike(list string, was maybe) int {
	found := 0
	for _, e := range n.entries {
		if e.path[:strings.LastIndexByte(e.path, '/')] == list && e.was.equal(was) {
			found++
		}
	}
	return found
}

func count(list []any, want any) int {
	found := 0
	for _, item := range list {
		if equal(item, want) {
			found++
		}
	}
	return found
}

// find returns the index of an item that equals want and is not taken, preferably hint; -1 if there is none.
func find(list []any, hint string, want any, taken []int) int {
	i, _ := strconv.Atoi(hint) // an invalid number is 0, where the search begins anyway
	if i >= 0 && i < len(list) && !slices.Contains(taken, i) && equal(list[i], want) {
		return i
	}
	for i := range list {
		if !slices.Contains(taken, i) && equal(list[i], want) {
			return i
		}
	}
	return -1
}
