package main

import (
	"bytes"
	"fmt"
	"slices"

	"golang.org/x/mod/modfile"
)

// treeModule is the module of the checkout.
const treeModule = "k8s.io/kubernetes"

// patchMod adds the plugin's module to the direct requirements. An existing requirement keeps its version:
// hack/pin-dependency.sh of the checkout changes versions.
func patchMod(name string, content []byte, version string) ([]byte, []part, error) {
	const what = "requirement of " + pluginModule
	f, err := modfile.Parse(name, content, nil)
	if err != nil {
		return nil, nil, err
	}
	if f.Module == nil || f.Module.Mod.Path != treeModule {
		return nil, nil, missing(name, "the line module", "module "+treeModule)
	}
	direct := map[*modfile.Line]bool{}
	for _, r := range f.Require {
		if r.Mod.Path == pluginModule {
			return content, []part{{what: what}}, nil
		}
		direct[r.Syntax] = !r.Indirect
	}
	at, form := placeOfRequirement(f.Syntax, direct)
	if form == "" {
		return nil, nil, missing(name, "require", "a requirement without // indirect")
	}
	at = bytes.LastIndexByte(content[:at], '\n') + 1
	line := fmt.Sprintf(form, pluginModule, version)
	after := slices.Concat(content[:at], []byte(line), content[at:])
	result, err := modfile.Parse(name, after, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: what would be written is no go.mod: %w", name, err)
	}
	if bytes.Equal(modfile.Format(f.Syntax), content) && !bytes.Equal(modfile.Format(result.Syntax), after) {
		return nil, nil, fmt.Errorf(movesOthers, name)
	}
	return after, []part{{what, true}}, nil
}

// placeOfRequirement returns an offset in the line before which the requirement comes, and its form. It comes into the
// first block with a direct requirement, in the order of paths. Without such a block, it comes before the first direct
// requirement that stands alone. Without any, form is "".
func placeOfRequirement(file *modfile.FileSyntax, direct map[*modfile.Line]bool) (at int, form string) {
	alone := -1
	for _, s := range file.Stmt {
		switch s := s.(type) {
		case *modfile.Line:
			if direct[s] && alone < 0 {
				alone = begin(s)
			}
		case *modfile.LineBlock:
			has := false
			for _, l := range s.Line {
				has = has || direct[l]
			}
			if !has {
				continue
			}
			for _, l := range s.Line {
				if l.Token[0] > pluginModule {
					return begin(l), "\t%s %s\n"
				}
			}
			return s.RParen.Pos.Byte, "\t%s %s\n"
		}
	}
	if alone < 0 {
		return 0, ""
	}
	return alone, "require %s %s\n\n"
}

// begin returns the offset at which a line begins, with the comments above it.
func begin(l *modfile.Line) int {
	if len(l.Before) > 0 {
		return l.Before[0].Start.Byte
	}
	return l.Start.Byte
}
