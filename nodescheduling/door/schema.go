package door

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"

	configv1 "github.com/joiner-autoscaler/joiner/nodescheduling/api/config/v1"
)

// schema reads the OpenAPI v3 schema of Scheduler that the API server publishes. It is not safe for concurrent use.
type schema struct {
	client rest.Interface
	// url is the URL of the document read last. It changes with the content, so an unchanged document is not fetched
	// again.
	url   string
	keeps bool
}

// documents is the part of the list of documents that is read.
type documents struct {
	Paths map[string]struct {
		URL string `json:"serverRelativeURL"`
	} `json:"paths"`
}

// published is the part of a document that is read.
type published struct {
	Components struct {
		Schemas map[string]*field `json:"schemas"`
	} `json:"components"`
}

// field is the part of a schema that is read.
type field struct {
	Properties map[string]*field `json:"properties"`
	Unknown    bool              `json:"x-kubernetes-preserve-unknown-fields"`
	Kinds      []struct {
		Group, Version, Kind string
	} `json:"x-kubernetes-group-version-kind"`
}

// errUnpublished says that a served kind has no published schema. That is so for a moment after the API server starts,
// and after the CRD is created.
var errUnpublished = errors.New("the API server publishes no schema of Scheduler yet")

// look reports whether the API server keeps spec.schedulingGroups of Scheduler. The API server must serve the kind.
func (s *schema) look(ctx context.Context) (bool, error) {
	if s.client == nil {
		return false, errors.New("reading the schema of Scheduler: there is no client for it")
	}
	var all documents
	if err := s.get(ctx, "/openapi/v3", &all); err != nil {
		return false, err
	}
	document := all.Paths["apis/"+configv1.GroupVersion().String()]
	if document.URL == "" {
		return false, errUnpublished
	}
	if document.URL == s.url {
		return s.keeps, nil
	}
	var content published
	if err := s.get(ctx, document.URL, &content); err != nil {
		return false, err
	}
	for _, kind := range content.Components.Schemas {
		if kind.is("Scheduler") {
			s.url, s.keeps = document.URL, kind.keeps("spec", "schedulingGroups")
			return s.keeps, nil
		}
	}
	return false, errUnpublished
}

func (s *schema) get(ctx context.Context, url string, into any) error {
	content, err := s.client.Get().RequestURI(url).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err == nil {
		err = json.Unmarshal(content, into)
	}
	if err != nil {
		return fmt.Errorf("reading the schema of Scheduler from %s: %w", url, err)
	}
	return nil
}

// is reports whether this is the schema of the kind, and not of its list.
func (f *field) is(kind string) bool {
	if f == nil {
		return false
	}
	for _, of := range f.Kinds {
		if of.Group == configv1.Group && of.Version == configv1.Version && of.Kind == kind {
			return true
		}
	}
	return false
}

// keeps reports whether the API server keeps the field at path: it is in the schema, or unknown fields are kept.
func (f *field) keeps(path ...string) bool {
	switch {
	case f == nil:
		return false
	case f.Unknown || len(path) == 0:
		return true
	}
	return f.Properties[path[0]].keeps(path[1:]...)
}
