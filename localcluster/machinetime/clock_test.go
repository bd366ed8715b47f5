package machinetime

import (
	"testing"
	"time"
)

// Machine time passes at the speed of the machine, and not at all while the process does not run.
func TestMachineTime(t *testing.T) {
	t.Parallel()
	const alone = 10 * time.Millisecond
	begin := time.Now()
	clock := &Clock{best: alone, last: begin, began: begin, slow: 1}
	clock.note(begin.Add(time.Second), alone)
	if got := clock.Now(); got > tick+alone {
		t.Errorf("%s of machine time passed while the process did not run; want at most a tick", got)
	}
	before := clock.Now()
	clock.note(begin.Add(time.Second+tick+alone), alone)
	if got := clock.Now() - before; got != tick+alone {
		t.Errorf("%s of machine time on a free machine, want %s", got, tick+alone)
	}
	before = clock.Now()
	clock.note(begin.Add(time.Second+2*tick+5*alone), 4*alone)
	if got := clock.Now() - before; got != (tick+4*alone)/4 {
		t.Errorf("%s of machine time on a machine of a quarter of the speed, want %s", got, (tick+4*alone)/4)
	}
}
