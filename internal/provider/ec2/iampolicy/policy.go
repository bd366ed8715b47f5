// Package iampolicy decides what a policy of AWS IAM allows, so that tests can hold every call against the policies
// that users are given (E-58). It is pure.
//
//   - [Parse] reads an identity policy. It is strict: an element, operator, key or variable that is not evaluated here
//     is an error, for a policy that is half understood proves nothing.
//   - [Policy.Decide] says whether one action on one resource is allowed, and which rights of the policy that took.
//   - [Policy.Rights] lists all of them, so that those which nobody uses can be found.
//   - [Policy.Only] is the policy with some of its rights, for a smaller one.
//
// Where AWS's documentation leaves room, a request is refused: an asterisk of an Allow stays within its segment of an
// ARN, one of a Deny does not.
//
// Source: "IAM JSON policy elements reference" and "Policy evaluation logic" in the IAM user guide.
package iampolicy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Version is the one version of the policy language that is read.
const Version = "2012-10-17"

// Policy is an identity policy. It does not change, and may be used concurrently.
type Policy struct{ statements []statement }

// statement is one entry of a policy.
type statement struct {
	name                   string // its Sid, or its place
	deny                   bool
	actions, resources     []string
	notAction, notResource bool
	conditions             []condition
}

// document is a policy as it is written.
type document struct {
	Version   string          `json:"Version"`
	ID        string          `json:"Id,omitempty"`
	Statement json.RawMessage `json:"Statement"`
}

// entry is a statement as it is written.
type entry struct {
	Sid         string                      `json:"Sid,omitempty"`
	Effect      string                      `json:"Effect"`
	Action      texts                       `json:"Action,omitempty"`
	NotAction   texts                       `json:"NotAction,omitempty"`
	Resource    texts                       `json:"Resource,omitempty"`
	NotResource texts                       `json:"NotResource,omitempty"`
	Condition   map[string]map[string]texts `json:"Condition,omitempty"`
}

// texts are one text or a list of them.
type texts []string

// UnmarshalJSON reads either form.
func (t *texts) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		*t = texts{""}
		return json.Unmarshal(raw, &(*t)[0])
	}
	var list []string
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	if len(list) == 0 {
		return errors.New("an empty list, or none; a text or a list of texts is allowed")
	}
	*t = list
	return nil
}

// MarshalJSON writes one text as such.
func (t texts) MarshalJSON() ([]byte, error) {
	if len(t) == 1 {
		return json.Marshal(t[0])
	}
	return json.Marshal([]string(t))
}

