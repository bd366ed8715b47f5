package ec2test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"mime"
	"net/http"
	"net/url"
)

// protocol is the wire format of a service's requests and answers.
type protocol interface {
	// read returns the action and its parameters.
	read(r *http.Request, body []byte) (string, any, error)
	// decode fills the struct that into points to with the parameters, all of them.
	decode(parameters, into any) error
	answer(w http.ResponseWriter, a answer) error
	refuse(w http.ResponseWriter, id string, no *refused)
}

// service is a part of AWS: its protocol and its actions.
type service struct {
	protocol protocol
	actions  map[string]action
}

// action executes a request and returns its answer.
type action func(c *call) (any, error)

// typed makes an action of a function with a typed request.
func typed[In any](p protocol, do func(c *call, in *In) (any, error)) action {
	return func(c *call) (any, error) {
		in := new(In)
		if err := p.decode(c.parameters, in); err != nil {
			var no *refused
			if !errors.As(err, &no) {
				err = errors.Join(errors.New(c.name()), err)
			}
			return nil, err
		}
		return do(c, in)
	}
}

// ec2Query is EC2's protocol: a form in, XML out.
type ec2Query struct{}

const ec2Version = "2016-11-15"

func (ec2Query) read(r *http.Request, body []byte) (string, any, error) {
	return readQuery(r, body, ec2Version)
}

// readQuery reads the request of a query protocol: a form with Action and Version.
func readQuery(r *http.Request, body []byte, version string) (string, any, error) {
	form := r.URL.Query()
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/x-www-form-urlencoded" {
		values, err := url.ParseQuery(string(body))
		if err != nil {
			return "", nil, refuse(400, "MalformedQueryString", "the form cannot be read: %v", err)
		}
		for name, list := range values {
			form[name] = append(form[name], list...)
		}
	}
	tree, err := parseForm(form)
	if err != nil {
		return "", nil, err
	}
	name := ""
	if at := tree.below["Action"]; at != nil {
		name = at.value
	}
	if name == "" {
		return "", nil, refuse(400, "MissingAction", "The request must contain the parameter Action")
	}
	if at := tree.below["Version"]; at == nil || at.value != version {
		return name, nil, refuse(400, "InvalidParameterValue", "parameter Version has to be %s", version)
	}
	delete(tree.below, "Action")
	delete(tree.below, "Version")
	return name, tree, nil
}

func (ec2Query) decode(parameters, into any) error { return decodeForm(parameters.(*parameter), into) }

func (ec2Query) answer(w http.ResponseWriter, a answer) error {
	inner, err := innerXML(a.result)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	return writeXML(w, http.StatusOK, struct {
		XMLName xml.Name
		NS      string `xml:"xmlns,attr"`
		ID      string `xml:"requestId"`
		Inner   []byte `xml:",innerxml"`
	}{XMLName: xml.Name{Local: a.action + "Response"}, NS: "http://ec2.amazonaws.com/doc/" + ec2Version + "/",
		ID: a.id, Inner: inner})
}

func (ec2Query) refuse(w http.ResponseWriter, id string, no *refused) {
	type one struct {
		Code    string `xml:"Code"`
		Message string `xml:"Message"`
	}
	w.Header().Set("Content-Type", "text/xml;charset=UTF-8")
	_ = writeXML(w, no.status, struct {
		XMLName xml.Name `xml:"Response"`
		Errors  []one    `xml:"Errors>Error"`
		ID      string   `xml:"RequestID"`
	}{Errors: []one{{no.code, no.message}}, ID: id})
}

// writeXML writes a document. It ignores a client that no longer listens.
func writeXML(w http.ResponseWriter, status int, document any) error {
	text, err := xml.Marshal(document)
	if err != nil {
		return err
	}
	w.WriteHeader(status)
	_, _ = w.Write(append([]byte(xml.Header), text...))
	return nil
}

// innerXML returns the elements of a struct without one around them.
func innerXML(of any) ([]byte, error) {
	if of == nil {
		return nil, nil
	}
	var text bytes.Buffer
	encoder := xml.NewEncoder(&text)
	if err := encoder.EncodeElement(of, xml.StartElement{Name: xml.Name{Local: "_"}}); err != nil {
		return nil, err
	}
	inner := bytes.TrimPrefix(text.Bytes(), []byte("<_>"))
	return bytes.TrimSuffix(inner, []byte("</_>")), nil
}

// throttledBy returns the refusal for too many calls.
func throttledBy(p protocol) error {
	switch p.(type) {
	case ec2Query:
		return refuse(503, codeThrottled, "Request limit exceeded.")
	case iamQuery:
		return refuse(400, "Throttling", "Rate exceeded")
	}
	return refuse(400, "ThrottlingException", "Rate exceeded")
}
