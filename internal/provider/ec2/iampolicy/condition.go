package iampolicy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// condition is one condition of a statement: an operator, a key and values.
type condition struct {
	text     string // as written: operator and key
	key      string // in lower case
	values   []string
	match    func(pattern, value string) bool
	negated  bool
	ifExists bool
	null     bool
	all, any bool // over the values of the request
}

// operators returns the supported operators, without their prefixes and suffixes.
func operators() map[string]condition {
	equal := func(pattern, value string) bool { return pattern == value }
	like := glob
	arn := func(pattern, value string) bool { return matchARN(pattern, value, false) }
	return map[string]condition{
		"StringEquals": {match: equal}, "StringNotEquals": {match: equal, negated: true},
		"StringEqualsIgnoreCase": {match: strings.EqualFold}, "StringNotEqualsIgnoreCase": {match: strings.EqualFold,
			negated: true},
		"StringLike": {match: like}, "StringNotLike": {match: like, negated: true},
		"ArnEquals": {match: arn}, "ArnLike": {match: arn},
		"ArnNotEquals": {match: arn, negated: true}, "ArnNotLike": {match: arn, negated: true},
		"Null": {null: true},
	}
}

// Keys of conditions. Those that end in a slash are followed by the key of a tag.
const (
	RequestTag      = "aws:RequestTag/"
	ResourceTag     = "aws:ResourceTag/"
	TagKeys         = "aws:TagKeys"
	RequestedRegion = "aws:RequestedRegion"
	CreateAction    = "ec2:CreateAction"
	PassedToService = "iam:PassedToService"
)

// keys returns the supported keys. Each has one value in a request, except for aws:TagKeys.
func keys() []string {
	return []string{RequestTag, ResourceTag, TagKeys, RequestedRegion, CreateAction, PassedToService}
}

// conditions reads all conditions of a statement, in order.
func conditions(of map[string]map[string]texts) ([]condition, error) {
	var list []condition
	for _, operator := range slices.Sorted(maps.Keys(of)) {
		if len(of[operator]) == 0 {
			return nil, fmt.Errorf("condition %s is empty; a key and values are needed", operator)
		}
		for _, key := range slices.Sorted(maps.Keys(of[operator])) {
			c, err := newCondition(operator, key, of[operator][key])
			if err != nil {
				return nil, fmt.Errorf("condition %s of %q: %w", operator, key, err)
			}
			list = append(list, c)
		}
	}
	return list, nil
}

func newCondition(operator, key string, values []string) (condition, error) {
	rest, all := strings.CutPrefix(operator, "ForAllValues:")
	rest, some := strings.CutPrefix(rest, "ForAnyValue:")
	base, ifExists := strings.CutSuffix(rest, "IfExists")
	known := operators()
	c, is := known[base]
	if !is || all && some || c.null && (all || some || ifExists) {
		return c, fmt.Errorf(
			"the operator is not evaluated; allowed are %q, but for Null with ForAllValues: or ForAnyValue: before "+
				"and IfExists after it", slices.Sorted(maps.Keys(known)))
	}
	c.text, c.key, c.values, c.all, c.any, c.ifExists = operator+" "+key, strings.ToLower(key), values, all, some,
		ifExists
	if !slices.ContainsFunc(keys(), func(k string) bool {
		lower := strings.ToLower(k)
		return c.key == lower && !strings.HasSuffix(k, "/") ||
			strings.HasSuffix(k, "/") && strings.HasPrefix(c.key, lower) && c.key != lower
	}) {
		return c, fmt.Errorf("the key is not evaluated; allowed are %q", keys())
	}
	if err := plain(key); err != nil {
		return c, err
	}
	if several := c.key == strings.ToLower(TagKeys); several != (all || some) && !c.null {
		return c, fmt.Errorf("ForAllValues: and ForAnyValue: are for keys with several values, %s, and needed there",
			TagKeys)
	}
	for _, v := range values {
		if err := plain(v); err != nil {
			return c, err
		}
		if _, err := strconv.ParseBool(v); c.null && (err != nil || len(values) > 1) {
			return c, fmt.Errorf("the value is %q; true or false is allowed", values)
		}
	}
	return c, nil
}

// holds reports whether a request satisfies the condition.
func (c *condition) holds(request map[string][]string) bool {
	has := request[c.key]
	fits := func(value string) bool {
		return c.negated != slices.ContainsFunc(c.values, func(v string) bool { return c.match(v, value) })
	}
	switch {
	case c.null:
		absent, _ := strconv.ParseBool(c.values[0])
		return absent == (len(has) == 0)
	case c.all:
		return !slices.ContainsFunc(has, func(v string) bool { return !fits(v) })
	case len(has) == 0:
		return c.ifExists || c.negated && !c.any
	}
	return slices.ContainsFunc(has, fits)
}

// glob reports whether a text matches a pattern with * and ?. There is no escape for these.
func glob(pattern, text string) bool {
	if !strings.ContainsAny(pattern, "*?") {
		return pattern == text
	}
	p, t := []rune(pattern), []rune(text)
	at, star, from := 0, -1, 0
	for i := 0; i < len(t); {
		switch {
		case at < len(p) && p[at] == '*':
			star, from = at, i
			at++
		case at < len(p) && (p[at] == '?' || p[at] == t[i]):
			at++
			i++
		case star >= 0:
			from++
			at, i = star+1, from
		default:
			return false
		}
	}
	for at < len(p) && p[at] == '*' {
		at++
	}
	return at == len(p)
}

// arnSegments is the number of parts of an ARN; the last may have colons.
const arnSegments = 6

// MatchARN reports whether an ARN matches a pattern, part by part.
func MatchARN(pattern, arn string) bool { return matchARN(pattern, arn, false) }

// matchARN compares part by part. With wide, an asterisk also matches beyond its part.
func matchARN(pattern, arn string, wide bool) bool {
	if pattern == "*" || wide && glob(pattern, arn) {
		return true
	}
	p, a := strings.SplitN(pattern, ":", arnSegments), strings.SplitN(arn, ":", arnSegments)
	return slices.EqualFunc(p, a, glob)
}
