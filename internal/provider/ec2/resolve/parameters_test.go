package resolve_test

import (
	"testing"
	"time"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

// complete gives AL2023 all its variants, so that nothing is missing.
func (w *world) complete() {
	w.release("x86_64/neuron", "v1")
	w.release("arm64/nvidia", "v1")
}

// asks resolves every minute for some time, and returns how many parameters were requested.
func (w *world) asks(d time.Duration) int {
	w.Forget()
	for range int(d / (10 * time.Minute)) {
		w.Advance(10 * time.Minute)
		w.resolve()
	}
	return w.Counts()["ssm:GetParameter"]
}

// E-08: a value holds a day, a pinned one for ever.
func TestHowLongParametersHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.complete()
	w.class("a", nil)
	w.ready()
	if n := w.asks(23 * time.Hour); n != 0 {
		t.Errorf("asked %d times within a day", n)
	}
	if n := w.asks(48 * time.Hour); n != 2*5 {
		t.Errorf("asked %d times in two days, want twice for each of five parameters", n)
	}
	pinned := w.AddImage(ec2test.Image{Name: "pinned"})
	w.SetParameter("/mine:3", pinned.ID)
	w.classes = nil
	w.class("pinned", terms(awsv1.AMISelectorTerm{SSMParameter: "/mine:3"}))
	w.ready()
	if n := w.asks(72 * time.Hour); n != 0 {
		t.Errorf("a pinned parameter was asked for %d times in three days", n)
	}
}

// E-08: a release whose image becomes deprecated, or is gone, is replaced within half an hour.
func TestAWithdrawnReleaseIsLeftSoon(t *testing.T) {
	t.Parallel()
	for name, withdraw := range map[string]func(*ec2test.Image, time.Time){
		"deprecated": func(i *ec2test.Image, now time.Time) { i.Deprecated = now },
		"disabled":   func(i *ec2test.Image, _ time.Time) { i.State = "disabled" },
	} {
		w := newWorld(t)
		class := w.class("a", nil)
		bad := w.release("x86_64/standard", "v2")
		w.ready()
		w.Advance(5 * time.Hour)
		w.resolve()
		withdraw(&bad, w.Now())
		w.AddImage(bad)
		w.SetParameter(al2023+"x86_64/standard/recommended/image_id", w.AddImage(ec2test.Image{Name: "again"}).ID)
		for range 3 {
			w.Advance(10 * time.Minute)
			w.resolve()
		}
		if ami, _ := resolve.ImageFor(class.Status.AMIs, "amd64", ""); ami.Name != "again" {
			t.Errorf("%s: %s after half an hour", name, amis(class))
		}
	}
}

// E-08, E-03: one refused parameter fails alone, and a known value survives failures.
func TestARefusedParameterFailsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	theirs := "arn:aws:ssm:us-east-1:999988887777:parameter/theirs"
	w.faults(ec2test.Faults{Deny: []ec2test.Denial{{Action: "ssm:GetParameter", Resource: "*999988887777*"}}})
	w.complete()
	good := w.class("good", nil)
	bad := w.class("bad", terms(awsv1.AMISelectorTerm{SSMParameter: theirs}))
	w.resolve()
	w.expect(good, resolve.AMIsReady, "True", resolve.AMIsReady)
	w.expect(bad, resolve.AMIsReady, "Unknown", resolve.Unauthorized, "not authorized to perform: ssm:GetParameter")
	w.faults(throttled("ssm:GetParameter"))
	w.Advance(25 * time.Hour)
	w.resolve()
	w.expect(good, resolve.AMIsReady, "True", resolve.AMIsReady, "last seen 25 h ago")
	w.Advance(23*time.Hour + time.Minute)
	w.resolve()
	w.expect(good, resolve.AMIsReady, "Unknown", resolve.Stale)
}
