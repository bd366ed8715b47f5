package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/joiner-autoscaler/joiner/localcluster/attack"
)

// event is a line of go test -json.
type event struct {
	Action  string  // run, output, pass, fail, skip and others
	Test    string  // with its subtests behind slashes; "" for the package
	Output  string  // one line
	Elapsed float64 // seconds
}

// limit bounds the tests of one package.
const limit = time.Hour

// play runs tests of a package and passes their output to the teller.
func play(ctx context.Context, home string, tests []string, t *teller) error {
	pattern := "^(" + strings.Join(tests, "|") + ")$"
	command := exec.CommandContext(ctx, "go", "test", "-json", "-trimpath", "-count=1", "-timeout="+limit.String(),
		"-run", pattern, home)
	command.Env = append(os.Environ(), attack.Variable+"=1")
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(output)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // output of the go command itself
		}
		t.hears(e)
	}
	err = errors.Join(lines.Err(), command.Wait())
	var exit *exec.ExitError
	if errors.As(err, &exit) && ctx.Err() == nil {
		err = nil // a test failed, which the teller knows or will be told
	}
	if err != nil {
		return fmt.Errorf("the tests of %s: %w", home, err)
	}
	t.missing(tests)
	return nil
}
