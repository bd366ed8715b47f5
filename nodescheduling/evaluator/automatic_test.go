package evaluator_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

// automaticWorld is a cluster whose policy writes the annotation of the override.
func automaticWorld(t *testing.T) *schedulingtest.World {
	t.Helper()
	w := schedulingtest.NewWorld()
	if _, err := w.Run("cluster", false,
		"group ControlPlane select=cp mode=Enable users=system:admin,group:oncall\n"+
			"node cp1 labels=cp\noverride Automatic", nil); err != nil {
		t.Fatal(err)
	}
	return w
}

// verdictOn is the verdict on the pod debug on cp1 with a reason, by a user.
func verdictOn(t *testing.T, w *schedulingtest.World, user evaluator.User, reason string) evaluator.Verdict {
	t.Helper()
	asked, err := schedulingtest.ParseRequest("x create pod tmp/debug node=cp1 override=x")
	if err != nil {
		t.Fatal(err)
	}
	asked.User = user
	asked.Object.SetAnnotations(map[string]string{evaluator.OverrideAnnotation: reason})
	verdict, err := w.Evaluate(asked)
	if err != nil {
		t.Fatal(err)
	}
	return verdict
}

// the audit log can be trusted when it says that an override was automatic. Nobody can write that for somebody
// else. Who may not override cannot write it at all, not even by a mutating policy: it is judged like a reason written
// by hand.
func TestA42_AnAutomaticReasonIsNotForged(t *testing.T) {
	t.Parallel()
	w := automaticWorld(t)
	admin, dora := evaluator.User{Name: "system:admin"}, evaluator.User{Name: "dora", Groups: []string{"oncall"}}
	for _, c := range []struct {
		user   evaluator.User
		reason string
		want   string // of the message; "" passes
	}{
		{admin, "automatic: system:admin", ""},
		{dora, "automatic: dora", ""},
		{admin, "automatically", ""},
		{admin, "automatic: dora", `begins with "automatic: " must go on with the name of whoever creates the pod`},
		{admin, "automatic: ", "must go on with the name"},
		{dora, "automatic: system:admin", "must go on with the name"},
		{evaluator.User{Name: "alice"}, "automatic: alice", "only who the lists authorize"},
		{evaluator.User{Name: "system:serviceaccount:tmp:default"}, "automatic: system:serviceaccount:tmp:default",
			"only who the lists authorize"},
	} {
		verdict := verdictOn(t, w, c.user, c.reason)
		if verdict.Allowed != (c.want == "") || !strings.Contains(verdict.Message, c.want) || verdict.Allowed &&
			verdict.Audit()[evaluator.AuditOverride] != c.reason {
			t.Errorf("%s with %q: %+v", c.user.Name, c.reason, verdict)
		}
	}
}

// what is written fits, however long and in whatever letters the name is, and is taken by the half that judges.
func TestA42_AnAutomaticReasonFits(t *testing.T) {
	t.Parallel()
	w := automaticWorld(t)
	for _, name := range []string{"d", strings.Repeat("d", 120), strings.Repeat("d", 121), strings.Repeat("d", 5000),
		strings.Repeat("\U0001F600", 300)} {
		asked, err := schedulingtest.ParseRequest("x[oncall] create pod tmp/debug node=cp1")
		if err != nil {
			t.Fatal(err)
		}
		asked.User.Name = name
		admitted, err := w.Admit(asked)
		if err != nil {
			t.Fatal(err)
		}
		reason := admitted.Object.GetAnnotations()[evaluator.OverrideAnnotation]
		if !strings.HasPrefix(reason, "automatic: ") || !strings.HasPrefix(name, strings.TrimPrefix(reason,
			"automatic: ")) || len(reason) > 512 || !utf8.ValidString(reason) ||
			utf8.RuneCountInString(reason) != len("automatic: ")+min(120, utf8.RuneCountInString(name)) {
			t.Errorf("a name of %d bytes: %q", len(name), reason)
		}
		if len(asked.Object.GetAnnotations()) > 0 {
			t.Error("the object that was sent is changed")
		}
		if verdict, err := w.Evaluate(admitted); err != nil || !verdict.Allowed ||
			verdict.Samples[0].Decision != string(evaluator.Overridden) {
			t.Errorf("a name of %d bytes: %+v (%v)", len(name), verdict, err)
		}
	}
}

// an administrator whose pod is refused because of its namespace reads in the first 160 bytes what to do,
// whatever the pod aims by.
func TestA42_TheRemedyComesFirst(t *testing.T) {
	t.Parallel()
	for override, want := range map[string]string{
		"Disable": "use an authorized namespace (oc: --to-namespace, --run-namespace), or have emergencyOverride set to " +
			"Automatic. ",
		"Enable": "set the annotation scheduling.openshift.io/emergency-override to the reason, or use an authorized " +
			"namespace. ",
	} {
		w := automaticWorld(t)
		if _, err := w.Run("cluster", false, "node cp2 labels=cp taints=cp:NoSchedule\noverride "+override,
			nil); err != nil {
			t.Fatal(err)
		}
		for _, aims := range []string{"node=cp1", "tolerate=*", "select=cp="} {
			for user, told := range map[string]bool{"system:admin": true, "dora[oncall]": true, "alice": false} {
				asked, err := schedulingtest.ParseRequest(user + " create pod tmp/debug " + aims)
				if err != nil {
					t.Fatal(err)
				}
				verdict, err := w.Evaluate(asked)
				if at := strings.Index(verdict.Message, want); err != nil || verdict.Allowed || told != (at > 0 &&
					at+len(want) <= 161) {
					t.Errorf("%s, %s, %s: %q (%v)", override, user, aims, verdict.Message, err)
				}
			}
		}
	}
}
