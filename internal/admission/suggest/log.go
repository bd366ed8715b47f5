package suggest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/joiner-autoscaler/joiner/nodescheduling/evaluator"
)

// event is the part of an audit log event (audit.k8s.io/v1) that is read.
type event struct {
	Kind             string            `json:"kind"`
	APIVersion       string            `json:"apiVersion"`
	Stage            string            `json:"stage"`
	RequestURI       string            `json:"requestURI"`
	Verb             string            `json:"verb"`
	User             sender            `json:"user"`
	ImpersonatedUser *sender           `json:"impersonatedUser"`
	ObjectRef        *object           `json:"objectRef"`
	ResponseStatus   *status           `json:"responseStatus"`
	Annotations      map[string]string `json:"annotations"`
}

type sender struct {
	Username string   `json:"username"`
	Groups   []string `json:"groups"`
}

type object struct {
	Resource    string `json:"resource"`
	Namespace   string `json:"namespace"`
	Subresource string `json:"subresource"`
}

type status struct {
	Code int `json:"code"`
}

// ReadAuditLog reads an audit log of API servers, one event on each line. It notes who placed pods, from the
// annotations of the door. It takes only requests that passed: with an entry (authorized), or without one in mode
// Inform.
func (c *Collector) ReadAuditLog(in io.Reader) error {
	decoder := json.NewDecoder(bufio.NewReader(in))
	for number := 1; ; number++ {
		var e event
		err := decoder.Decode(&e)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("event %d: %w: it must be an event of an audit log, in JSON", number, err)
		}
		if group, _, _ := strings.Cut(e.APIVersion, "/"); group != "audit.k8s.io" || e.Kind != "Event" {
			return fmt.Errorf("event %d: it is %q of %q: it must be an Event of audit.k8s.io", number, e.Kind,
				e.APIVersion)
		}
		c.event(e)
	}
}

// event notes the needs that one event shows.
func (c *Collector) event(e event) {
	failed := e.ResponseStatus != nil && e.ResponseStatus.Code >= 400
	if e.Stage != "ResponseComplete" || e.ObjectRef == nil || failed || strings.Contains(e.RequestURI, "dryRun=") {
		return
	}
	from := e.User
	if e.ImpersonatedUser != nil {
		from = *e.ImpersonatedUser
	}
	decisions, groups, reasons := noted(e.Annotations, evaluator.AuditDecision),
		noted(e.Annotations, evaluator.AuditGroup),
		noted(e.Annotations, evaluator.AuditReason)
	for i := range min(len(decisions), len(groups), len(reasons)) {
		g, ours := c.groups[groups[i]]
		passed := decisions[i] == string(evaluator.Authorized) || decisions[i] == string(evaluator.InformOnly)
		override := reasons[i] == string(evaluator.OverrideMisused) ||
			reasons[i] == string(evaluator.OverrideTampered)
		if !ours || !passed || override {
			continue
		}
		does := "creates pods"
		switch {
		case e.ObjectRef.Subresource == "binding" || e.ObjectRef.Resource == "bindings":
			does = "binds pods"
		case e.Verb == "update" || e.Verb == "patch":
			does = "changes pods"
		}
		groups := slices.Clone(from.Groups)
		c.namespace(g, e.ObjectRef.Namespace, "pods of the audit log")
		c.actor(g, from.Username, groups, e.ObjectRef.Namespace, "audit log: "+does)
	}
}

// noted returns the values of an annotation of the door, one for each group. The plugin writes it with its prefix. For
// a webhook, the API server uses the webhook's name as prefix, which is the same.
func noted(annotations map[string]string, key string) []string {
	return strings.Split(annotations[evaluator.AuditPrefix+"/"+key], ",")
}

var (
	metric = regexp.MustCompile(`^node_scheduling_policy_entry_uses_total\{(.*)\} (\S+)$`)
	label  = regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)
)

// ReadMetrics reads a door's /metrics: how often each entry let a request pass (H19). Call it for each replica: the
// counts are added.
func (c *Collector) ReadMetrics(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	found := false
	for lines.Scan() {
		sample := metric.FindStringSubmatch(lines.Text())
		if sample == nil {
			continue
		}
		labels := map[string]string{}
		for _, pair := range label.FindAllStringSubmatch(sample[1], -1) {
			value, err := strconv.Unquote(`"` + pair[2] + `"`)
			if err != nil {
				return fmt.Errorf("%q: %w", lines.Text(), err)
			}
			labels[pair[1]] = value
		}
		count, err := strconv.ParseFloat(sample[2], 64)
		if err != nil {
			return fmt.Errorf("%q: %w", lines.Text(), err)
		}
		c.uses[use{labels["group"], labels["entry"]}] += count
		found = true
	}
	if err := lines.Err(); err != nil {
		return err
	}
	if !found {
		return errors.New("it has no sample of node_scheduling_policy_entry_uses_total: " +
			"give what the plugin or the webhook shows at /metrics")
	}
	return nil
}
