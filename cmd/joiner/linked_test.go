package main

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// B-13: a template may call any method by its name. Where one can be reached the linker keeps every method of every
// type that is used, all calls of EC2 among them: 147 MB instead of 81, and 12 MiB more in memory.
func TestWhatNobodyCallsIsNotLinkedIn(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"joiner", "joiner-operator"} {
		path := filepath.Join(t.TempDir(), program)
		build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-o", path,
			"../"+program)
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", program, err, out)
		}
		file, err := elf.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		symbols, err := file.Symbols()
		if err != nil || file.Close() != nil || len(symbols) == 0 {
			t.Fatalf("%s: %d symbols, %v", program, len(symbols), err)
		}
		for _, s := range symbols {
			if strings.HasPrefix(s.Name, "text/template.(*Template)") ||
				strings.HasSuffix(s.Name, "/ec2.(*Client).AcceptAddressTransfer") {
				t.Fatalf("%s has %s: go build -ldflags=-dumpdep says what reaches it", program, s.Name)
			}
		}
	}
}