// Parse reads a policy. The error names the statement and the element, and what is allowed.
func Parse(text []byte) (*Policy, error) {
	if err := unique(text); err != nil {
		return nil, err
	}
	var d document
	if err := strict(text, &d, "Version", "Id", "Statement"); err != nil {
		return nil, err
	}
	if d.Version != Version {
		return nil, fmt.Errorf("element Version is %q; %q is allowed", d.Version, Version)
	}
	entries, err := d.read()
	if err != nil {
		return nil, err
	}
	p := &Policy{}
	seen := map[string]bool{}
	for i, e := range entries {
		name := fmt.Sprintf("Statement[%d]", i)
		if e.Sid != "" {
			if !sid.MatchString(e.Sid) || seen[e.Sid] {
				return nil, fmt.Errorf("%s: Sid is %q; letters and digits are allowed, each Sid once", name, e.Sid)
			}
			seen[e.Sid], name = true, e.Sid
		}
		s, err := e.parse(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		p.statements = append(p.statements, s)
	}
	return p, nil
}

var (
	sid    = regexp.MustCompile(`^[A-Za-z0-9]+$`)
	action = regexp.MustCompile(`^(\*|[a-z0-9-]+:[A-Za-z0-9*?]+)$`)
)

func (e *entry) parse(name string) (statement, error) {
	s := statement{name: name, actions: e.Action, resources: e.Resource}
	switch e.Effect {
	case "Allow":
	case "Deny":
		s.deny = true
	default:
		return s, fmt.Errorf("element Effect is %q; Allow or Deny is allowed", e.Effect)
	}
	if (e.Action == nil) == (e.NotAction == nil) {
		return s, errors.New("one of Action and NotAction is needed")
	}
	if (e.Resource == nil) == (e.NotResource == nil) {
		return s, errors.New("one of Resource and NotResource is needed")
	}
	if e.NotAction != nil {
		s.actions, s.notAction = e.NotAction, true
	}
	if e.NotResource != nil {
		s.resources, s.notResource = e.NotResource, true
	}
	for _, a := range s.actions {
		if !action.MatchString(a) {
			return s, fmt.Errorf("action %q; * or service:Action is allowed, with * and ? in the action's name", a)
		}
	}
	for _, r := range s.resources {
		if err := checkARN(r); err != nil {
			return s, err
		}
	}
	var err error
	s.conditions, err = conditions(e.Condition)
	return s, err
}

// checkARN finds what is no pattern for ARNs.
func checkARN(pattern string) error {
	if err := plain(pattern); err != nil {
		return err
	}
	if pattern == "*" {
		return nil
	}
	segments := strings.SplitN(pattern, ":", arnSegments)
	if len(segments) < arnSegments || segments[0] != "arn" {
		return fmt.Errorf("resource %q; * or arn:partition:service:region:account:resource is allowed", pattern)
	}
	if strings.ContainsAny(segments[2], "*?") {
		return fmt.Errorf("resource %q; the service of an ARN has no * or ?", pattern)
	}
	return nil
}

// plain finds a variable: of the policy language, or a placeholder that was not filled in.
func plain(text string) error {
	if strings.Contains(text, "${") {
		return fmt.Errorf("%q has a variable; none is evaluated here, and placeholders have to be filled in", text)
	}
	return nil
}

// strict reads JSON with nothing after it. Objects have the fields that are allowed, in exactly this spelling: the
// package of the standard library does not mind case.
func strict(text []byte, into any, allowed ...string) error {
	if len(allowed) > 0 {
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(text, &fields); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if !slices.Contains(allowed, name) {
				return fmt.Errorf("field %q; %q are allowed", name, allowed)
			}
		}
	}
	return json.Unmarshal(text, into)
}

// read reads the statements, which may be a single one, or a list.
func (d *document) read() ([]entry, error) {
	raw := bytes.TrimSpace(d.Statement)
	if len(raw) > 0 && raw[0] == '{' {
		raw = slices.Concat([]byte("["), raw, []byte("]"))
	}
	var list []json.RawMessage
	if err := strict(raw, &list); err != nil {
		return nil, fmt.Errorf("element Statement: %w", err)
	}
	entries := make([]entry, len(list))
	for i, text := range list {
		err := strict(text, &entries[i], "Sid", "Effect", "Action", "NotAction", "Resource", "NotResource",
			"Condition")
		if err != nil {
			return nil, fmt.Errorf("element Statement[%d]: %w", i, err)
		}
	}
	if len(entries) == 0 {
		return nil, errors.New("element Statement is empty; at least one is needed")
	}
	return entries, nil
}

// unique finds fields that an object has twice, of which the package of the standard library takes the last. Those
// that differ in case are the same to IAM, as keys of conditions.
func unique(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	type level struct {
		object, value bool // value: a field's name was read
		seen          map[string]bool
	}
	var open []level
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return nil // of texts that are cut, too: who reads them finds that
		}
		if err != nil {
			return err
		}
		top := len(open) - 1
		if delimiter, is := token.(json.Delim); is && (delimiter == '}' || delimiter == ']') {
			open = open[:top]
			continue
		}
		if top >= 0 && open[top].object {
			if name, is := token.(string); is && !open[top].value {
				lower := strings.ToLower(name)
				if open[top].seen[lower] {
					return fmt.Errorf("field %q stands there twice", name)
				}
				open[top].seen[lower], open[top].value = true, true
				continue
			}
			open[top].value = false
		}
		if delimiter, is := token.(json.Delim); is {
			open = append(open, level{object: delimiter == '{', seen: map[string]bool{}})
		}
	}
}
