package churn

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
)

// logLine is a line of the log. about is its subject: equal for lines that differ only in names.
type logLine struct{ about, text string }

// withoutNames removes the words that contain digits or slashes.
func withoutNames(text string) string {
	words := slices.DeleteFunc(strings.Fields(text),
		func(word string) bool { return strings.ContainsAny(word, "0123456789/") })
	return strings.Join(words, " ")
}

// logEntry is the part of a log line that is read.
type logEntry struct{ Level, Message, Controller, Error string }

// caused reports whether users caused an error. The library that sends events logs an error when a terminating
// namespace accepts none. Calls to the cloud fail if the node class says so.
func (e logEntry) caused() bool {
	return e.Controller == "events" && strings.Contains(e.Error, "because it is being terminated") ||
		strings.HasSuffix(e.Error, "throttled by the provider")
}

// trouble returns lines that joiner should not have written since the last call: errors and panics. The last line may
// still be incomplete.
func (l *logReader) trouble() (lines []logLine, err error) {
	file, err := os.Open(l.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.NewSectionReader(file, l.read, 1<<30))
	if err != nil {
		return nil, err
	}
	whole := bytes.LastIndexByte(content, '\n') + 1
	l.read += int64(whole)
	for line := range bytes.Lines(content[:whole]) {
		var entry logEntry
		bad := json.Unmarshal(line, &entry) != nil || entry.Level == "ERROR"
		if bad && !entry.caused() {
			lines = append(lines, logLine{entry.Controller + entry.Message + withoutNames(entry.Error),
				string(bytes.TrimSpace(line))})
		}
	}
	return lines, nil
}
