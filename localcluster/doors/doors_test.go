package doors

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	webhookaccess "k8s.io/apiserver/pkg/admission/plugin/webhook"
	"k8s.io/apiserver/pkg/cel/environment"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/joiner-autoscaler/joiner/charts"
	"github.com/joiner-autoscaler/joiner/internal/webhook"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator/schedulingtest"
)

// doorsWorld is a cluster with everything on which an exit depends.
const doorsWorld = `
override Enable
group ControlPlane select=cp taints=cp:NoSchedule mode=Enable users=system:kube-scheduler,ops/default,system:admin,group:oncall
node cp1 labels=cp taints=cp:NoSchedule
node w1
pod tmp/debug override=why
pod app/plain
`

// configured is the webhook of the chart as kube-apiserver applies it: its rules, and its compiled matchConditions.
type configured struct {
	webhooks []registrationv1.ValidatingWebhook
	access   []webhookaccess.WebhookAccessor
	compiler cel.ConditionCompiler
	called   int
}

func newConfigured(t *testing.T) *configured {
	t.Helper()
	text, err := charts.WebhookConfiguration("joiner-webhook", "Enable")
	if err != nil {
		t.Fatal(err)
	}
	configuration := registrationv1.ValidatingWebhookConfiguration{}
	if err := yaml.UnmarshalStrict(text, &configuration); err != nil {
		t.Fatal(err)
	}
	c := &configured{webhooks: configuration.Webhooks,
		compiler: cel.NewConditionCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion()))}
	for i := range c.webhooks {
		c.access = append(c.access, webhookaccess.NewValidatingWebhookAccessor(fmt.Sprint(i), configuration.Name,
			&c.webhooks[i]))
	}
	return c
}

// ask answers as the API server does with this configuration: if the webhook is called, it decides; else the request
// is allowed.
func (c *configured) ask(w *schedulingtest.World, asked schedulingtest.Asked) (schedulingtest.Answer, error) {
	internal, err := server.Record(asked)
	if err != nil {
		return schedulingtest.Answer{}, err
	}
	object, old := asked.Objects()
	versioned := &admission.VersionedAttributes{Attributes: internal, VersionedObject: object, VersionedOldObject: old,
		VersionedKind: internal.GetKind()}
	for i := range c.webhooks {
		if !slices.ContainsFunc(c.webhooks[i].Rules, func(r registrationv1.RuleWithOperations) bool {
			return covers(r, asked)
		}) {
			continue
		}
		matched := c.access[i].GetCompiledMatcher(c.compiler).Match(context.Background(), versioned, nil, nil)
		if matched.Error != nil {
			return schedulingtest.Answer{}, matched.Error
		}
		if matched.Matches {
			c.called++
			return review(w, asked, object, old)
		}
	}
	return schedulingtest.Answer{Allowed: true}, nil
}

// covers reports whether a rule matches the request.
func covers(r registrationv1.RuleWithOperations, asked schedulingtest.Asked) bool {
	resource := strings.TrimSuffix(asked.Resource+"/"+asked.Subresource, "/")
	return slices.Contains(r.Operations, registrationv1.OperationType(asked.Operation)) &&
		slices.Contains(r.APIGroups, asked.Group) && slices.Contains(r.Resources, resource)
}

