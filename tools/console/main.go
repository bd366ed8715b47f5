// Program console builds the page of package console from its sources (U-08): go run ./console SOURCES ASSETS. It
// needs neither Node.js nor a network: the bundler is a Go module, and the page's libraries are beside its sources, as
// they were published.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "want two arguments: the folder of the sources, and that of what is made of them")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// libraries returns the files of the page's libraries, by the name under which sources import them.
func libraries() map[string]string {
	return map[string]string{"preact": "preact.mjs", "preact/hooks": "preact-hooks.mjs",
		"@preact/signals": "signals.mjs", "@preact/signals-core": "signals-core.mjs"}
}

// licences returns the libraries, with their versions in vendor, and the files of their licences.
func licences() [][2]string {
	return [][2]string{{"preact 11.2.0", "LICENSE.preact"}, {"@preact/signals 2.11.4", "LICENSE.signals"},
		{"@preact/signals-core 1.14.5", "LICENSE.signals-core"}}
}

func run(from, to string) error {
	from, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	vendor := filepath.Join(from, "vendor")
	alias := map[string]string{}
	for name, file := range libraries() {
		alias[name] = filepath.Join(vendor, file)
	}
	made := api.Build(api.BuildOptions{EntryPoints: []string{filepath.Join(from, "app.jsx"), filepath.Join(from,
		"app.css")},
		AbsWorkingDir: from, Outdir: to, Bundle: true, MinifyWhitespace: true, MinifyIdentifiers: true,
		MinifySyntax: true,
		Format:       api.FormatESModule, Target: api.ES2022, JSX: api.JSXTransform, JSXFactory: "h",
		JSXFragment: "Fragment",
		Charset:     api.CharsetUTF8, LegalComments: api.LegalCommentsNone, Alias: alias, LogLevel: api.LogLevelSilent,
		Banner: map[string]string{
			"js": "/* Made by tools/console of internal/console/src; licences: LICENCES.txt */",
		}})
	var faults []error
	for _, m := range append(made.Errors, made.Warnings...) {
		where := ""
		if m.Location != nil {
			where = fmt.Sprintf("%s:%d: ", m.Location.File, m.Location.Line)
		}
		faults = append(faults, errors.New(where+m.Text))
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	for _, f := range made.OutputFiles {
		if err := write(to, filepath.Base(f.Path), f.Contents); err != nil {
			return err
		}
	}
	for _, name := range []string{"index.html", "icon.svg"} {
		data, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = write(to, name, data)
		}
		if err != nil {
			return err
		}
	}
	var texts strings.Builder
	for _, licence := range licences() {
		data, err := os.ReadFile(filepath.Join(vendor, licence[1]))
		if err != nil {
			return err
		}
		fmt.Fprintf(&texts, "%s\n\n%s\n", licence[0], data)
	}
	return write(to, "LICENCES.txt", []byte(strings.TrimSpace(texts.String())+"\n"))
}

func write(to, name string, data []byte) error {
	return os.WriteFile(filepath.Join(to, name), data, 0o644)
}
