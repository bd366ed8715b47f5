package churn

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
)

// logLine is a line of the log, and what it is about: equal for two lines that only differ in names.
type logLine struct{ about, text string }

// withoutNames leaves out the words of a text that have digits or slashes in them.
func withoutNames(text string) string {
	words := slices.DeleteFunc(strings.Fields(text),
		func(word string) bool { return strings.ContainsAny(word, "0123456789/") })
	return strings.Join(words, " ")
}

// logEntry is what is read of a line.
type logEntry struct{ Level, Message, Controller, Error string }

// caused reports whether an error is one that the users bring about: the library that sends events calls it an error
// that a namespace which is going takes none, and calls to the cloud fail where the node class says so.
func (e logEntry) caused() bool {
	return e.Controller == "events" && strings.Contains(e.Error, "because it is being terminated") ||
		strings.HasSuffix(e.Error, "throttled by the provider")
}

// trouble returns lines that joiner should not have written since the last call: errors and panics. The last line may
// not be complete yet.
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
