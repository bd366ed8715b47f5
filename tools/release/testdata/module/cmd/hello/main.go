// Command hello says whom it runs as and what it sees.
package main

import (
	"fmt"
	"os"
	"strings"
)

func main() {
	files, err := os.ReadDir("/")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	fmt.Println(os.Geteuid(), strings.Join(names, " "), strings.Join(os.Args[1:], " "))
}
