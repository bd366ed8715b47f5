// Package console holds the page that shows the state of a cluster (U-08), as files embedded in the program. The
// sources are in src; tools/console builds assets from them. The page only calls the read API that serves it.
package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"net/http"
	"path"
	"strings"
)

//go:embed assets
var assets embed.FS

// Policy is the Content-Security-Policy of the page: it may only load and call what is served with it.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// base is a placeholder in the page for the relative path to the root. Addresses of the page have several parts, and a
// proxy in front may have added one.
const base = "BASE/"

// file is a served file.
type file struct {
	data       []byte
	kind, etag string
}

// Handler serves the page under each of its addresses, and its files.
func Handler() http.Handler {
	files := map[string]file{}
	for name, kind := range map[string]string{"index.html": "text/html; charset=utf-8",
		"app.js": "text/javascript; charset=utf-8", "app.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml",
		"LICENCES.txt": "text/plain; charset=utf-8"} {
		data, err := assets.ReadFile("assets/" + name)
		if err != nil {
			continue // a test checks that all files exist
		}
		sum := sha256.Sum256(data)
		files["/"+name] = file{data, kind, `"` + hex.EncodeToString(sum[:8]) + `"`}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found, there := files[r.URL.Path]
		switch {
		case there && r.URL.Path != "/index.html":
			w.Header().Set("Cache-Control", "no-cache")
			w.Header().Set("ETag", found.etag)
			if r.Header.Get("If-None-Match") == found.etag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		case isPage(r.URL.Path):
			found = files["/index.html"]
			up := "./" + strings.Repeat("../", strings.Count(r.URL.Path, "/")-1)
			found.data = []byte(strings.ReplaceAll(string(found.data), base, up))
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", found.kind)
		_, _ = w.Write(found.data) // a client that is gone needs no answer
	})
}

// isPage reports whether the page has a view for this address.
func isPage(address string) bool {
	if address != "/" && strings.HasSuffix(address, "/") {
		return false
	}
	for _, form := range []string{"/", "/nodes", "/nodes/*", "/pods", "/pods/*/*", "/pools", "/pools/*", "/history",
		"/about"} {
		if matched, err := path.Match(form, address); err == nil && matched {
			return true
		}
	}
	return false
}
