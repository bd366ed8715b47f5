// Package readers serves the state of a cluster to consoles (U-41): once as a whole, or as a stream of changes. The
// model is computed once for all readers, at most once a second and only while somebody reads. Planning waits for none
// of them.
package readers

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"

	"github.com/joiner-autoscaler/joiner/internal/engine"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/readmodel"
)

const (
	// every is the least time between two changes, beatEvery the time between signs of life on a stream.
	every     = time.Second
	beatEvery = 10 * time.Second
	// mostReaders bounds the streams at a time.
	mostReaders = 32
	// mostBacklog is how many bytes may wait for a reader before it is dropped. The first snapshot does not count.
	mostBacklog = 1 << 20
	// remembered is how many changes are kept for readers that resume.
	remembered = 256
	// staysEvery is how often, at most, the engine is asked which nodes stay and why: it has to plan for that. After
	// an answer the pause is at least staysShare times as long as the answer took.
	staysEvery = 10 * time.Second
	staysShare = 20
	// staysHold is the age from which an answer no longer counts as current.
	staysHold = 5 * time.Minute
)

// Config configures Readers.
type Config struct {
	// Input returns the current input of a model, without Stays.
	Input func(context.Context) (readmodel.Input, error)
	// Stays returns the standing of the nodes that should go; nil for readmodel.StaysOf.
	Stays func(*cluster.Snapshot, engine.Terms) map[string]engine.Standing
	// Standby returns why this process has nothing to say, "" when it leads.
	Standby func(context.Context) string
	// Epoch distinguishes the streams of one process from those of another.
	Epoch string
	Now   func() time.Time
	Log   logr.Logger
}

// Readers computes the model and sends it. One goroutine, that of Start, owns everything below.
type Readers struct {
	config Config
	asks   chan ask
	leaves chan *reader
	ended  chan struct{} // closed once Start has returned
	busy   chan struct{} // held while the engine is asked for details, one request at a time

	current *published
	changes []change // the newest last
	streams map[*reader]bool

	stays      map[string]engine.Standing
	staysAt    time.Time
	staysNext  time.Time
	staysAsked bool
	stayed     chan stayAnswer
	packer     *flate.Writer
	computed   int // how many models were computed
}

// published is the last model that was sent.
type published struct {
	input    readmodel.Input
	sheet    *readmodel.Sheet
	number   uint64
	at       time.Time
	fresh    bool // the model contains all input so far
	snapshot *frame
	delta    *frame // the change that led to it; nil for the first
}

// change leads from one model to the next. It is kept packed, which is a tenth of the size or less.
type change struct {
	number uint64 // of the model that it leads to
	frame  *frame
}

type stayAnswer struct {
	stays map[string]engine.Standing
	took  time.Duration
}

// ask asks for the current model. With a reader, the reader gets all later changes.
type ask struct {
	since  string
	reader *reader
	answer chan answer
}

// answer is a model, or the changes that lead to it from the asker's model.
type answer struct {
	err      error
	full     bool // there are too many readers
	input    readmodel.Input
	snapshot []byte
	resumes  bool
	deltas   [][]byte
	id       string
}

// New returns Readers. They send nothing before Start.
func New(config Config) *Readers {
	if config.Stays == nil {
		config.Stays = readmodel.StaysOf
	}
	packer, _ := flate.NewWriter(nil, flate.DefaultCompression) // fails only for an unknown level
	return &Readers{config: config, asks: make(chan ask), leaves: make(chan *reader), ended: make(chan struct{}),
		busy: make(chan struct{}, 1), streams: map[*reader]bool{}, stayed: make(chan stayAnswer, 1), packer: packer}
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader has something to say.
func (r *Readers) NeedLeaderElection() bool { return true }

// Start serves readers until ctx ends.
func (r *Readers) Start(ctx context.Context) error {
	defer close(r.ended)
	ticker, beat := time.NewTicker(every), time.NewTicker(beatEvery)
	defer ticker.Stop()
	defer beat.Stop()
	ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case a := <-r.asks:
			a.answer <- r.told(ctx, a)
			if len(r.streams) == 1 && r.streams[a.reader] {
				ticker.Reset(every)
			}
		case left := <-r.leaves:
			delete(r.streams, left)
			if len(r.streams) == 0 {
				ticker.Stop()
			}
		case found := <-r.stayed:
			now := r.config.Now()
			r.stays, r.staysAt, r.staysAsked = found.stays, now, false
			r.staysNext = now.Add(max(staysEvery, staysShare*found.took))
			if r.current != nil {
				r.current.fresh = false
			}
		case <-ticker.C:
			if len(r.streams) > 0 {
				r.tick(ctx)
			}
		case <-beat.C:
			r.beat()
		}
	}
}

// told answers an ask.
func (r *Readers) told(ctx context.Context, a ask) answer {
	if a.reader != nil && len(r.streams) >= mostReaders {
		return answer{full: true}
	}
	if r.current == nil || r.config.Now().Sub(r.current.at) >= every {
		if err := r.make(ctx); err != nil {
			return answer{err: err}
		}
	}
	now := answer{input: r.current.input, id: r.id()}
	missed, resumes := r.since(a.since)
	now.resumes = resumes
	frames := make([]*frame, 0, len(missed))
	for _, c := range missed {
		f, err := c.frame.unpacked()
		if err != nil {
			return answer{err: err}
		}
		frames, now.deltas = append(frames, f), append(now.deltas, f.data())
	}
	if !resumes {
		if now.err = r.whole(); now.err != nil {
			return now
		}
		now.snapshot = r.current.snapshot.data()
	}
	if a.reader == nil {
		return now
	}
	r.streams[a.reader] = true
	if !resumes {
		a.reader.send(r.current.snapshot, true)
	}
	for _, f := range frames {
		a.reader.send(f, true)
	}
	a.reader.send(r.beatFrame(), true)
	return now
}

