// Command bench measures Joiner's planning against that of Karpenter, on the same inputs and the same machine. See
// docs/benchmarks.md.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := child(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
