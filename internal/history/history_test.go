package history

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

func start() time.Time { return time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC) }

// U-32: IDs sort by time and are never given twice, also when the clock stands or goes back.
func TestU32_IDsSortByTime(t *testing.T) {
	t.Parallel()
	l := New(0, 7)
	var ids []string
	for i := range 3000 {
		id, isNew := l.Add(Record{Verb: "launch", Outcome: "done"}, start().Add(-time.Duration(i/1500)*time.Second))
		if !isNew {
			t.Fatalf("record %d is not new", i)
		}
		ids = append(ids, id)
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Error("the IDs are not in order, or not unique")
	}
}

// U-32: what a page holds is read as it was; what is forged or broken is counted, and the rest is there.
func TestU32_APageIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	l, price := New(0, 1), 0.25
	for i := range 500 {
		l.Add(Record{Verb: "launch", Cause: "Pending", Outcome: "done", NodePool: "default",
			NodeClaim: fmt.Sprintf("default-%d", i), Pods: 1, PodNames: []string{fmt.Sprintf("shop/web-%d", i)},
			After: &price, Why: "line 1\nline 2\xff" + strings.Repeat("ä", i)},
			start().Add(time.Duration(i)*time.Second))
	}
	open, _ := l.Open()
	const limit = 1 << 10
	packed, err := Pack(open, limit)
	if err != nil || len(packed) < 2 {
		t.Fatalf("%d pages, the first of %d bytes with %d of %d records, error %v; want several", len(packed),
			len(packed[0].Data), len(packed[0].Records), len(open.Records), err)
	}
	var read []Record
	for i, each := range packed {
		if len(each.Data) > limit || each.Sequence != uint64(i+1) {
			t.Errorf("page %d has number %d and %d bytes", i, each.Sequence, len(each.Data))
		}
		page, skipped, err := Unpack(each.Data)
		if err != nil || skipped > 0 {
			t.Fatalf("%d skipped, error %v", skipped, err)
		}
		read = append(read, page.Records...)
	}
	if !reflect.DeepEqual(read, open.Records) {
		t.Error("other records were read than were written")
	}
	forged := Page{Sequence: 3, Records: []Record{read[0], read[1]}}
	forged.Records[1].Why = "\x1b[2J"
	data, err := pack(forged)
	if err != nil {
		t.Fatal(err)
	}
	if page, skipped, err := Unpack(data); err != nil || skipped != 1 || len(page.Records) != 1 {
		t.Errorf("of a forged page %d are read, %d skipped, error %v", len(page.Records), skipped, err)
	}
	if _, _, err := Unpack([]byte("whatever")); err == nil {
		t.Error("what is no page is read")
	}
}

// U-32: the next leader has the stored records of the one before, followed by its own. It ties the end of a removal to
// the decision of the other leader.
func TestU32_TheNextLeaderGoesOn(t *testing.T) {
	t.Parallel()
	first := New(0, 1)
	planned, _ := first.Add(Record{Verb: "remove", Cause: "Empty", Outcome: "planned", NodeClaim: "a"}, start())
	page, changes := first.Open()
	first.Stored(changes)
	if first.Dirty() {
		t.Error("what is stored is not dirty")
	}
	next := New(0, 2)
	next.Add(Record{Verb: VerbLead}, start().Add(time.Second))
	if next.Dirty() {
		t.Error("a leader that has decided nothing has nothing to write")
	}
	next.Load([]Page{page}, start().Add(time.Second))
	next.Add(Record{Verb: "remove", Cause: "Empty", Outcome: "done", NodeClaim: "a"}, start().Add(time.Minute))
	all := next.Records()
	if len(all) != 3 || all[0].ID != planned || all[1].Verb != VerbLead || all[2].Of != planned || !next.Dirty() {
		t.Errorf("%+v", all)
	}
	open, _ := next.Open()
	next.Closed(open.Sequence, all[1].ID)
	if now, _ := next.Open(); now.Sequence != open.Sequence+1 || len(now.Records) != 1 || len(next.Records()) != 3 {
		t.Errorf("after a page was full: %+v", now)
	}
}

