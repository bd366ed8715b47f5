package webhook

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
)

// readBody reads a POST of JSON, at most limit bytes. With an error it returns the HTTP status to answer.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, int, error) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, http.StatusMethodNotAllowed, fmt.Errorf("method is %q: it must be POST", r.Method)
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, http.StatusUnsupportedMediaType, fmt.Errorf("Content-Type is %q: it must be application/json",
			r.Header.Get("Content-Type"))
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, http.StatusRequestEntityTooLarge, fmt.Errorf("the review has more than %d bytes", limit)
	} else if err != nil {
		return nil, http.StatusBadRequest, fmt.Errorf("reading the review: %w", err)
	}
	return body, http.StatusOK, nil
}
