package sim

import (
	"strconv"
	"strings"
	"time"
)

// arguments are the words of a line after its verb: single words, or key=value.
type arguments []string

func (a arguments) value(key string) (string, bool) {
	for _, word := range a {
		if value, is := strings.CutPrefix(word, key+"="); is {
			return value, true
		}
	}
	return "", false
}

func (a arguments) first() string {
	if len(a) == 0 {
		return ""
	}
	return a[0]
}

// number returns a value as a number; none if the key is missing or its value is no number.
func (a arguments) number(key string, none int64) int64 {
	text, found := a.value(key)
	n, err := strconv.ParseInt(text, 10, 64)
	if !found || err != nil {
		return none
	}
	return n
}

func (a arguments) span(key string, none time.Duration) time.Duration {
	text, _ := a.value(key)
	if d, err := time.ParseDuration(text); err == nil {
		return d
	}
	return none
}
