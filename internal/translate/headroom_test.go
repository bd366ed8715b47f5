package translate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	karpenterv1 "github.com/joiner-autoscaler/joiner/api/karpenter/v1"
	"github.com/joiner-autoscaler/joiner/internal/engine/cluster"
	"github.com/joiner-autoscaler/joiner/internal/engine/resources"
	"github.com/joiner-autoscaler/joiner/internal/translate"
	corev1 "k8s.io/api/core/v1"
)

func poolWith(annotations ...string) *karpenterv1.NodePool {
	pool := &karpenterv1.NodePool{}
	pool.Name, pool.Annotations = "web", map[string]string{}
	for i := 0; i < len(annotations); i += 2 {
		pool.Annotations[annotations[i]] = annotations[i+1]
	}
	return pool
}

// K-54. Valid values of the annotations for a floor and for headroom, and the errors for others: annotation, value and
// what is allowed. An invalid value keeps no room and no node.
func TestK54_WhatTheAnnotationsSay(t *testing.T) {
	t.Parallel()
	for value, fault := range map[string]string{
		"10%": "", "1000%": "", "cpu=20,memory=80Gi": "", "cpu=500m": "", "nvidia.com/gpu=2": "",
		"cpu=1, memory=1Gi": "",
		"0%":                "want a share from 1% to 1000%", "1001%": "want a share", "+5%": "want a share",
		"10.5%": "want a share", "%": "want a share",
		"": "want a share", "20": "or amounts of resources such as", "cpu=": `cpu is ""`,
		"cpu=0":  `cpu is "0"; want an amount above 0`,
		"cpu=-1": "want an amount above 0", "cpu=20,memroy=80Gi": `"memroy" is not a resource`,
		"nodes=3": `"nodes" is not a resource`, "pods=3": `"pods" is not a resource`,
		"cpu=1,cpu=2": "it names cpu twice", "c pu=1": `"c pu" is not a resource`, "cpu=1,": "want a share",
	} {
		h, err := translate.HeadroomOf(poolWith(karpenterv1.HeadroomAnnotationKey, value))
		if (h != nil) != (fault == "") || (err != nil) != (fault != "") ||
			err != nil && (!strings.Contains(err.Error(), fault) ||
				!strings.HasPrefix(err.Error(), fmt.Sprintf("annotation joiner.sh/headroom is %q: ", value))) {
			t.Errorf("%q: %v, %v; want an error with %q", value, h, err, fault)
		}
	}
	for value, fault := range map[string]string{
		"0 7 * * 1-5 for 12h in Europe/Berlin": "", "@daily for 90m": "",
		"0 7 * * 1 for 1h; 0 7 * * 2 for 2h in UTC": "",
		"0 7 * * 1-5": "want a schedule, for how long and where the clock is", "": "want a schedule",
		"0 7 * * for 1h":             `schedule is "0 7 * *": want five cron fields`,
		"0 7 * * 1 for 1d":           `after "for" stands "1d"`,
		"0 7 * * 1 for 10s":          "want a duration of a minute or more",
		"0 7 * * 1 for 1h in Berlin": `timeZone is "Berlin": want a name`, "0 7 * * 1 for 1h;": "want a schedule",
		"0 7 30 2 * for 12h": "it names no moment",
	} {
		h, err := translate.HeadroomOf(poolWith(karpenterv1.HeadroomAnnotationKey, "10%",
			karpenterv1.HeadroomScheduleAnnotationKey, value))
		if (h != nil) != (fault == "") || err != nil && (!strings.Contains(err.Error(), fault) ||
			!strings.HasPrefix(err.Error(), fmt.Sprintf("annotation joiner.sh/headroom-schedule is %q: ", value))) {
			t.Errorf("%q: %v, %v; want an error with %q", value, h, err, fault)
		}
	}
	for value, want := range map[string]int64{"0": 0, "3": 3, "100000": 100_000, "-1": -1, "100001": -1, "three": -1,
		"": -1, "2.5": -1} {
		least, found, err := translate.MinNodes(poolWith(karpenterv1.MinNodesAnnotationKey, value))
		if !found || (err != nil) != (want < 0) || least != max(0, want) ||
			err != nil && err.Error() != fmt.Sprintf(
				"annotation joiner.sh/min-nodes is %q: want a whole number of nodes from 0 to 100000, "+
					"for example 3", value) {
			t.Errorf("%q: %d, %t, %v", value, least, found, err)
		}
	}
	static := poolWith(karpenterv1.MinNodesAnnotationKey, "3", karpenterv1.HeadroomAnnotationKey, "10%")
	static.Spec.Replicas = new(int64(2))
	_, _, err := translate.MinNodes(static)
	if _, other := translate.HeadroomOf(static); err == nil || other == nil || !strings.Contains(err.Error(),
		"no effect on a static NodePool") ||
		!strings.Contains(other.Error(), "no effect on a static NodePool") {
		t.Errorf("of a static pool: %v, %v", err, other)
	}
	if h, err := translate.HeadroomOf(poolWith(karpenterv1.HeadroomScheduleAnnotationKey,
		"@daily for 1h")); h != nil || err == nil {
		t.Errorf("a schedule of nothing: %v, %v", h, err)
	}
	if _, found, err := translate.MinNodes(poolWith()); found || err != nil {
		t.Errorf("a pool without: %t, %v", found, err)
	}
}

