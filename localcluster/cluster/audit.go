package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Event is what the audit log says about one finished request. A watch is finished when it ends.
type Event struct {
	User       string // as authenticated
	UserAgent  string // as sent by the client, not checked
	Verb       string // get, list, watch, create, update, patch, delete, deletecollection
	URI        string // path and query
	Group      string // API group of the resource; empty: core, or no resource
	Resource   string // plural; empty for a request such as /readyz
	Sub        string // subresource, such as status or binding
	Namespace  string
	Name       string
	Code       int       // HTTP status
	ReceivedAt time.Time // to the microsecond
	DoneAt     time.Time
}

// RequestKind is the key by which CountRequests counts.
type RequestKind struct {
	User      string
	UserAgent string
	Verb      string
	Resource  string // "pods", "pods/binding", "nodeclaims.karpenter.sh/status"; empty: no resource
}

// Requests maps each kind of request to the number of its requests.
type Requests map[RequestKind]int

// Total returns the number of requests of the kinds that keep chooses; a nil
// keep chooses all.
func (r Requests) Total(keep func(RequestKind) bool) int {
	total := 0
	for kind, count := range r {
		if keep == nil || keep(kind) {
			total += count
		}
	}
	return total
}

// AuditLog returns the path of the audit log, a JSON event per line, or "" if
// Options.Audit is not set.
func (c *Cluster) AuditLog() string {
	if !c.setup.options.Audit {
		return ""
	}
	return filepath.Join(c.Dir(), auditLogFile)
}

// Kind returns what the event counts as.
func (e Event) Kind() RequestKind {
	resource := e.Resource
	if e.Group != "" {
		resource += "." + e.Group
	}
	if e.Sub != "" {
		resource += "/" + e.Sub
	}
	return RequestKind{User: e.User, UserAgent: e.UserAgent, Verb: e.Verb, Resource: resource}
}

// CountRequests counts the events of an audit log for which keep returns true;
// a nil keep counts all. It may be called while the API server writes.
func CountRequests(path string, keep func(Event) bool) (Requests, error) {
	counts := Requests{}
	err := ReadAudit(path, func(e Event) {
		if keep == nil || keep(e) {
			counts[e.Kind()]++
		}
	})
	if err != nil {
		return nil, err
	}
	return counts, nil
}

// ReadAudit calls visit for each event of an audit log, in the order in which
// the requests ended. A line that is still being written is left out. A log
// that does not exist is an error.
func ReadAudit(path string, visit func(Event)) error {
	if path == "" {
		return errors.New("reading the audit log: the path is empty: set Options.Audit")
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the audit log: %w: set Options.Audit", err)
	}
	if err != nil {
		return fmt.Errorf("reading the audit log: %w", err)
	}
	defer file.Close()
	reader := bufio.NewReaderSize(file, 1<<20)
	for line := 1; ; line++ {
		data, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the audit log: %w", err)
		}
		var raw auditEvent
		if err := json.Unmarshal(data, &raw); err != nil {
			return fmt.Errorf("reading %s, line %d: %w", path, line, err)
		}
		if raw.Stage == "ResponseComplete" {
			visit(raw.event())
		}
	}
}

// auditEvent is the part of audit.k8s.io/v1 Event that is read here.
type auditEvent struct {
	Stage      string `json:"stage"`
	Verb       string `json:"verb"`
	RequestURI string `json:"requestURI"`
	UserAgent  string `json:"userAgent"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	ObjectRef struct {
		APIGroup    string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
	StageTimestamp           time.Time `json:"stageTimestamp"`
}

func (raw auditEvent) event() Event {
	return Event{
		User:       raw.User.Username,
		UserAgent:  raw.UserAgent,
		Verb:       raw.Verb,
		URI:        raw.RequestURI,
		Group:      raw.ObjectRef.APIGroup,
		Resource:   raw.ObjectRef.Resource,
		Sub:        raw.ObjectRef.Subresource,
		Namespace:  raw.ObjectRef.Namespace,
		Name:       raw.ObjectRef.Name,
		Code:       raw.ResponseStatus.Code,
		ReceivedAt: raw.RequestReceivedTimestamp,
		DoneAt:     raw.StageTimestamp,
	}
}
