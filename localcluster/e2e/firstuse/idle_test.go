package firstuse

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// idleEnv names the variable with the minutes for which an idle cluster is watched.
const idleEnv = "JOINER_IDLE_MINUTES"

// U-14: while nothing happens, nothing is logged at info. The cluster has nodes with pods on them, and has come to
// rest.
func TestU14_AnIdleClusterLogsNothing(t *testing.T) {
	t.Parallel()
	minutes := 1
	if text := os.Getenv(idleEnv); text != "" {
		var err error
		if minutes, err = strconv.Atoi(text); err != nil || minutes < 1 {
			t.Fatalf("%s is %q: it must be a whole number above 0", idleEnv, text)
		}
	}
	r := &reader{terminal: open(t)}
	r.makeUp(block{text: "make up\n"})
	r.works("kubectl create deployment web --image=example.invalid/web --replicas=5")
	r.works("kubectl set resources deployment web --requests=cpu=1")
	r.works("kubectl rollout status deployment web --timeout=4m")
	const atRest = time.Minute
	changed, last := time.Now(), -1
	r.eventually("the log to come to rest", func() (bool, string) {
		lines := r.told()
		if len(lines) != last {
			changed, last = time.Now(), len(lines)
		}
		return last > 0 && time.Since(changed) >= atRest, strings.Join(lines, "\n")
	})
	select {
	case <-time.After(time.Duration(minutes) * time.Minute): // the test is that nothing happens
	case <-t.Context().Done():
	}
	if lines := r.told(); len(lines) > last {
		t.Errorf("in %d idle minutes Joiner logged\n%s", minutes, strings.Join(lines[last:], "\n"))
	}
	r.stop(r.up, "kwok")
}

// told returns the lines of Joiner's log above debug.
func (r *reader) told() (lines []string) {
	content, err := os.ReadFile(r.log)
	if err != nil {
		r.t.Fatal(err)
	}
	above := regexp.MustCompile(`"level":"(INFO|WARN|ERROR)`)
	for line := range strings.Lines(string(content)) {
		if above.MatchString(line) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}
