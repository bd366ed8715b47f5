package ec2test

import (
	"cmp"
	"encoding/base64"
	"maps"
	"slices"
	"strings"
)

// filter is a filter of a listing: any of its values.
type filter struct {
	Name   string   `query:"Name"`
	Values []string `query:"Value"`
}

// paging is the caller's parameters for pages.
type paging struct {
	MaxResults *int   `query:"MaxResults"`
	NextToken  string `query:"NextToken"`
}

// checked is a request that may be a dry run.
type checked struct {
	DryRun bool `query:"DryRun"`
}

// tag is a tag on the wire, in both directions.
type tag struct {
	Key   string `query:"Key" xml:"key"`
	Value string `query:"Value" xml:"value"`
}

// list is an element that an answer has even without items, as in EC2: so an answer that says "none" differs from one
// without content.
type list[T any] struct {
	Items []T `xml:"item"`
}

func tagList(tags map[string]string) []tag {
	var list []tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, tag{key, tags[key]})
	}
	return list
}

func tagMap(list []tag) map[string]string {
	tags := map[string]string{}
	for _, t := range list {
		tags[t.Key] = t.Value
	}
	return tags
}

// fields are the filters of a listing, by name, with the values that an item has for them.
type fields[T any] map[string]func(T) []string

func one[T any](of func(T) string) func(T) []string {
	return func(item T) []string { return []string{of(item)} }
}

// filtered returns the items that pass every filter. tags is nil when the listing has no filters by tag.
func filtered[T any](items []T, filters []filter, known fields[T], tags func(T) map[string]string) ([]T, error) {
	for _, f := range filters {
		values := func(item T) []string { return known[f.Name](item) }
		key, byTag := strings.CutPrefix(f.Name, "tag:")
		switch {
		case known[f.Name] != nil:
		case byTag && tags != nil:
			values = func(item T) []string {
				if value, has := tags(item)[key]; has {
					return []string{value}
				}
				return nil
			}
		case f.Name == "tag-key" && tags != nil:
			values = func(item T) []string { return slices.Collect(maps.Keys(tags(item))) }
		default:
			return nil, refuse(400, codeBadValue, "The filter '%s' is invalid", f.Name)
		}
		if len(f.Values) > 200 {
			return nil, refuse(400, "FilterLimitExceeded",
				"The maximum number of filter values specified on a single call is 200")
		}
		items = slices.DeleteFunc(slices.Clone(items), func(item T) bool {
			return !slices.ContainsFunc(values(item), func(value string) bool {
				return slices.ContainsFunc(f.Values, func(pattern string) bool { return wild(pattern, value) })
			})
		})
	}
	return items, nil
}

// wild matches EC2's filter values: * is any text, ? is one character, \ removes their meaning.
func wild(pattern, text string) bool {
	p, t := []rune(pattern), []rune(text)
	at, star, mark := 0, -1, 0
	for i := 0; ; {
		switch {
		case at < len(p) && p[at] == '*':
			star, mark = at, i
			at++
			continue
		case i >= len(t):
			return at == len(p)
		case at < len(p) && p[at] == '?':
			at, i = at+1, i+1
			continue
		}
		width := 1
		if at < len(p) && p[at] == '\\' && at+1 < len(p) {
			width = 2
		}
		if at < len(p) && p[at+width-1] == t[i] {
			at, i = at+width, i+1
			continue
		}
		if star < 0 {
			return false
		}
		mark++
		at, i = star+1, mark
	}
}

// bounds are how many items a page may have.
type bounds struct{ least, most int }

// page returns one page of items, ordered by key, and the token of the next. A token names the last item before it, so
// a listing stays complete while items come and go.
func page[T any](c *call, items []T, key func(T) string, in paging, b bounds) ([]T, *string, error) {
	size := b.most
	if in.MaxResults != nil {
		if size = *in.MaxResults; size < b.least || size > b.most {
			return nil, nil, refuse(400, codeBadValue,
				"Value ( %d ) for parameter maxResults is invalid. Expecting a value between %d and %d.",
				size, b.least, b.most)
		}
	}
	if c.pageSize > 0 {
		size = min(size, c.pageSize)
	}
	items = slices.Clone(items)
	slices.SortFunc(items, func(x, y T) int { return cmp.Compare(key(x), key(y)) })
	if in.NextToken != "" {
		text, err := base64.RawURLEncoding.DecodeString(in.NextToken)
		last, ours := strings.CutPrefix(string(text), c.name()+" ")
		if err != nil || !ours {
			return nil, nil, refuse(400, "InvalidNextToken", "The token '%s' is invalid", in.NextToken)
		}
		from, _ := slices.BinarySearchFunc(items, last, func(item T, last string) int {
			if key(item) <= last {
				return -1
			}
			return 1
		})
		items = items[from:]
	}
	if len(items) <= size {
		return items, nil, nil
	}
	token := base64.RawURLEncoding.EncodeToString([]byte(c.name() + " " + key(items[size-1])))
	return items[:size], &token, nil
}

// wholeOrPaged refuses pages together with names, as EC2 does.
func wholeOrPaged(in paging, names []string, what string) error {
	if in.MaxResults != nil && len(names) > 0 {
		return refuse(400, codeBadTogether, "The parameter %s cannot be used with the parameter maxResults", what)
	}
	return nil
}
