package console_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/joiner-autoscaler/joiner/internal/console"
)

func get(t *testing.T, path, etag string) (*http.Response, string) {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
	request.Header.Set("If-None-Match", etag)
	w := httptest.NewRecorder()
	console.Handler().ServeHTTP(w, request)
	body, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Result(), string(body)
}

// TestU08_TheFilesAreServed: the page is served under all its addresses, and finds its files relative to them. Scripts
// and styles are small. Nothing in them or in the page comes from elsewhere.
func TestU08_TheFilesAreServed(t *testing.T) {
	t.Parallel()
	for path, up := range map[string]string{"/": "./", "/nodes": "./", "/nodes/n1": "./../",
		"/pods/shop/web": "./../../", "/pods": "./", "/pools": "./", "/pools/p": "./../", "/history": "./",
		"/about": "./"} {
		answer, body := get(t, path, "")
		if answer.StatusCode != http.StatusOK || !strings.Contains(body, `src="`+up+`app.js"`) ||
			!strings.Contains(body, `href="`+up+`app.css"`) || strings.Contains(body, "<style") {
			t.Errorf("%s: %d %s", path, answer.StatusCode, body)
		}
	}
	for _, path := range []string{"/other", "/nodes/", "/nodes/a/b", "/index.html", "/app.jsx", "/pods/a",
		"/assets/app.js"} {
		if answer, _ := get(t, path, ""); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, answer.StatusCode)
		}
	}
	size := 0
	for path, kind := range map[string]string{"/app.js": "text/javascript", "/app.css": "text/css",
		"/icon.svg":     "image/svg+xml",
		"/LICENCES.txt": "text/plain"} {
		answer, body := get(t, path, "")
		if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), kind) ||
			body == "" {
			t.Errorf("%s: %d %v", path, answer.StatusCode, answer.Header)
		}
		if again, rest := get(t, path, answer.Header.Get("ETag")); again.StatusCode != http.StatusNotModified ||
			rest != "" {
			t.Errorf("%s again: %d", path, again.StatusCode)
		}
		if found := regexp.MustCompile(`https?://[a-z.]+`).FindAllString(body, -1); path != "/LICENCES.txt" {
			for _, address := range found {
				if address != "http://www.w.org" && address != "http://www.w" { // names of XML, which nobody asks for
					t.Errorf("%s names %s", path, address)
				}
			}
		}
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := io.WriteString(w, body); err != nil || w.Close() != nil {
			t.Fatal(err)
		}
		size += packed.Len()
	}
	if size > 60<<10 {
		t.Errorf("%d bytes are sent", size)
	}
}
