package sim

import (
	"strconv"
	"strings"
	"time"
)

// arguments are the words of a line after its verb: some stand alone, some are key=value.
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

// number is a value as a number; none is the value when the key is missing or says none.
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
