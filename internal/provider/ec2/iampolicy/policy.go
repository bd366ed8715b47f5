// Package iampolicy decides what a policy of AWS IAM allows, so that tests can check every call against the policies
// that we give to users (E-58). It is pure.
//
//   - [Parse] reads an identity policy. It is strict: an unsupported element, operator, key or variable is an error,
//     since a policy that is only half understood proves nothing.
//   - [Policy.Decide] says whether one action on one resource is allowed, and which rights of the policy allow it.
//   - [Policy.Rights] lists all rights, to find unused ones.
//   - [Only] returns a smaller policy, with some of the rights.
//
// Where AWS's documentation is ambiguous, a request is refused: an asterisk of an Allow matches only within its
// segment of an ARN, one of a Deny matches beyond it.
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

// Version is the only supported version of the policy language.
const Version = "2012-10-17"

// Policy is an identity policy. It is immutable and safe for concurrent use.
type Policy struct{ statements []statement }

// statement is one entry of a policy.
type statement struct {
	name                   string // its Sid, or its position
	deny                   bool
	actions, resources     []string
	notAction, notResource bool
	conditions             []condition
}

// document is a policy as JSON.
type document struct {
	Version   string          `json:"Version"`
	ID        string          `json:"Id,omitempty"`
	Statement json.RawMessage `json:"Statement"`
}

// entry is a statement as JSON.
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

// UnmarshalJSON reads both forms.
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

// MarshalJSON writes a single text without a list.
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

// checkARN returns an error for an invalid pattern of ARNs.
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

// plain returns an error for a text with a variable of the policy language, or with a placeholder that was not filled
// in.
func plain(text string) error {
	if strings.Contains(text, "${") {
		return fmt.Errorf("%q has a variable; none is evaluated here, and placeholders have to be filled in", text)
	}
	return nil
}

// strict reads JSON with nothing after it. An object may have only the allowed fields, in exactly this spelling: the
// standard library ignores case.
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

// read reads the statements: a single one or a list.
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

// unique returns an error if an object has a field twice: the standard library silently takes the last. Fields that
// differ only in case count as the same, as IAM does with keys of conditions.
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
			return nil // also for truncated texts: the actual read reports these
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