// U-32: what is older than the retention goes, and so does what is too much.
func TestU32_TheLogIsBounded(t *testing.T) {
	t.Parallel()
	l := New(time.Hour, 1)
	for i := range 100 {
		l.Add(Record{Verb: "launch", Outcome: "done"}, start().Add(time.Duration(i)*time.Minute))
	}
	if got := len(l.Records()); got != 61 {
		t.Errorf("%d records of an hour with one each minute", got)
	}
	l = New(0, 1)
	for range mostRecords + 5 {
		l.Add(Record{Verb: "launch", Outcome: "done"}, start())
	}
	for sequence := uint64(1); sequence < 3*Slots; sequence++ {
		id, _ := l.Add(Record{Verb: "launch", Outcome: "done"}, start())
		l.Closed(sequence, id)
	}
	if len(l.pages) > Slots {
		t.Errorf("%d pages for %d slots", len(l.pages), Slots)
	}
	if got := len(l.Records()); got > mostRecords {
		t.Errorf("%d records", got)
	}
}

// U-32: a refusal that comes in each round is one record that counts.
func TestU32_ARefusalThatRepeatsIsCounted(t *testing.T) {
	t.Parallel()
	l := New(0, 1)
	refused := Record{Verb: "launch", Cause: "Pending", Outcome: "refused", NodePool: "default", Why: "full"}
	first, _ := l.Add(refused, start())
	again, isNew := l.Add(refused, start().Add(time.Minute))
	all := l.Records()
	if isNew || again != first || len(all) != 1 || all[0].Times != 2 || !all[0].Last.After(all[0].Time) {
		t.Errorf("%+v", all)
	}
	if _, isNew = l.Add(refused, start().Add(sameWithin)); !isNew {
		t.Error("much later it is told anew")
	}
}

// U-25: each filter leaves what it names, newest first.
func TestU25_Filters(t *testing.T) {
	t.Parallel()
	records := []Record{
		{ID: "1", Time: start(), NodePool: "a", NodeClaim: "a-1", Cause: "Pending", PodNames: []string{"shop/web"}},
		{ID: "2", Time: start().Add(time.Hour), NodePool: "b", NodeClaim: "b-1", Node: "n1", Cause: "Empty"},
		{ID: "3", Time: start().Add(2 * time.Hour), NodePool: "b", Replaces: []string{"b-1"}, Cause: "Drifted"},
	}
	for _, c := range []struct {
		f    Filter
		want string
	}{
		{Filter{}, "321"}, {Filter{Since: start().Add(time.Minute)}, "32"}, {Filter{Until: start()}, "1"},
		{Filter{NodePool: "b"}, "32"}, {Filter{NodePool: "c"}, ""}, {Filter{Node: "n1"}, "2"},
		{Filter{Node: "b-1"}, "32"},
		{Filter{Pod: "shop/web"}, "1"}, {Filter{Cause: "empty"}, "2"}, {Filter{Limit: 1}, "3"},
	} {
		got := ""
		for _, r := range c.f.Select(records) {
			got += r.ID
		}
		if got != c.want {
			t.Errorf("%+v: %s, want %s", c.f, got, c.want)
		}
	}
}

// U-32: the end of a launch names the launch, also one by another process: its node has joined, or its NodeClaim was
// given up before. A later removal is not the end of a launch.
func TestU32_TheEndOfALaunchIsTiedToIt(t *testing.T) {
	t.Parallel()
	l := New(0, 1)
	of := map[string]string{}
	add := func(verb, claim, cause, outcome string) Record {
		t.Helper()
		id, _ := l.Add(Record{Verb: verb, NodeClaim: claim, Cause: cause, Outcome: outcome}, start())
		of[verb+" "+claim] = id
		all := l.Records()
		return all[len(all)-1]
	}
	add("launch", "a", "Pending", "done")
	add("replace", "b", "Drifted", "done")
	launched, replaced := of["launch a"], of["replace b"]
	open, _ := l.Open()
	l = New(0, 2)
	l.Load([]Page{open}, start())
	if r := add("launch", "a", "Launched", "joined"); r.Of != launched || r.Cause != "Pending" {
		t.Errorf("a has joined: %+v", r)
	}
	if r := add("remove", "b", "RegistrationTimeout", "done"); r.Of != replaced {
		t.Errorf("b was given up: %+v", r)
	}
	if r := add("launch", "c", "Launched", "joined"); r.Of != "" || r.Cause != "Launched" {
		t.Errorf("nobody knows of a launch of c: %+v", r)
	}
	planned := add("remove", "a", "Empty", "planned")
	if r := add("remove", "a", "Empty", "done"); planned.Of != "" || r.Of != planned.ID {
		t.Errorf("a went: %+v, planned by %+v", r, planned)
	}
}
