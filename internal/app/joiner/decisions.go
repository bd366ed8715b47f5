package joiner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/joiner-autoscaler/joiner/internal/app/serve"
	"github.com/joiner-autoscaler/joiner/internal/apply"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/history"
)

// Bounds of what ConfigMaps hold of the history (U-32).
const (
	mostPage     = 128 << 10
	mostHistory  = history.Slots * mostPage
	leastHistory = history.Slots << 10 // below that a page would hold a decision or two
)

// historyEvery is the least time between two writes. lastWrite bounds the write at the end.
const (
	historyEvery = time.Minute
	lastWrite    = 5 * time.Second
)

// historyFaults returns an error for each bad setting of the history.
func (c Config) historyFaults() (faults []error) {
	if c.HistoryRetention < 0 {
		faults = append(faults, fmt.Errorf("--history-retention is %s: want a duration, or 0 to keep decisions in "+
			"memory only", c.HistoryRetention))
	}
	if size := c.HistoryMaxSize; size != 0 && (size < leastHistory || size > mostHistory) {
		faults = append(faults,
			fmt.Errorf("--history-max-size is %d: want bytes from %d to %d, or 0 to keep decisions in "+
				"memory only", size, leastHistory, mostHistory))
	}
	return faults
}

// decisions keeps the history of decisions in memory, and in ConfigMaps while this process leads (U-32). Whoever
// decides never waits for a call: a decision goes into memory, and is written later.
type decisions struct {
	client    client.Client
	live      client.Reader
	namespace string
	pageSize  int // 0: in memory only
	now       func() time.Time
	every     time.Duration
	log       logr.Logger
	news      chan struct{} // has room for one

	mutex sync.Mutex // guards what is below
	kept  *history.Log
	notes []string // what is missing, and why

	versions map[int]string // of the ConfigMaps as this process knows them, by slot; run alone has it
	refused  bool           // the missing right has been logged
}

func newDecisions(config Config, c client.Client, live client.Reader, log logr.Logger) *decisions {
	retention, size := config.HistoryRetention, config.HistoryMaxSize/history.Slots
	if retention == 0 {
		size = 0
	}
	origin := fnv.New64a()
	_, _ = origin.Write([]byte(uuid.NewUUID())) // a hash takes everything
	return &decisions{client: c, live: live, namespace: config.SystemNamespace, pageSize: size, now: time.Now,
		every: historyEvery, log: log, news: make(chan struct{}, 1), versions: map[int]string{},
		kept: history.New(retention, origin.Sum64())}
}

// decided records a decision and returns its ID. It logs one line for each (U-14), apart from decisions that the
// applier logs itself, with that ID.
func (d *decisions) decided(what apply.Decision, about apply.About) string {
	r := history.Record{Verb: string(what.Verb), Cause: what.Cause, Outcome: string(what.Outcome),
		NodePool:  about.Pool,
		NodeClaim: about.Claim, Node: about.Node, Replaces: about.Replaces, Pods: len(about.Pods),
		Types: about.Types[:min(len(about.Types), 3)], TypeCount: len(about.Types),
		Before: dollars(about.Before), After: dollars(about.After), BasedOn: about.BasedOn, Why: about.Why}
	for _, pod := range about.Pods[:min(len(about.Pods), history.MostPodNames)] {
		r.PodNames = append(r.PodNames, pod.String())
	}
	id, isNew := d.add(r)
	own := what.Outcome == apply.Planned || what.Verb != apply.Remove && what.Outcome == apply.Done
	if isNew && !own {
		d.log.Info("decided", "decision", id, "verb", what.Verb, "cause", what.Cause, "outcome", what.Outcome,
			"pool", about.Pool, "claim", about.Claim, "node", about.Node, "pods", len(about.Pods), "why", about.Why)
	}
	return id
}

func dollars(price resources.Money) *float64 {
	if price.OfNode() == resources.Unpriced {
		return nil
	}
	return new(price.Dollars())
}

func (d *decisions) add(r history.Record) (string, bool) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	id, isNew := d.kept.Add(r, d.now())
	if d.kept.Dirty() {
		select {
		case d.news <- struct{}{}:
		default: // a wake-up is already waiting
		}
	}
	return id, isNew
}

// Start reads what the previous leader left, and writes new decisions until ctx ends. The manager runs it while this
// process leads. Planning does not wait for it.
func (d *decisions) Start(ctx context.Context) error {
	if d.pageSize == 0 {
		return nil
	}
	for !d.load(ctx) {
		if !wait(ctx, d.every) {
			return nil
		}
	}
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-d.news:
			d.write(ctx)
			wait(ctx, d.every)
		}
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	d.write(ending)
	return nil
}