// K-54, K-56. A schedule follows its own time zone, daylight saving included, and returns its next change.
func TestK54_HeadroomBySchedule(t *testing.T) {
	t.Parallel()
	h, err := translate.HeadroomOf(poolWith(karpenterv1.HeadroomAnnotationKey, "10%",
		karpenterv1.HeadroomScheduleAnnotationKey, "0 7 * * 1-5 for 12h in Europe/Berlin; 0 10 * * 6 for 1h"))
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) time.Time {
		moment, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return moment
	}
	for _, row := range []struct {
		now  string
		is   bool
		next string
	}{
		{"2026-01-12T05:59:00Z", false, "2026-01-12T06:00:00Z"}, // a Monday in winter: 7 in Berlin is 6 in UTC
		{"2026-01-12T06:00:00Z", true, "2026-01-12T18:00:00Z"},
		{"2026-01-12T18:00:00Z", false, "2026-01-13T06:00:00Z"},
		{"2026-07-13T05:00:00Z", true, "2026-07-13T17:00:00Z"}, // in summer it is 5
		{"2026-07-18T10:30:00Z", true, "2026-07-18T11:00:00Z"}, // a Saturday, by the second window
		{"2026-07-18T12:00:00Z", false, "2026-07-20T05:00:00Z"},
	} {
		if is, next := h.InForce(at(row.now)); is != row.is || !next.Equal(at(row.next)) {
			t.Errorf("at %s it is in force: %t, and changes at %s; want %t and %s", row.now, is, next, row.is,
				row.next)
		}
	}
	always, _ := translate.HeadroomOf(poolWith(karpenterv1.HeadroomAnnotationKey, "10%"))
	if is, next := always.InForce(time.Now()); !is || !next.IsZero() {
		t.Errorf("without a schedule: %t, %s", is, next)
	}
}

// room is a NodePool's headroom as time goes by.
type room struct {
	t     *testing.T
	space *resources.Space
	asked *translate.Headroom
	now   time.Time
	is    translate.HeadroomRoom
}

func newRoom(t *testing.T, text string) *room {
	t.Helper()
	asked, err := translate.ParseHeadroom(text)
	if err != nil {
		t.Fatal(err)
	}
	return &room{t: t, space: resources.NewSpace(), asked: asked, now: time.Unix(1_000_000, 0)}
}

// of returns how many pods there is room for after some time, by requested millicores: "1000×3 500×2".
func (r *room) of(after time.Duration, milliAndPods ...int) string {
	r.t.Helper()
	r.now = r.now.Add(after)
	var running []translate.Running
	for i := 0; i < len(milliAndPods); i += 2 {
		requests := resources.Vector{}.With(r.space.Index("cpu"), int64(milliAndPods[i])).
			With(r.space.Index("memory"), int64(milliAndPods[i])<<22).With(resources.Pods, 1)
		running = append(running, translate.Running{Shape: &cluster.Shape{Namespace: "shop", Requests: requests},
			Pods: milliAndPods[i+1]})
	}
	r.is = r.is.Next(r.space, "web", nil, r.asked, running, r.now)
	var parts []string
	for _, part := range r.is.Parts {
		parts = append(parts, fmt.Sprintf("%d×%d", part.Shape.Requests.At(resources.CPU), part.Pods))
	}
	if !r.is.Until.IsZero() && !r.is.Until.After(r.now) {
		r.t.Errorf("at %s it is to change at %s, which is over", r.now, r.is.Until)
	}
	return strings.Join(parts, " ")
}

func (r *room) want(want string, after time.Duration, milliAndPods ...int) {
	r.t.Helper()
	if got := r.of(after, milliAndPods...); got != want {
		r.t.Errorf("after %s, with %v: room for %q, want %q", after, milliAndPods, got, want)
	}
}

// K-54. A share of the running pods, of each shape in proportion; only the sum is rounded up.
func TestK54_AShareOfWhatRuns(t *testing.T) {
	t.Parallel()
	newRoom(t, "10%").want("", 0)
	newRoom(t, "10%").want("500×1", 0, 500, 1)
	newRoom(t, "10%").want("500×2", 0, 500, 11)
	newRoom(t, "10%").want("1000×7 500×3", 0, 500, 30, 1000, 70)
	newRoom(t, "25%").want("1000×1 500×1", 0, 500, 4, 1000, 4)
	newRoom(t, "150%").want("250×6", 0, 250, 4)
}

