package ec2test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// awsJSON is the protocol of services with a header X-Amz-Target: JSON in and out.
type awsJSON struct {
	target  string // what the target begins with
	version string // of the content type: 1.0 or 1.1
}

func (p awsJSON) read(r *http.Request, body []byte) (string, any, error) {
	name, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), p.target+".")
	if !ok {
		return "", nil, refuse(400, "UnknownOperationException", "X-Amz-Target is %q; it begins with %s",
			r.Header.Get("X-Amz-Target"), p.target)
	}
	if kind := r.Header.Get("Content-Type"); kind != "application/x-amz-json-"+p.version {
		return name, nil,
			refuse(400, "SerializationException", "Content-Type is %q; application/x-amz-json-%s is allowed",
				kind, p.version)
	}
	return name, json.RawMessage(body), nil
}

func (awsJSON) decode(parameters, into any) error {
	return decodeJSON(parameters.(json.RawMessage), into)
}

// decodeJSON is strict: the endpoint must not silently ignore what it does not know.
func decodeJSON(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax), errors.As(err, &kind), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return refuse(400, "SerializationException", "%v", err)
	}
	return fmt.Errorf("the endpoint does not know: %w", err)
}

func (p awsJSON) answer(w http.ResponseWriter, a answer) error {
	w.Header().Set("Content-Type", "application/x-amz-json-"+p.version)
	w.Header().Set("X-Amzn-Requestid", a.id)
	return writeJSON(w, http.StatusOK, a.result)
}

func (p awsJSON) refuse(w http.ResponseWriter, id string, no *refused) {
	w.Header().Set("Content-Type", "application/x-amz-json-"+p.version)
	w.Header().Set("X-Amzn-Requestid", id)
	_ = writeJSON(w, min(no.status, 500), map[string]string{"__type": jsonCode(no.code), "message": no.message})
}

// jsonCode spells the codes of refused signatures as the JSON services do.
func jsonCode(code string) string {
	switch code {
	case codeExpired, codeWrongSignature:
		return "InvalidSignatureException"
	case codeUnknownKey:
		return "UnrecognizedClientException"
	case codeInternal:
		return "InternalServerError"
	}
	return code
}

func writeJSON(w http.ResponseWriter, status int, document any) error {
	if document == nil {
		document = struct{}{}
	}
	text, err := json.Marshal(document)
	if err != nil {
		return err
	}
	w.WriteHeader(status)
	_, _ = w.Write(text)
	return nil
}

// restJSON is EKS's protocol: methods and paths, JSON out.
type restJSON struct{}

func (restJSON) read(r *http.Request, _ []byte) (string, any, error) {
	name, ok := strings.CutPrefix(r.URL.Path, "/clusters/")
	if r.Method == http.MethodGet && ok && !strings.Contains(name, "/") {
		return "DescribeCluster", name, nil
	}
	return r.Method + " " + r.URL.Path, nil, nil
}

func (restJSON) decode(parameters, into any) error {
	*into.(*string) = parameters.(string)
	return nil
}

func (restJSON) answer(w http.ResponseWriter, a answer) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Requestid", a.id)
	return writeJSON(w, http.StatusOK, a.result)
}

func (restJSON) refuse(w http.ResponseWriter, id string, no *refused) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Requestid", id)
	w.Header().Set("X-Amzn-Errortype", jsonCode(no.code))
	_ = writeJSON(w, no.status, map[string]string{"message": no.message})
}
