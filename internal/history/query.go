package history

import (
	"fmt"
	"net/url"
	"strconv"
	"time"
)

// Path is where a controller's read API serves decisions (U-41).
const Path = "/joiner/v1/history"

// Answer is what it answers.
type Answer struct {
	// Records are the decisions that were asked for, newest first.
	Records []Record `json:"records"`
	// Notes say what of the history is missing, and why.
	Notes []string `json:"notes,omitempty"`
}

// Query encodes a filter as a query of the read API.
func (f Filter) Query() url.Values {
	q := url.Values{}
	set := func(name, value string) {
		if value != "" {
			q.Set(name, value)
		}
	}
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339Nano)
	}
	set("since", at(f.Since))
	set("until", at(f.Until))
	set("nodepool", f.NodePool)
	set("node", f.Node)
	set("pod", f.Pod)
	set("cause", f.Cause)
	if f.Limit > 0 {
		set("limit", strconv.Itoa(f.Limit))
	}
	return q
}

// FromQuery parses the result of Query. Errors name the parameter, its value and what is allowed.
func FromQuery(q url.Values) (Filter, error) {
	f := Filter{NodePool: q.Get("nodepool"), Node: q.Get("node"), Pod: q.Get("pod"), Cause: q.Get("cause")}
	for name, into := range map[string]*time.Time{"since": &f.Since, "until": &f.Until} {
		text := q.Get(name)
		if text == "" {
			continue
		}
		var err error
		if *into, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return f, fmt.Errorf("%s is %q: it must be a time such as 2026-11-20T08:00:00Z", name, text)
		}
	}
	if text := q.Get("limit"); text != "" {
		var err error
		if f.Limit, err = strconv.Atoi(text); err != nil || f.Limit < 0 {
			return f, fmt.Errorf("limit is %q: it must be a number from 0", text)
		}
	}
	return f, nil
}

// ConfigMap returns the name of the ConfigMap in a slot; Key is its only entry, in binaryData.
func ConfigMap(slot int) string { return fmt.Sprintf("joiner-history-%02d", slot) }

// Key is the entry of a ConfigMap that holds its page.
const Key = "records.gz"
