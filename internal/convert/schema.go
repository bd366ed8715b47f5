package convert

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"
)

// schema is the part of a CRD's schema that says which fields a version has, and their types.
type schema struct {
	Type                 string             `json:"type"`
	Format               string             `json:"format"`
	Pattern              string             `json:"pattern"`
	Description          string             `json:"description"`
	Properties           map[string]*schema `json:"properties"`
	AdditionalProperties *schema            `json:"additionalProperties"`
	Items                *schema            `json:"items"`
	IntOrString          bool               `json:"x-kubernetes-int-or-string"`
	PreserveUnknown      bool               `json:"x-kubernetes-preserve-unknown-fields"`

	pattern *regexp.Regexp
	amount  bool // the text is a resource.Quantity in Go
	bare    bool // and the pattern does not describe a quantity
}

// readSchemas returns the schemas of a CRD by version.
func readSchemas(manifest []byte) (map[string]*schema, error) {
	var crd struct {
		Spec struct {
			Versions []struct {
				Name   string `json:"name"`
				Schema struct {
					OpenAPI *schema `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(manifest, &crd); err != nil {
		return nil, err
	}
	found := map[string]*schema{}
	for _, version := range crd.Spec.Versions {
		if err := version.Schema.OpenAPI.compile(); err != nil {
			return nil, fmt.Errorf("version %s: %w", version.Name, err)
		}
		found[version.Name] = version.Schema.OpenAPI
	}
	return found, nil
}

func (s *schema) compile() (err error) {
	if s == nil {
		return nil
	}
	if s.Pattern != "" {
		if s.pattern, err = regexp.Compile(s.Pattern); err != nil {
			return err
		}
	}
	s.amount = s.IntOrString
	for name, child := range s.Properties {
		if err := child.compile(); err != nil {
			return err
		}
		child.bare = name == "volumeSize"
		child.amount = child.amount || child.bare
	}
	if err := s.AdditionalProperties.compile(); err != nil {
		return err
	}
	return s.Items.compile()
}

// of returns the schema of a field; nil if the field does not exist.
func (s *schema) of(key string) *schema {
	if child, found := s.Properties[key]; found {
		return child
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties
	}
	if s.PreserveUnknown || s.Type == "object" && s.Properties == nil {
		return &schema{PreserveUnknown: true}
	}
	return nil
}

// prune removes the fields that the version does not have, like the API server.
func (s *schema) prune(value any) {
	switch value := value.(type) {
	case object:
		for key, item := range value {
			if child := s.of(key); child != nil {
				child.prune(item)
			} else {
				delete(value, key)
			}
		}
	case []any:
		if s.Items != nil {
			for _, item := range value {
				s.Items.prune(item)
			}
		}
	}
}

// check appends the problems of a value to found, up to maxProblems, in order. It checks what a client needs to decode
// the value: types, ranges of numbers, and the texts of amounts, durations and times.
func (s *schema) check(path string, value any, found []Problem) []Problem {
	if len(found) >= maxProblems || value == nil || s.PreserveUnknown && s.Type == "" {
		return found
	}
	if want := s.wrong(value); want != "" {
		return append(found, Problem{Field: path, Value: shorten(encode(value), 120), Allowed: want})
	}
	switch value := value.(type) {
	case object:
		for _, key := range keys(value, nil) {
			if child := s.of(key); child != nil {
				found = child.check(path+"."+key, value[key], found)
			}
		}
	case []any:
		for i, item := range value {
			if s.Items != nil {
				found = s.Items.check(path+"["+strconv.Itoa(i)+"]", item, found)
			}
		}
	}
	return found
}

// repair removes what check complains about. It returns false if the value itself is wrong.
func (s *schema) repair(value any) bool {
	if value == nil || s.PreserveUnknown && s.Type == "" {
		return true
	}
	if s.wrong(value) != "" {
		return false
	}
	switch value := value.(type) {
	case object:
		for key, item := range value {
			if child := s.of(key); child != nil && !child.repair(item) {
				delete(value, key)
			}
		}
	case []any:
		for _, item := range value {
			if s.Items != nil && !s.Items.repair(item) {
				return false // one item less would change the meaning of the others
			}
		}
	}
	return true
}

// wrong says what a value must be, "" if it is right. It does not look inside the value.
func (s *schema) wrong(value any) string {
	if s.right(value) {
		return ""
	}
	return "it must be " + s.wanted(value)
}

func (s *schema) right(value any) bool {
	number, isNumber := value.(json.Number)
	content, isString := value.(string)
	switch {
	case s.IntOrString:
		return isNumber && whole(number, 64) || isString && s.matches(content)
	case s.Type == "object":
		_, isObject := value.(object)
		return isObject
	case s.Type == "array":
		_, isList := value.([]any)
		return isList
	case s.Type == "boolean":
		_, isBool := value.(bool)
		return isBool
	case s.Type == "integer":
		return isNumber && whole(number, s.bits())
	case s.Type == "number":
		return isNumber
	case s.Type == "string" && s.Format == "date-time":
		_, err := time.Parse(time.RFC3339, content)
		return isString && err == nil
	case s.Type == "string":
		return isString && s.matches(content)
	}
	return true
}

// wanted says what would be right instead of a wrong value; for amounts and texts in the words of the field's
// documentation.
func (s *schema) wanted(value any) string {
	_, isNumber := value.(json.Number)
	switch {
	case s.IntOrString && isNumber:
		return "a whole number"
	case s.IntOrString:
		return s.described("a whole number or a string")
	case s.Type == "object":
		return "an object"
	case s.Type == "array":
		return "a list"
	case s.Type == "boolean":
		return "true or false"
	case s.Type == "integer":
		return fmt.Sprintf("a whole number of at most %d bits", s.bits())
	case s.Type == "number":
		return "a number"
	case s.Format == "date-time":
		return "a time such as 2026-01-02T03:04:05Z"
	}
	return s.described("a string")
}

func (s *schema) bits() int {
	if s.Format == "int32" {
		return 32
	}
	return 64
}

// matches reports whether a text can be decoded. Only the patterns of amounts and durations decide that: those that
// begin with an optional sign or with digits. Decoding amounts with exponents of three digits takes for ever.
func (s *schema) matches(content string) bool {
	if s.amount && hasHugeExponent(content) {
		return false
	}
	if s.bare {
		_, err := resource.ParseQuantity(strings.TrimSpace(content))
		return err == nil
	}
	decides := strings.HasPrefix(s.Pattern, `^(\+|-)?(([0-9]+`) || strings.Contains(s.Pattern, `[0-9]+[smh`) ||
		strings.Contains(s.Pattern, `[0-9]+[mh]`)
	return !decides || s.pattern.MatchString(content)
}

func hasHugeExponent(content string) bool {
	i := strings.IndexAny(content, "eE")
	if i < 0 || strings.Trim(content[:i], "+-.0123456789") != "" {
		return false
	}
	digits := strings.TrimLeft(content[i+1:], "+-")
	return len(digits) > 2 && strings.Trim(digits, "0123456789.") == ""
}

func (s *schema) described(kind string) string {
	if s.Description == "" {
		return kind
	}
	return kind + ". " + shorten(strings.TrimSuffix(strings.Join(strings.Fields(s.Description), " "), "."), 300)
}

func whole(number json.Number, bits int) bool {
	_, err := strconv.ParseInt(string(number), 10, bits)
	return err == nil
}

func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
