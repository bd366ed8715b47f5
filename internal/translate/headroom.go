package translate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
)

// Headroom is how much room a NodePool keeps free for pods to come, and when (K-54).
type Headroom struct {
	// Percent is the room in percent of the pods that run on the pool's nodes; 0 if Amounts says how much.
	Percent int
	// Amounts is the room as amounts of resources.
	Amounts corev1.ResourceList
	// windows are the times at which it is kept; none for always.
	windows []karpenterv1.Budget
	text    string
	when    string
}

// MostHeadroomPercent bounds Headroom.Percent.
const MostHeadroomPercent = 1000

// HeadroomOf reads the headroom of a NodePool. It returns nil if the pool keeps no room: no annotation, or an error.
func HeadroomOf(pool *karpenterv1.NodePool) (*Headroom, error) {
	text, found := pool.Annotations[karpenterv1.HeadroomAnnotationKey]
	when, scheduled := pool.Annotations[karpenterv1.HeadroomScheduleAnnotationKey]
	switch {
	case !found && !scheduled:
		return nil, nil
	case !found:
		return nil,
			fmt.Errorf("annotation %s is %q and has no effect: annotation %s says how much room, and is missing",
				karpenterv1.HeadroomScheduleAnnotationKey, when, karpenterv1.HeadroomAnnotationKey)
	}
	h, err := ParseHeadroom(text)
	if err != nil {
		return nil, fmt.Errorf("annotation %s %w", karpenterv1.HeadroomAnnotationKey, err)
	}
	if scheduled {
		if h.windows, err = headroomWindows(when); err != nil {
			return nil, fmt.Errorf("annotation %s %w", karpenterv1.HeadroomScheduleAnnotationKey, err)
		}
		h.when = when
	}
	if pool.Spec.Replicas != nil {
		return nil, fmt.Errorf(
			"annotation %s is %q and has no effect on a static NodePool: spec.replicas is how many nodes it keeps",
			karpenterv1.HeadroomAnnotationKey, text)
	}
	return h, nil
}

const headroomWanted = "want a share from 1% to 1000% such as 10%, or amounts of resources such as cpu=20,memory=80Gi"

// ParseHeadroom reads headroom as users write it.
func ParseHeadroom(text string) (*Headroom, error) {
	if digits, share := strings.CutSuffix(text, "%"); share {
		percent, err := strconv.ParseInt(digits, 10, 32)
		if err != nil || percent < 1 || percent > MostHeadroomPercent || digits[0] == '+' {
			return nil, fmt.Errorf("is %q: %s", text, headroomWanted)
		}
		return &Headroom{Percent: int(percent), text: text}, nil
	}
	amounts := corev1.ResourceList{}
	for part := range strings.SplitSeq(text, ",") {
		name, value, given := strings.Cut(strings.TrimSpace(part), "=")
		quantity, err := resource.ParseQuantity(value)
		_, twice := amounts[corev1.ResourceName(name)]
		switch {
		case !given:
			return nil, fmt.Errorf("is %q: %s", text, headroomWanted)
		case !podsRequest(name):
			return nil, fmt.Errorf(
				"is %q: %q is not a resource that pods request; want cpu, memory, ephemeral-storage or one of a "+
					"device such as nvidia.com/gpu", text, name)
		case twice:
			return nil, fmt.Errorf("is %q: it names %s twice", text, name)
		case err != nil || quantity.Sign() <= 0:
			return nil, fmt.Errorf("is %q: %s is %q; want an amount above 0 such as 20 or 80Gi", text, name, value)
		}
		amounts[corev1.ResourceName(name)] = quantity
	}
	return &Headroom{Amounts: amounts, text: text}, nil
}

// podsRequest reports whether pods may request a resource of that name. By the rules of Kubernetes, a resource that is
// not built in has a domain.
func podsRequest(name string) bool {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return len(validation.IsQualifiedName(name)) == 0 &&
		(strings.Contains(name, "/") || strings.HasPrefix(name, corev1.ResourceHugePagesPrefix))
}

// HeadroomWindow returns a window of headroom in the form of the annotation. zone is a name of the IANA database, ""
// for UTC.
func HeadroomWindow(schedule, duration, zone string) string {
	text := schedule + " for " + duration
	if zone != "" {
		text += " in " + zone
	}
	return text
}

// CheckHeadroomSchedule checks a schedule in the form of the annotation. The error says what cannot be understood.
func CheckHeadroomSchedule(text string) error {
	_, err := headroomWindows(text)
	return err
}

// headroomWindows reads "SCHEDULE for DURATION [in ZONE]; ...": windows like those of disruption budgets.
func headroomWindows(text string) ([]karpenterv1.Budget, error) {
	var windows []karpenterv1.Budget
	for part := range strings.SplitSeq(text, ";") {
		schedule, rest, found := strings.Cut(strings.TrimSpace(part), " for ")
		length, zone, zoned := strings.Cut(strings.TrimSpace(rest), " in ")
		if !found {
			return nil, fmt.Errorf("is %q: want a schedule, for how long and where the clock is, such as "+
				"\"0 7 * * 1-5 for 12h in Europe/Berlin\"; several with semicolons", text)
		}
		duration, err := time.ParseDuration(strings.TrimSpace(length))
		if err != nil || duration < time.Minute {
			return nil, fmt.Errorf(
				"is %q: after \"for\" stands %q; want a duration of a minute or more such as 90m or 12h", text, length)
		}
		schedule = strings.TrimSpace(schedule)
		window := karpenterv1.Budget{Schedule: &schedule, Duration: &karpenterv1.Duration{Duration: duration}}
		if zoned {
			zone = strings.TrimSpace(zone)
			window.TimeZone = &zone
		}
		if _, err := scheduleOf(window); err != nil {
			return nil, fmt.Errorf("is %q: %w", text, err)
		}
		windows = append(windows, window)
	}
	return windows, nil
}

// InForce reports whether the room is kept at now, and when that next changes; zero for never.
func (h *Headroom) InForce(now time.Time) (is bool, next time.Time) {
	if len(h.windows) == 0 {
		return true, time.Time{}
	}
	for _, window := range h.windows {
		active, err := budgetActive(window, now)
		is = is || active && err == nil
	}
	pool := &karpenterv1.NodePool{}
	pool.Spec.Disruption.Budgets = h.windows
	return is, NextBudgetChange(pool, now)
}

// Same reports whether both ask for the same room. The schedule does not count.
func (h *Headroom) Same(other *Headroom) bool {
	return h != nil && other != nil && h.text == other.text
}

// String says how much, and when.
func (h *Headroom) String() string {
	if h.when == "" {
		return h.text
	}
	return h.text + " at " + h.when
}
