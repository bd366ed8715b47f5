package v1

import (
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestDurationsReadUnitsAndKeepTheirText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0s":         0,
		"90s":        90 * time.Second,
		"1h30m":      90 * time.Minute,
		"1m1h":       61 * time.Minute,
		"007m":       7 * time.Minute,
		"1d":         24 * time.Hour, // the example in the API's source
		"30d":        720 * time.Hour,
		"16h0m0s":    16 * time.Hour,
		"1d1h1m1s":   25*time.Hour + time.Minute + time.Second,
		"106751d":    106751 * 24 * time.Hour,
		"106752d":    longest,
		"106751d24h": longest,
		"99999999999999999999999999999999999999h": longest,
	} {
		input := `"` + text + `"`
		var plain Duration
		if err := json.Unmarshal([]byte(input), &plain); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if plain.Duration != want {
			t.Errorf("%s is read as %s, want %s", text, plain.Duration, want)
		}
		if got, err := json.Marshal(plain); err != nil || string(got) != input {
			t.Errorf("%s is written as %s, error %v", text, got, err)
		}
		var nillable NillableDuration
		if err := json.Unmarshal([]byte(input), &nillable); err != nil || nillable.Duration == nil ||
			*nillable.Duration != want {
			t.Errorf("%s as NillableDuration: %v, error %v", text, nillable, err)
		}
		if got, err := json.Marshal(nillable); err != nil || string(got) != input {
			t.Errorf("%s as NillableDuration is written as %s, error %v", text, got, err)
		}
	}
}

func TestBadDurationsAreErrorsThatNameValueAndRule(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`""`, `"1.5h"`, `"-1h"`, `"+1h"`, `"1"`, `"h"`, `"1w"`, `"1 h"`, `"1h "`, `"never"`,
		`"Never1h"`, `"1hh"`, `"1ms"`, `5`, `{}`, `[]`, `true`, `"`} {
		var plain Duration
		checkRefused(t, text, plain.UnmarshalJSON([]byte(text)))
		var nillable NillableDuration
		checkRefused(t, text, nillable.UnmarshalJSON([]byte(text)))
		if plain != (Duration{}) || nillable != (NillableDuration{}) {
			t.Errorf("%s changed the value although it was refused", text)
		}
	}
	var plain Duration
	checkRefused(t, `"Never"`, plain.UnmarshalJSON([]byte(`"Never"`)))
	var nillable NillableDuration
	if err := nillable.UnmarshalJSON([]byte(`"1.5h"`)); !strings.Contains(err.Error(), `or "Never"`) {
		t.Errorf("error %q does not say that Never is allowed", err)
	}
}

func checkRefused(t *testing.T, text string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("%s is accepted", text)
		return
	}
	if !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), "must be") {
		t.Errorf("%s: the error %q does not name the value and what is allowed", text, err)
	}
}

func TestNeverIsNilAndTheZeroValue(t *testing.T) {
	t.Parallel()
	length := time.Hour
	value := NillableDuration{Duration: &length}
	if err := json.Unmarshal([]byte(`"Never"`), &value); err != nil || value.Duration != nil {
		t.Fatalf("Never is read as %v, error %v", value, err)
	}
	for _, never := range []NillableDuration{value, {}, {Raw: "1h"}} {
		if got, err := json.Marshal(never); err != nil || string(got) != `"Never"` {
			t.Errorf("%#v is written as %s, error %v", never, got, err)
		}
	}
}

func TestNullLeavesADurationAsItIs(t *testing.T) {
	t.Parallel()
	plain := Duration{Duration: time.Hour, Raw: "1h"}
	nillable := NillableDuration{Duration: &plain.Duration, Raw: "1h"}
	for _, value := range []json.Unmarshaler{&plain, &nillable} {
		if err := value.UnmarshalJSON([]byte("null")); err != nil {
			t.Error(err)
		}
	}
	if plain.Raw != "1h" || nillable.Raw != "1h" {
		t.Errorf("null changed the values to %v and %v", plain, nillable)
	}
}

func TestDurationsMadeInGoAreWrittenInWholeUnits(t *testing.T) {
	t.Parallel()
	for want, value := range map[string]Duration{
		`"0s"`:             {},
		`"720h"`:           {Duration: 720 * time.Hour},
		`"1h30m"`:          {Duration: 90 * time.Minute},
		`"1h1s"`:           {Duration: time.Hour + time.Second},
		`"2h"`:             {Duration: 2 * time.Hour, Raw: "1h"}, // a stale text does not win
		`"3h"`:             {Duration: 3 * time.Hour, Raw: "bad"},
		`"2562047h47m16s"`: {Duration: longest},
	} {
		if got, err := json.Marshal(value); err != nil || string(got) != want {
			t.Errorf("%#v is written as %s, want %s; error %v", value, got, want, err)
		}
	}
	for _, length := range []time.Duration{-time.Hour, time.Millisecond, math.MinInt64, math.MaxInt64} {
		if got, err := json.Marshal(Duration{Duration: length}); err == nil {
			t.Errorf("%s is written as %s, although the API has no text for it", length, got)
		}
	}
}

// FuzzDuration: reading never panics, accepts what the pattern of the CRD accepts and nothing else, and
// what was read is written back letter for letter.
func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"720h", "1d", "Never", "1.5h", "", "99999999999999999999s", "1h 1m", "\x00", "١h"} {
		f.Add(seed)
	}
	allowed := regexp.MustCompile(`\A([0-9]+[smhd])+\z`)
	f.Fuzz(func(t *testing.T, text string) {
		input, err := json.Marshal(text)
		if err != nil {
			return
		}
		var plain Duration
		if err := plain.UnmarshalJSON(input); (err == nil) != allowed.MatchString(text) {
			t.Fatalf("%q: error %v does not agree with the pattern", text, err)
		}
		var nillable NillableDuration
		err = nillable.UnmarshalJSON(input)
		if (err == nil) != (allowed.MatchString(text) || text == Never) {
			t.Fatalf("%q as NillableDuration: error %v does not agree with the pattern", text, err)
		}
		if err != nil {
			return
		}
		if got, err := json.Marshal(nillable); err != nil || string(got) != string(input) {
			t.Fatalf("%q is written as %s, error %v", text, got, err)
		}
		if nillable.Duration != nil && (*nillable.Duration < 0 || *nillable.Duration > longest) {
			t.Fatalf("%q is read as %s", text, *nillable.Duration)
		}
	})
}

// FuzzDurationJSON: arbitrary bytes are an error or a value, never a panic.
func FuzzDurationJSON(f *testing.F) {
	f.Add([]byte(`"1h"`))
	f.Add([]byte(`{"a":`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		var plain Duration
		var nillable NillableDuration
		_ = plain.UnmarshalJSON(data)
		_ = nillable.UnmarshalJSON(data)
	})
}
