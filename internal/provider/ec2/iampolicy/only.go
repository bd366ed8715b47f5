package iampolicy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// Only returns a policy with only those rights of a policy's Allows that used accepts, as indented JSON. Remaining
// actions with the same resources share a statement. If one statement becomes several, they are numbered. Conditions
// and Denies stay as they are. The text may have placeholders; then used gets them too.
func Only(text []byte, used func(Right) bool) ([]byte, error) {
	var d document
	if err := strict(text, &d, "Version", "Id", "Statement"); err != nil {
		return nil, err
	}
	entries, err := d.read()
	if err != nil {
		return nil, err
	}
	var left []entry
	for i, e := range entries {
		switch {
		case e.Effect != "Allow":
			left = append(left, e)
		case e.NotAction != nil || e.NotResource != nil:
			return nil,
				fmt.Errorf("element Statement[%d] has NotAction or NotResource, of which no part can be taken out", i)
		default:
			left = append(left, e.only(i, used)...)
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err = encoder.Encode(struct {
		Version   string
		Statement []entry
	}{d.Version, left})
	return out.Bytes(), err
}

// only splits a statement by its used rights.
func (e *entry) only(place int, used func(Right) bool) (parts []entry) {
	s := statement{name: e.Sid}
	if s.name == "" {
		s.name = fmt.Sprintf("Statement[%d]", place)
	}
	for _, a := range e.Action {
		var resources texts
		for _, r := range e.Resource {
			if used(allows(&s, a, r)) {
				resources = append(resources, r)
			}
		}
		if len(resources) == 0 {
			continue
		}
		i := slices.IndexFunc(parts, func(p entry) bool { return slices.Equal(p.Resource, resources) })
		if i < 0 {
			i = len(parts)
			parts = append(parts, entry{Sid: e.Sid, Effect: e.Effect, Resource: resources, Condition: e.Condition})
		}
		parts[i].Action = append(parts[i].Action, a)
	}
	for i := range parts {
		if len(parts) > 1 && e.Sid != "" {
			parts[i].Sid = fmt.Sprint(e.Sid, i+1)
		}
	}
	return parts
}
