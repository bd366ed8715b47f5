package serve_test

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/app/serve"
)

type family string

func (f family) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, string(f))
	return int64(n), err
}

type broken struct{}

func (broken) WriteTo(io.Writer) (int64, error) { return 0, errors.New("gone") }

// K-13: a scrape is text, compressed where that is allowed and not where it is not, whatever format is preferred.
func TestK13_AScrapeIsText(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		accepted string
		packed   bool
	}{{"", false}, {"gzip", true}, {"deflate, GZIP ; q=0.5", true}, {"gzip;q=0", false}, {"gzip;q=0.0, br", false},
		{"identity", false}} {
		request := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		request.Header.Set("Accept", "application/vnd.google.protobuf")
		request.Header.Set("Accept-Encoding", tc.accepted)
		answer := httptest.NewRecorder()
		serve.Text(answer, request, []io.WriterTo{family("a 1\n"), family("b 2\n")})
		if kind := answer.Header().Get("Content-Type"); !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
			t.Errorf("%q is answered with %q", tc.accepted, kind)
		}
		var body io.Reader = answer.Body
		if packed := answer.Header().Get("Content-Encoding") == "gzip"; packed != tc.packed {
			t.Errorf("%q is compressed: %t", tc.accepted, packed)
		} else if packed {
			var err error
			if body, err = gzip.NewReader(body); err != nil {
				t.Fatal(err)
			}
		}
		if text, err := io.ReadAll(body); err != nil || string(text) != "a 1\nb 2\n" {
			t.Errorf("%q is answered with %q (%v)", tc.accepted, text, err)
		}
	}
}

// K-13: an answer that breaks off is an error of the scrape: what is there of it is not taken for all.
func TestK13_HalfAScrapeIsNone(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serve.Text(w, r, []io.WriterTo{family(strings.Repeat("a 1\n", 1<<16)), broken{}, family("c 3\n")})
	}))
	t.Cleanup(server.Close)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Do(request)
	if err == nil {
		_, err = io.ReadAll(answer.Body)
		_ = answer.Body.Close()
	}
	if err == nil {
		t.Error("half a scrape is read as a whole one")
	}
}
