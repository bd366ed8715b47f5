package ec2cloud

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
)

// Call is a request to AWS on its way.
type Call struct {
	// Action is the AWS action, such as CreateFleet. Subject is its object, which is the same in every run.
	Action, Subject string
	// Makes says that the call makes machines.
	Makes bool
	// Do executes the call.
	Do func()
	// Refuse gives the caller an answer without effect. Lose gives one that leaves the effect open, or a connection
	// error. n chooses the answer.
	Refuse, Lose func(n int) error
}

// Transport takes a request to AWS, and returns once its caller has an answer or an error.
type Transport func(ctx context.Context, c Call) error

// direct executes requests at once.
func direct(_ context.Context, c Call) error {
	c.Do()
	return nil
}

// wire is the HTTP client of the SDK's clients; it calls the endpoint without a socket.
type wire struct {
	account *Account
	send    Transport
}

// Do implements aws.HTTPClient.
func (w wire) Do(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	action, subject := nameOf(r, body)
	var answer *http.Response
	refuse := func(list ...func() (*http.Response, error)) func(int) error {
		return func(n int) (err error) {
			answer, err = list[n%len(list)]()
			return err
		}
	}
	err := w.send(r.Context(), Call{
		Action: action, Subject: subject, Makes: action == "CreateFleet",
		Do: func() {
			if answer = w.account.serve(r, body); action == "CreateFleet" || action == "TerminateInstances" {
				w.account.settle()
			}
		},
		Refuse: refuse(refusedWith(http.StatusServiceUnavailable, "RequestLimitExceeded"),
			refusedWith(http.StatusServiceUnavailable, "RequestLimitExceeded"),
			refusedWith(http.StatusServiceUnavailable, "Unavailable"),
			refusedWith(http.StatusInternalServerError, "InternalError"), cut("connection refused")),
		Lose: refuse(refusedWith(http.StatusInternalServerError, "InternalError"), cut("unexpected EOF"),
			cut("i/o timeout")),
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// serve passes a request to the endpoint.
func (a *Account) serve(r *http.Request, body []byte) *http.Response {
	sent := r.Clone(context.Background()) // a request on its way lands, whatever happens to its caller
	sent.Body = io.NopCloser(bytes.NewReader(body))
	sent.Host, sent.RequestURI = r.URL.Host, ""
	recorder := httptest.NewRecorder()
	a.endpoint.ServeHTTP(recorder, sent)
	return recorder.Result()
}

// nameOf returns the action of a request and its subject, which is the same in every run.
func nameOf(r *http.Request, body []byte) (action, subject string) {
	if target := r.Header.Get("X-Amz-Target"); target != "" {
		return target[strings.LastIndex(target, ".")+1:], ""
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "unreadable", ""
	}
	action = form.Get("Action")
	switch action {
	case "CreateFleet":
		subject = form.Get("ClientToken")
	case "CreateLaunchTemplate":
		subject = form.Get("LaunchTemplateName")
	case "TerminateInstances", "DescribeInstances":
		subject = form.Get("InstanceId.1")
	}
	return action, subject
}

// refusedWith returns an error answer of EC2.
func refusedWith(status int, code string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		text := fmt.Sprintf(
			"<Response><Errors><Error><Code>%s</Code><Message>simulation</Message></Error></Errors><RequestID>r</RequestID></Response>",
			code)
		return &http.Response{StatusCode: status,
			Header: http.Header{"Content-Type": {"text/xml;charset=UTF-8"}}, ContentLength: int64(len(text)),
			Body: io.NopCloser(strings.NewReader(text))}, nil
	}
}

// cut returns a connection error.
func cut(text string) func() (*http.Response, error) {
	return func() (*http.Response, error) { return nil, errors.New("simulation: " + text) }
}