// review sends the request to the webhook as kube-apiserver would.
func review(w *schedulingtest.World, asked schedulingtest.Asked,
	object, old runtime.Object) (schedulingtest.Answer, error) {
	policy, _, err := evaluator.New(w.Sources)
	if err != nil {
		return schedulingtest.Answer{}, err
	}
	handler, err := webhook.NewNodeScheduling(webhook.NodeSchedulingConfig{Judge: policy.Evaluate,
		Cluster: func(context.Context) evaluator.Cluster { return w.Cluster() }})
	if err != nil {
		return schedulingtest.Answer{}, err
	}
	request := &admissionv1.AdmissionRequest{UID: "1", Operation: admissionv1.Operation(asked.Operation),
		SubResource: asked.Subresource,
		Resource:    metav1.GroupVersionResource{Group: asked.Group, Version: "v1", Resource: asked.Resource},
		Namespace:   asked.Namespace, Name: asked.Name, DryRun: &asked.DryRun,
		UserInfo: authenticationv1.UserInfo{Username: asked.User.Name, Groups: asked.User.Groups}}
	for from, to := range map[*runtime.Object]*runtime.RawExtension{&object: &request.Object,
		&old: &request.OldObject} {
		if *from != nil {
			to.Object = *from
		}
	}
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	})
	if err != nil {
		return schedulingtest.Answer{}, err
	}
	post := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	post.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, post)
	answer := admissionv1.AdmissionReview{}
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil || answer.Response == nil {
		return schedulingtest.Answer{}, fmt.Errorf("status %d, %q: %w", recorder.Code, recorder.Body, err)
	}
	given := schedulingtest.Answer{Allowed: answer.Response.Allowed, Warnings: answer.Response.Warnings,
		Audit: answer.Response.AuditAnnotations}
	if !given.Allowed {
		given.Message = answer.Response.Result.Message
	}
	return given, nil
}

// placed draws a request about a pod in the language of the scripts: what a pod may be made of, and each part of it
// that may change.
func placed(t *rapid.T) string {
	pick := func(name string, of ...string) string { return rapid.SampledFrom(of).Draw(t, name) }
	user := pick("user", "alice", "system:admin", "dora[oncall]", "system:kube-scheduler", "sa:ops/default",
		"system:node:cp1", "system:node:cp1[others]", "system:node:w1")
	pod := pick("pod", "tmp/debug", "app/plain", "ops/web")
	attributes := func(side string) string {
		return strings.Join([]string{
			pick(side+" node", "", "", "node=w1", "node=cp1", "node=cp9"), pick(side+" gate", "", "gated", "ungated"),
			pick(side+" tolerations", "", "", "tolerate=cp:NoSchedule", "tolerate=*",
				"tolerate=node.kubernetes.io/not-ready:NoExecute"),
			pick(side+" selector", "", "", "select=cp=", "need=cp", "need=name=w1", "prefer=cp"),
			pick(side+" override", "", "", "override=why", "override=mine", "override="),
			pick(side+" mirror", "", "", "mirror"),
			pick(side+" metadata", "", "label=a=b", "finalizer=a.b/c", "annotation=a=b"),
			pick(side+" image", "", "image=other"),
		}, " ")
	}
	switch pick("verb", "create", "update", "update", "update", "bind", "bind-legacy", "connect", "delete") {
	case "create":
		return fmt.Sprintf("%s create pod %s %s", user, pod, attributes("new"))
	case "bind":
		return fmt.Sprintf("%s bind %s to=%s %s", user, pod, pick("target", "cp1", "w1", "cp9"),
			pick("brings", "", "annotation="+evaluator.OverrideAnnotation+"=x"))
	case "bind-legacy":
		return fmt.Sprintf("%s bind-legacy %s to=%s", user, pod, pick("target", "cp1", "w1", "cp9"))
	case "connect":
		return fmt.Sprintf("%s connect pod/%s %s", user, pick("how", "exec", "attach", "portforward", "proxy"), pod)
	case "delete":
		return fmt.Sprintf("%s delete pod %s", user, pod)
	}
	change := attributes("new")
	if pick("takes it off", "no", "no", "yes") == "yes" {
		change = "no-override " + pick("image then", "", "image=other")
	}
	return fmt.Sprintf("%s update pod%s %s %s -> %s", user,
		pick("subresource", "", "", "/status", "/ephemeralcontainers", "/resize", "/eviction"), pod, attributes("old"),
		change)
}