// wait waits for a while, and reports whether ctx goes on.
func wait(ctx context.Context, while time.Duration) bool {
	timer := time.NewTimer(while)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// load reads all pages, and puts them before what was decided since the start. If it returns false, the caller should
// try again; nothing is written until then.
func (d *decisions) load(ctx context.Context) bool {
	var pages []history.Page
	skipped := 0
	for slot := range history.Slots {
		var found corev1.ConfigMap
		err := d.live.Get(ctx, client.ObjectKey{Namespace: d.namespace, Name: history.ConfigMap(slot)}, &found)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			d.failed("reading", err)
			return false
		}
		d.versions[slot] = found.ResourceVersion
		page, bad, err := history.Unpack(found.BinaryData[history.Key])
		if err != nil || page.Slot() != slot {
			d.log.Info("a part of the history cannot be read, and will be written anew", "configMap", found.Name)
			skipped++
			continue
		}
		pages, skipped = append(pages, page), skipped+bad
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	now := d.now()
	if len(pages) > 0 {
		d.kept.Add(history.Record{Verb: history.VerbLead, Cause: "Started", Outcome: "done",
			Why: "another controller leads; the last minute before may be missing"}, now)
	}
	d.kept.Load(pages, now)
	d.notes = nil
	if skipped > 0 {
		d.notes = []string{fmt.Sprintf("%d entries could not be read, and were left out", skipped)}
	}
	return true
}

// write writes what is new. After a failure it is tried again with the next decision, or after a while.
func (d *decisions) write(ctx context.Context) {
	d.mutex.Lock()
	dirty := d.kept.Dirty()
	open, changes := d.kept.Open()
	d.mutex.Unlock()
	if !dirty {
		return
	}
	packed, err := history.Pack(open, d.pageSize)
	for i := 0; err == nil && i < len(packed); i++ {
		if err = d.put(ctx, packed[i]); err != nil {
			break
		}
		d.mutex.Lock()
		if i == len(packed)-1 {
			d.kept.Stored(changes)
			d.notes = slices.DeleteFunc(d.notes, func(note string) bool { return note == notWritten })
		} else {
			d.kept.Closed(packed[i].Sequence, packed[i].Records[len(packed[i].Records)-1].ID)
		}
		d.mutex.Unlock()
	}
	if err == nil {
		return
	}
	d.failed("writing", err)
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// notWritten is the note of answers while decisions cannot be written.
const notWritten = "decisions are in the controller's memory only: they cannot be written to its ConfigMaps"

// failed logs a failed call; a missing right only once.
func (d *decisions) failed(doing string, err error) {
	d.mutex.Lock()
	if !slices.Contains(d.notes, notWritten) {
		d.notes = append(d.notes, notWritten)
	}
	d.mutex.Unlock()
	if forbidden := apierrors.IsForbidden(err); !forbidden || !d.refused {
		d.refused = d.refused || forbidden
		d.log.Info("the history is kept in memory only, until its ConfigMaps can be used", "doing", doing,
			"namespace", d.namespace, "reason", serve.OneLine(err))
	}
}

// put writes a page to its ConfigMap.
func (d *decisions) put(ctx context.Context, p history.Packed) error {
	slot := p.Slot()
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: history.ConfigMap(slot),
			ResourceVersion: d.versions[slot]},
		BinaryData: map[string][]byte{history.Key: p.Data},
	}
	var err error
	if object.ResourceVersion == "" {
		err = d.client.Create(ctx, object)
	} else {
		err = d.client.Update(ctx, object)
	}
	switch {
	case err == nil:
		d.versions[slot] = object.ResourceVersion
		return nil
	case !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && !apierrors.IsNotFound(err):
		return err
	}
	return errors.Join(err, d.lookAgain(ctx, slot))
}

// lookAgain reads the version of a ConfigMap that somebody else has written, or whose answer was lost. The next write
// replaces its page.
func (d *decisions) lookAgain(ctx context.Context, slot int) error {
	var found corev1.ConfigMap
	err := d.live.Get(ctx, client.ObjectKey{Namespace: d.namespace, Name: history.ConfigMap(slot)}, &found)
	delete(d.versions, slot)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	d.versions[slot] = found.ResourceVersion
	return nil
}

// mostAnswered is the limit of an answer when the request gives none.
const mostAnswered = 20_000

// serve answers with the decisions that match a request, newest first.
func (d *decisions) serve(w http.ResponseWriter, r *http.Request) {
	filter, err := history.FromQuery(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if filter.Limit == 0 {
		filter.Limit = mostAnswered
	}
	d.mutex.Lock()
	records, notes := d.kept.Records(), slices.Clone(d.notes)
	d.mutex.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(history.Answer{Records: filter.Select(records), Notes: notes}); err != nil {
		d.log.V(1).Info("a history was not sent", "reason", err.Error())
	}
}
