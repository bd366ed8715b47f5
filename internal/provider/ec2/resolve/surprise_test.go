package resolve_test

import (
	"strings"
	"testing"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/ec2test"
	"github.com/joiner-autoscaler/joiner/internal/provider/ec2/resolve"
)

// changed prints the changes of a class: old→new.
func (w *world) changed(name string) string {
	var list []string
	for _, c := range w.results[name].AMIChanges {
		list = append(list, c.Old.Name+"→"+c.New.Name)
	}
	return strings.Join(list, " ")
}

// E-10: a change of image is reported once, with its date and how many nodes will drift; the first images are no
// change.
func TestAnotherImageIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	class := w.class("a", nil)
	w.resolve()
	if got := w.changed("a"); got != "" {
		t.Errorf("the first images are told as a change: %s", got)
	}
	old := class.Status.AMIs[0]
	w.Advance(24 * time.Hour)
	next := w.release("x86_64/nvidia", "v2")
	w.resolve()
	if got := w.changed("a"); got != "al2023-x86_64-nvidia-v1→al2023-x86_64-nvidia-v2" {
		t.Errorf("changed: %s", got)
	}
	before := w.results["a"].AMIChanges[0].Old.ID
	nodes := func(id string) int { return map[string]int{before: 7}[id] }
	text := resolve.AMIChangedText(w.results["a"].AMIChanges, nodes)
	for _, part := range []string{
		"al2023-x86_64-nvidia-v1", next.ID + " (al2023-x86_64-nvidia-v2, made on 2026-11-03)", "7 nodes will drift",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in: %s", part, text)
		}
	}
	w.Advance(time.Minute)
	w.resolve()
	if got := w.changed("a"); got != "" {
		t.Errorf("told again: %s", got)
	}
	many := make([]resolve.AMIChange, 40)
	for i := range many {
		many[i] = resolve.AMIChange{Old: awsv1.AMI{ID: "ami-0123456789abcdef0", Name: strings.Repeat("n", 128)},
			New: old}
	}
	if n := len(resolve.AMIChangedText(many, nodes)); n > 1024 {
		t.Errorf("an event of %d characters", n)
	}
	many[30].Old = awsv1.AMI{ID: before, Name: "that of seven nodes"}
	if text := resolve.AMIChangedText(many, nodes); !strings.HasPrefix(text, before+" (that of seven nodes)") {
		t.Errorf("the image that nodes have is not named first: %s", text)
	}
}

// aged is a world with a class that takes images only when they are three days old, and a new image.
func aged(t *testing.T, age string) (*world, *awsv1.EC2NodeClass) {
	w := newWorld(t)
	class := w.class("a", nil)
	w.ready()
	class.Annotations = map[string]string{resolve.MinAgeAnnotation: age}
	w.Advance(time.Hour)
	w.release("x86_64/standard", "v2")
	w.Advance(25 * time.Hour) // the parameter is asked for again
	w.resolve()
	return w, class
}

func (w *world) has(class *awsv1.EC2NodeClass, when, want string) {
	w.t.Helper()
	if ami, _ := resolve.ImageFor(class.Status.AMIs, "amd64", ""); ami.Name != "al2023-x86_64-standard-"+want {
		w.t.Errorf("%s: the class has %s, want version %s", when, ami.Name, want)
	}
}

// E-10: an image that is too new waits, even after a restart; then it is taken.
func TestAnImageComesOfAge(t *testing.T) {
	t.Parallel()
	w, class := aged(t, "72h")
	w.has(class, "after a day", "v1")
	w.expect(class, resolve.AMIsReady, "True", resolve.AMIsReady,
		"(al2023-x86_64-standard-v2) of 2026-11-02 takes the place of", "from 2026-11-05T10:01:00Z on")
	if got := w.changed("a"); got != "" {
		t.Errorf("told before its time: %s", got)
	}
	w.restart()
	w.Advance(46 * time.Hour)
	w.resolve()
	w.has(class, "a new process", "v1")
	w.Advance(time.Hour)
	w.resolve()
	w.has(class, "after three days", "v2")
	if got := w.changed("a"); got != "al2023-x86_64-standard-v1→al2023-x86_64-standard-v2" {
		t.Errorf("changed: %s", got)
	}
}

// pin has a class ask for version v2, for the same types as before.
func (w *world) pin(class *awsv1.EC2NodeClass) {
	i := w.AddImage(ec2test.Image{Name: "al2023-x86_64-standard-v2"})
	w.SetParameter(al2023+"x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.33-v2/image_id", i.ID)
	edit(class, terms(awsv1.AMISelectorTerm{Alias: "al2023@v2"}))
}

// E-10: the old image does not stay when it is deprecated or gone, nor when the user wants another.
func TestWhenAnImageDoesNotWait(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(*world, *awsv1.EC2NodeClass){
		"deprecated": func(w *world, class *awsv1.EC2NodeClass) {
			old, _ := resolve.ImageFor(class.Status.AMIs, "amd64", "")
			i := w.release("x86_64/standard", "v1")
			i.ID, i.Deprecated = old.ID, w.Now()
			w.AddImage(i)
		},
		"gone": func(w *world, class *awsv1.EC2NodeClass) {
			old, _ := resolve.ImageFor(class.Status.AMIs, "amd64", "")
			i := w.release("x86_64/standard", "v1")
			i.ID, i.State = old.ID, "disabled"
			w.AddImage(i)
		},
		"by the user": func(w *world, class *awsv1.EC2NodeClass) { w.pin(class) },
		"by the user, and a new process": func(w *world, class *awsv1.EC2NodeClass) {
			w.pin(class)
			w.restart()
		},
	} {
		w, class := aged(t, "72h")
		w.has(class, name+", before", "v1")
		act(w, class)
		w.Advance(time.Minute)
		w.resolve()
		w.has(class, name, "v2")
	}
	w, class := aged(t, "72h")
	edit(class, func(s *awsv1.EC2NodeClassSpec) { s.Tags = map[string]string{"team": "a"} })
	w.Advance(time.Minute)
	w.resolve()
	w.has(class, "after an edit of something else", "v1")
}

// E-10: an invalid annotation is named; meanwhile images do not change.
func TestAnAgeThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, age := range []string{"3 days", "-1h", ""} {
		w, class := aged(t, age)
		w.expect(class, karpenterv1.ConditionTypeValidationSucceeded, "False", resolve.AMIMinAgeInvalid, `"`+age+`"`,
			"such as 72h")
		w.expect(class, ready, "False", resolve.AMIMinAgeInvalid)
		w.has(class, "with the age "+age, "v1")
	}
}
