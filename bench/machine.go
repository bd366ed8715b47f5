package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
)

// machine describes where the benchmark runs and what it is made of.
func machine() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s, %d processors, %s\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if name, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(name) == "model name" {
				fmt.Fprintf(&b, "processor: %s\n", strings.TrimSpace(value))
				break
			}
		}
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		fmt.Fprintf(&b, "load before: %s", load)
	}
	if info, found := debug.ReadBuildInfo(); found {
		for _, module := range info.Deps {
			if module.Path == "sigs.k8s.io/karpenter" {
				fmt.Fprintf(&b, "peer: %s %s\n", module.Path, module.Version)
			}
		}
	}
	return b.String()
}