// K-54. Amounts are filled with pods of the mix as far as possible, and with small ones for the rest; never with more
// than requested.
func TestK54_Amounts(t *testing.T) {
	t.Parallel()
	newRoom(t, "cpu=3").want("1000×3", 0)
	newRoom(t, "memory=10Gi").want("0×3", 0)
	newRoom(t, "cpu=2500m,memory=2Gi").want("834×3", 0)
	newRoom(t, "cpu=4").want("1000×3 500×2", 0, 500, 20, 1000, 30)
	newRoom(t, "cpu=4").want("3000×1 1000×1", 0, 3000, 5)
	newRoom(t, "cpu=4").want("1000×4", 0, 8000, 5)
	newRoom(t, "nvidia.com/gpu=2").want("0×2", 0, 1000, 5)
	r := newRoom(t, "cpu=20,memory=80Gi")
	r.of(0, 700, 13, 2300, 5, 64, 40)
	for component, most := range map[int]int64{resources.CPU: 20_000, resources.Memory: 80 << 30} {
		sum := int64(0)
		for _, part := range r.is.Parts {
			sum += part.Shape.Requests.At(component) * int64(part.Pods)
		}
		if sum < most || sum > most+int64(r.is.Pods()) { // a piece is rounded up
			t.Errorf("component %d: room for %d, want %d", component, sum, most)
		}
	}
}

// K-54. Headroom rises at once. It falls after a quarter of an hour, to the maximum in that time: so jobs that come
// and go every few minutes change nothing. Its shapes follow as slowly, unless twice as many pods run.
func TestK54_HeadroomDoesNotFlap(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "10%")
	r.want("500×10", 0, 500, 100)
	r.want("500×13", time.Minute, 500, 130) // a job begins
	for range 20 {                          // and ends, and begins
		r.want("500×13", 5*time.Minute, 500, 100)
		r.want("500×13", 5*time.Minute, 500, 130)
	}
	r.want("500×13", time.Minute, 500, 100) // it ends for good
	r.want("500×13", 7*time.Minute, 500, 112)
	r.want("500×12", 8*time.Minute, 500, 100)
	r.want("500×12", 14*time.Minute, 500, 90)
	r.want("500×10", time.Minute, 500, 90) // what was wanted since: a moment of 100, then 90
	r.want("500×9", 15*time.Minute, 500, 90)
	r.want("500×9", time.Minute) // the pool is empty: what ran last is as good a guess as any
	r.want("", 15*time.Minute)

	r = newRoom(t, "10%")
	r.want("500×10", 0, 500, 100)
	r.want("500×11", time.Minute, 500, 70, 1000, 40) // more of them, of the shapes that there were
	// and then of those that there are: a pod off is near enough
	r.want("500×8 1000×3", 15*time.Minute, 500, 70, 1000, 40)
	r.want("500×8 1000×3", 15*time.Minute, 500, 75, 1000, 35)
	r.want("1000×16 500×6", time.Minute, 500, 50, 1000, 170) // twice as many are another load
}

// K-54. Headroom is for nodes of the pool, and for pods like those that run there, but without constraints on other
// pods, volumes, ports and names.
func TestK54_TheShapesOfHeadroom(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "10%")
	shape := &cluster.Shape{Namespace: "shop", Labels: map[string]string{"app": "web"},
		Requests:  resources.Vector{}.With(resources.Pods, 1),
		HostPorts: []cluster.HostPort{{Port: 80}}, Tolerations: []cluster.Toleration{
			{Key: "team", Operator: cluster.TolerationExists},
		},
		AntiAffinity: []cluster.AffinityTerm{{Key: cluster.LabelHostname}}}
	room := r.is.Next(r.space, "web", nil, r.asked, []translate.Running{{Shape: shape, Pods: 3}}, r.now)
	if len(room.Parts) != 1 {
		t.Fatalf("%+v", room.Parts)
	}
	got := room.Parts[0].Shape
	if len(got.Labels)+len(got.HostPorts)+len(got.AntiAffinity) != 0 || got.Namespace != "" ||
		len(got.Tolerations) != 1 ||
		len(got.Alternatives) != 1 || got.Alternatives[0].Labels.String() != "karpenter.sh/nodepool=web" ||
		got.Buffer != "NodePool/web" {
		t.Errorf("%+v", got)
	}
	if pool, is := cluster.PoolOfHeadroom(got.Buffer); pool != "web" || !is {
		t.Errorf("%s is of %q", got.Buffer, pool)
	}
}

// K-54. Room for no particular pod tolerates the pool's own taints, and no others: on a cordoned node there is no
// room.
func TestK54_RoomIsNotOnCordonedNodes(t *testing.T) {
	t.Parallel()
	r := newRoom(t, "cpu=1")
	team := corev1.Taint{Key: "team", Value: "a", Effect: corev1.TaintEffectNoSchedule}
	room := r.is.Next(r.space, "web", []corev1.Taint{team}, r.asked, nil, r.now)
	if len(room.Parts) != 1 {
		t.Fatalf("%+v", room.Parts)
	}
	tolerates := func(taint cluster.Taint) bool {
		_, refused := cluster.Untolerated([]cluster.Taint{taint}, room.Parts[0].Shape.Tolerations)
		return !refused
	}
	if !tolerates(cluster.Taint{Key: "team", Value: "a", Effect: cluster.NoSchedule}) {
		t.Error("the room does not tolerate the pool's own taint")
	}
	if tolerates(cluster.Taint{Key: corev1.TaintNodeUnschedulable, Effect: cluster.NoSchedule}) {
		t.Error("the room tolerates a cordoned node")
	}
}
