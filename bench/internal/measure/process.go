package measure

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ticksPerSecond is the unit of times in /proc: USER_HZ, which is 100 on every platform that Go runs on.
const ticksPerSecond = 100

// CPUSecondsOf returns the CPU time of a process and of its threads so far, user and system.
func CPUSecondsOf(pid int) (float64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading CPU time: %w", err)
	}
	// The name in brackets may hold anything; utime and stime are the 12th and 13th field behind it.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("reading CPU time: /proc/%d/stat is %q", pid, stat)
	}
	sum := 0.0
	for _, field := range fields[11:13] {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, fmt.Errorf("reading CPU time: %w", err)
		}
		sum += ticks / ticksPerSecond
	}
	return sum, nil
}

// ForgetPeakOf resets the peak of a process's memory.
func ForgetPeakOf(pid int) error {
	// see proc_pid_clear_refs(5)
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("resetting the peak of memory: %w", err)
	}
	return nil
}

// PeakRSSOf returns the largest resident set since ForgetPeakOf.
func PeakRSSOf(pid int) (uint64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the peak of memory: %w", err)
	}
	for line := range bytes.Lines(status) {
		if rest, found := bytes.CutPrefix(line, []byte("VmHWM:")); found {
			kibibytes, err := strconv.ParseUint(string(bytes.Fields(rest)[0]), 10, 64)
			return kibibytes << 10, err
		}
	}
	return 0, fmt.Errorf("reading the peak of memory: no VmHWM in /proc/%d/status", pid)
}
