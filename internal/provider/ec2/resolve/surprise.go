package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	awsv1 "github.com/joiner-autoscaler/joiner/api/karpenteraws/v1"
)

// MinAgeAnnotation on an EC2NodeClass is the minimum age of an image before it replaces another one (E-10).
const MinAgeAnnotation = "joiner.sh/ami-min-age"

// AMIChanged is the reason of the event for a new image.
const AMIChanged = "AMIChanged"

// mostChanges bounds the images in an event: its text has at most 1,024 characters.
const mostChanges = 3

// AMIChange is the replacement of an image by another one.
type AMIChange struct {
	Old awsv1.AMI
	New awsv1.AMI // its ID is "" when the old one has no successor
	// Created is when the new image was made; zero when EC2 does not say.
	Created time.Time
}

// minAge reads the annotation. An error names the value and what is allowed.
func minAge(class *awsv1.EC2NodeClass) (time.Duration, error) {
	text, given := class.Annotations[MinAgeAnnotation]
	if !given {
		return 0, nil
	}
	age, err := time.ParseDuration(text)
	if err != nil || age < 0 {
		return 0, fmt.Errorf("annotation %s is %q: give a duration such as 72h or 90m, not below 0", MinAgeAnnotation,
			text)
	}
	return age, nil
}

// heldBack returns the image of the status and a note while a newer image is not old enough yet; otherwise the newer
// one (E-10). It keeps the old image only if the terms are unchanged, so that changes by users take effect. While the
// annotation cannot be read, the image stays as well.
func (r *Resolver) heldBack(class *awsv1.EC2NodeClass, next pick, age time.Duration,
	now time.Time) (awsv1.AMI, string) {
	ami := next.ami(now)
	_, unreadable := minAge(class)
	if unreadable == nil && (age == 0 || now.Sub(next.created) >= age) {
		return ami, ""
	}
	key := requirementsKey(ami.Requirements)
	i := slices.IndexFunc(class.Status.AMIs, func(a awsv1.AMI) bool { return requirementsKey(a.Requirements) == key })
	if i < 0 || class.Status.AMIs[i].ID == ami.ID || !r.sameTerms(class) {
		return ami, ""
	}
	last := class.Status.AMIs[i]
	a := r.knownImages.get(idKey(last.ID))
	if a.known && (len(a.value) == 0 || !a.value[0].usable() || a.value[0].deprecated(now)) {
		return ami, ""
	}
	if unreadable != nil {
		return last, ""
	}
	return last, fmt.Sprintf("%s (%s) of %s takes the place of %s from %s on, by annotation %s", ami.ID, ami.Name,
		next.created.UTC().Format(time.DateOnly), last.ID, next.created.Add(age).UTC().Format(time.RFC3339),
		MinAgeAnnotation)
}

// terms are the selector terms of a class that this process has seen, and since which generation.
type terms struct {
	text  string
	since int64
	used  time.Time
}

// note remembers the terms of a class.
func (r *Resolver) note(class *awsv1.EC2NodeClass, now time.Time) {
	text := fmt.Sprintf("%s %q", Family(&class.Spec), class.Spec.AMISelectorTerms)
	r.mu.Lock()
	defer r.mu.Unlock()
	t, known := r.terms[string(class.UID)]
	if !known || t.text != text {
		t = terms{text: text, since: class.Generation}
	}
	t.used = now
	r.terms[string(class.UID)] = t
}

// sameTerms reports whether the images of the status belong to the class's current terms.
func (r *Resolver) sameTerms(class *awsv1.EC2NodeClass) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	condition, _ := said(class, AMIsReady)
	return condition.Type != "" && condition.ObservedGeneration >= r.terms[string(class.UID)].since
}

// changes returns the replaced images of a status, with their successors for the same types. The first images of a
// class are not a change.
func changes(before, after []awsv1.AMI, picks []pick) (list []AMIChange) {
	has := func(amis []awsv1.AMI, id string) bool {
		return slices.ContainsFunc(amis, func(a awsv1.AMI) bool { return a.ID == id })
	}
	for _, old := range before {
		if has(after, old.ID) {
			continue
		}
		change := AMIChange{Old: old}
		key := requirementsKey(old.Requirements)
		for _, ami := range after {
			if requirementsKey(ami.Requirements) == key {
				change.New = ami
			}
		}
		for _, p := range picks {
			if p.id == change.New.ID {
				change.Created = p.created
			}
		}
		list = append(list, change)
	}
	return list
}

// AMIChangedText returns the text of the event for all changes of a class. nodes returns how many nodes of the class
// have an image: they will drift. Images with the most nodes come first, since an event has no room for all variants
// of an alias.
func AMIChangedText(list []AMIChange, nodes func(imageID string) int) string {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b AMIChange) int { return cmp.Compare(nodes(b.Old.ID), nodes(a.Old.ID)) })
	drift := 0
	for _, c := range list {
		drift += nodes(c.Old.ID)
	}
	var parts []string
	for _, c := range list[:min(len(list), mostChanges)] {
		part := fmt.Sprintf("%s (%s) is no longer chosen", c.Old.ID, named(c.Old))
		if c.New.ID != "" {
			part = fmt.Sprintf("%s (%s) gives way to %s (%s%s)", c.Old.ID, named(c.Old), c.New.ID, named(c.New),
				made(c.Created))
		}
		parts = append(parts, part)
	}
	if more := len(list) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more images", more))
	}
	return fmt.Sprintf("%s; %d nodes will drift", strings.Join(parts, "; "), drift)
}

func named(ami awsv1.AMI) string {
	if ami.Name == "" {
		return "without a name"
	}
	return ami.Name
}

func made(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return ", made on " + at.UTC().Format(time.DateOnly)
}