// whole makes the snapshot of the current model, unless it exists.
func (r *Readers) whole() error {
	if r.current.snapshot != nil {
		return nil
	}
	data, err := r.current.sheet.Snapshot(r.id())
	if err != nil {
		return fmt.Errorf("writing the snapshot: %w", err)
	}
	r.current.snapshot = r.framed("snapshot", r.id(), data)
	return nil
}

func (r *Readers) id() string { return r.config.Epoch + "." + strconv.FormatUint(r.current.number, 10) }

// since returns the changes since the model that a reader has; false when they are no longer known.
func (r *Readers) since(id string) ([]change, bool) {
	epoch, number, found := strings.Cut(id, ".")
	has, err := strconv.ParseUint(number, 10, 64)
	if !found || err != nil || epoch != r.config.Epoch || has > r.current.number {
		return nil, false
	}
	behind := r.current.number - has
	if behind > uint64(len(r.changes)) {
		return nil, false
	}
	return r.changes[len(r.changes)-int(behind):], true
}

// tick sends all readers what has changed.
func (r *Readers) tick(ctx context.Context) {
	before := r.current.number
	if err := r.make(ctx); err != nil {
		if ctx.Err() == nil {
			r.config.Log.Info("consoles are not told what is new", "reason", err.Error())
		}
		return
	}
	if r.current.number == before {
		return
	}
	for reader := range r.streams {
		reader.send(r.current.delta, false)
	}
}

func (r *Readers) beat() {
	for reader := range r.streams {
		reader.send(r.beatFrame(), false)
	}
}

func (r *Readers) beatFrame() *frame {
	data := fmt.Appendf(nil, `{"now":%d,"id":%q}`, r.config.Now().Unix(), r.id())
	return r.framed("beat", "", data)
}

// make computes the current model, unless nothing came in since the last one.
func (r *Readers) make(ctx context.Context) error {
	in, err := r.config.Input(ctx)
	if err != nil {
		return err
	}
	now := r.config.Now()
	r.askStays(in, now)
	if r.stays != nil && now.Sub(r.staysAt) > max(staysHold, 2*r.staysNext.Sub(r.staysAt)) {
		r.stays = nil
	}
	in.Stays = r.stays
	if c := r.current; c != nil && c.fresh && c.input.Snapshot == in.Snapshot && c.input.Paused == in.Paused &&
		c.input.Plan.BasedOn == in.Plan.BasedOn && (c.input.Stays == nil) == (in.Stays == nil) {
		c.at, c.input = now, in
		return nil
	}
	r.computed++
	sheet, err := readmodel.Write(readmodel.Of(in))
	if err != nil {
		return err
	}
	next := &published{input: in, sheet: sheet, number: 1, at: now, fresh: true}
	if r.current != nil {
		next.number = r.current.number + 1
		id := r.config.Epoch + "." + strconv.FormatUint(next.number, 10)
		data, different, err := sheet.Delta(r.current.sheet, r.id(), id)
		if err != nil {
			return err
		}
		if !different {
			r.current.input, r.current.at, r.current.fresh = in, now, true
			return nil
		}
		if len(r.changes) == remembered {
			r.changes = append(r.changes[:0:0], r.changes[1:]...)
		}
		next.delta = r.framed("delta", id, data)
		r.changes = append(r.changes, change{number: next.number, frame: &frame{packed: next.delta.packed}})
	}
	r.current = next
	return nil
}

// askStays asks in the background which nodes stay, if that is due and not being asked already.
func (r *Readers) askStays(in readmodel.Input, now time.Time) {
	if r.staysAsked || now.Before(r.staysNext) {
		return
	}
	r.staysAsked = true
	go func() {
		stays := r.config.Stays(in.Snapshot, in.Terms)
		r.stayed <- stayAnswer{stays, r.config.Now().Sub(now)}
	}()
}

// frame is an event as it goes over the wire: plain, and packed. Packed frames one after the other form one stream. It
// is made once for all readers.
type frame struct{ plain, packed []byte }

// unpacked returns the frame with its plain form.
func (f *frame) unpacked() (*frame, error) {
	if f.plain != nil {
		return f, nil
	}
	plain, err := io.ReadAll(flate.NewReader(bytes.NewReader(f.packed)))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) { // the stream does not end after a frame
		return nil, fmt.Errorf("reading what was remembered: %w", err)
	}
	return &frame{plain: plain, packed: f.packed}, nil
}

// dataBegins precedes the data of an event.
const dataBegins = "\ndata: "

// data returns the data of the event, without its framing.
func (f *frame) data() []byte {
	_, data, _ := bytes.Cut(f.plain, []byte(dataBegins))
	return bytes.TrimSuffix(data, []byte("\n\n"))
}

func (r *Readers) framed(event, id string, data []byte) *frame {
	var text, packed bytes.Buffer
	if id != "" {
		fmt.Fprintf(&text, "id: %s\n", id)
	}
	fmt.Fprintf(&text, "event: %s\ndata: %s\n\n", event, data)
	r.packer.Reset(&packed)
	// Writing to a buffer does not fail.
	_, _ = r.packer.Write(text.Bytes())
	_ = r.packer.Flush()
	return &frame{plain: text.Bytes(), packed: packed.Bytes()}
}