// two doors answer every request alike: the plugin, which sees all requests, and the webhook behind the chart's
// rules and matchConditions. A condition that keeps back a request which the evaluator would refuse shows here.
func TestA16_BothDoorsSayTheSame(t *testing.T) {
	t.Parallel()
	hook := newConfigured(t)
	same, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]string{"Enable", "Inform", "Disable"}).Draw(t, "mode")
		w := schedulingtest.NewWorld()
		if _, err := w.Run("cluster", false, doorsWorld+"scheduler cluster mode="+mode, nil); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			line := placed(t)
			asked, err := schedulingtest.ParseRequest(line)
			if err != nil {
				t.Fatal(err)
			}
			inside, err := ask(w, asked)
			if err != nil {
				t.Fatal(err)
			}
			outside, err := hook.ask(w, asked)
			if err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if !reflect.DeepEqual(inside, outside) {
				t.Fatalf("%s\nthe plugin says %s\n%sand the webhook %s\n%s", line, inside, inside.Text(), outside,
					outside.Text())
			}
			if same++; !inside.Allowed {
				refused++
			}
		}
	})
	if refused == 0 || hook.called == 0 || hook.called == same {
		t.Errorf("of %d requests %d were refused and the webhook called for %d", same, refused, hook.called)
	}
}

// every exit of the evaluator also exists outside of Go: as a condition that compiles, or as a field of the
// configuration. A-17: requests that concern no pod with the override make no call.
func TestA16_OrdinaryRequestsAreNoCall(t *testing.T) {
	t.Parallel()
	hook := newConfigured(t)
	w := schedulingtest.NewWorld()
	if _, err := w.Run("cluster", false, doorsWorld, nil); err != nil {
		t.Fatal(err)
	}
	for line, calls := range map[string]int{
		"alice create pod app/a tolerate=node.kubernetes.io/not-ready:NoExecute": 0,
		"system:node:cp1 create pod app/a node=cp1 mirror":                       0,
		"system:node:w1 create pod app/a node=cp1 mirror":                        1,
		"alice update pod app/a node=w1 -> image=other":                          0,
		"alice update pod/ephemeralcontainers app/a node=w1 -> image=other":      0,
		"alice update pod/resize app/a node=w1 -> image=other":                   0,
		"alice update pod/status app/a node=w1 -> label=a=b":                     0,
		"alice update pod app/a node=w1 override=x -> label=a=b":                 0,
		"alice update pod/status app/a node=w1 override=x -> label=a=b":          0,
		"alice update pod app/a node=w1 override=x -> image=other":               1,
		"alice update pod app/a node=w1 -> override=x":                           1,
		"alice update pod/status app/a node=w1 override=x -> no-override":        1,
		// nothing in the request says what pod it is
		"alice connect pod/exec app/plain": 1,
		"alice bind app/a to=w1":           1,
	} {
		asked, err := schedulingtest.ParseRequest(line)
		if err != nil {
			t.Fatal(err)
		}
		hook.called = 0
		if _, err := hook.ask(w, asked); err != nil || hook.called != calls {
			t.Errorf("%s: %d calls (%v), want %d", line, hook.called, err, calls)
		}
	}
}

// A-09 (d), H7: a reason of 512 bytes passes through both doors, one of 513 through neither. The mutant killed:
// maxOverride + 1.
func TestA09_TheReasonOfAnOverrideHas512Bytes(t *testing.T) {
	t.Parallel()
	hook := newConfigured(t)
	w := schedulingtest.NewWorld()
	if _, err := w.Run("cluster", false, doorsWorld, nil); err != nil {
		t.Fatal(err)
	}
	for length, allowed := range map[int]bool{512: true, 513: false} {
		asked, err := schedulingtest.ParseRequest("system:admin create pod tmp/a node=cp1 override=" +
			strings.Repeat("x", length))
		if err != nil {
			t.Fatal(err)
		}
		for name, door := range map[string]schedulingtest.Door{"plugin": ask, "webhook": hook.ask} {
			if given, err := door(w, asked); err != nil || given.Allowed != allowed ||
				!allowed && !strings.Contains(given.Message, "is too long") {
				t.Errorf("%s: %d bytes: %s %s (%v)", name, length, given, given.Message, err)
			}
		}
	}
}
