// Command pictures draws the diagrams of the pages (U-12): `pictures FOLDER` writes each as an SVG file.
//
// A picture is made of few things: boxes in rows, arrows, frames around what belongs together, and captions. They are
// drawn by canvas.go in one visual language, so that a reader learns it once. The text of a picture is text: it can be
// searched, read aloud and translated. Each file carries its own background, light or dark as the reader prefers,
// since the page around it may be of the other kind.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// picture is one file.
type picture struct {
	name  string // of the file, without its ending
	title string // what a screen reader says first
	about string // the same as the picture, told in sentences
	draw  func(*canvas)
}

// all returns the pictures, in the order in which a reader meets them.
func all() []picture {
	return []picture{podToNode(), removal(), limits(), policy(), protection(), launches(), layers(), readers()}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pictures FOLDER")
		os.Exit(2)
	}
	for _, p := range all() {
		if err := os.WriteFile(filepath.Join(os.Args[1], p.name+".svg"), p.svg(), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
