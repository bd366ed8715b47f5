// Package console is the page that shows how a cluster stands (U-08), as files within the program: sources are in src,
// and assets is what tools/console makes of them. It asks nothing but the read API that serves it.
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

// Policy is the Content-Security-Policy of the page: what is not served beside it is not loaded, and not asked.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// base stands in the page for the way from an address to the root: addresses of the page have several parts, and a door
// before it may have put one in front.
const base = "BASE/"

// file is one that is served.
type file struct {
	data       []byte
	kind, etag string
}

// Handler serves the page under each of its addresses, and the files that it is made of.
func Handler() http.Handler {
	files := map[string]file{}
	for name, kind := range map[string]string{"index.html": "text/html; charset=utf-8",
		"app.js": "text/javascript; charset=utf-8", "app.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml",
		"LICENCES.txt": "text/plain; charset=utf-8"} {
		data, err := assets.ReadFile("assets/" + name)
		if err != nil {
			continue // a test looks that each is there
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
		_, _ = w.Write(found.data) // a reader that is gone needs no answer
	})
}

// isPage reports whether the page shows something at this address.
func isPage(address string) bool {
	if address != "/" && strings.HasSuffix(address, "/") {
		return false
	}
	for _, form := range []string{"/", "/nodes", "/nodes/*", "/pods", "/pods/*/*", "/pools", "/pools/*", "/history", "/about"} {
		if matched, err := path.Match(form, address); err == nil && matched {
			return true
		}
	}
	return false
}
