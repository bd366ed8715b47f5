package ec2test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
)

// Garble makes a share of an action's answers unreadable, at most Times of them unless 0 (E-78). The action itself
// takes effect.
type Garble struct {
	Action string  `json:"action"`
	Share  float64 `json:"share"`
	Times  int     `json:"times,omitempty"`
	How    string  `json:"how"`
}

// garblings are the ways of garbling, by name: each returns the new status and body.
var garblings = map[string]func(status int, body []byte) (int, []byte){
	"cut":   func(status int, body []byte) (int, []byte) { return status, body[:len(body)/2] },
	"empty": func(status int, _ []byte) (int, []byte) { return status, nil },
	"html": func(int, []byte) (int, []byte) {
		return http.StatusInternalServerError,
			[]byte("<!doctype html><html><body><h1>500 Internal Server Error</h1></body></html>")
	},
	"types": func(status int, body []byte) (int, []byte) { // numbers and times become invalid; tags stay
		tag := false
		return status, bytes.Map(func(r rune) rune {
			tag = r == '<' || tag && r != '>'
			if r >= '0' && r <= '9' && !tag {
				return 'x'
			}
			return r
		}, body)
	},
	"huge": func(status int, _ []byte) (int, []byte) { return status, []byte(strings.Repeat("<a>", 10<<20/3)) },
}

// garbled answers a request with the garbled answer.
func garbled(w http.ResponseWriter, how string, answer func(http.ResponseWriter)) {
	plain := httptest.NewRecorder()
	answer(plain)
	status, body := garblings[how](plain.Code, plain.Body.Bytes())
	for name, values := range plain.Header() {
		w.Header()[name] = values
	}
	if how == "html" {
		w.Header().Set("Content-Type", "text/html")
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
