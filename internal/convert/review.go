package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const (
	// MaxReview is the most bytes a review may have. An API server asks for single objects when it reads its storage,
	// each at most 1.5 MiB. A larger review cannot come from it.
	MaxReview = 64 << 20
	// maxObjects is the most objects in a review.
	maxObjects = 20_000

	reviewVersion = "apiextensions.k8s.io/v1"
	reviewKind    = "ConversionReview"
)

// review is a ConversionReview of apiextensions.k8s.io/v1.
type review struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Request    *reviewRequest  `json:"request,omitempty"`
	Response   *reviewResponse `json:"response,omitempty"`
}

type reviewRequest struct {
	UID               string            `json:"uid"`
	DesiredAPIVersion string            `json:"desiredAPIVersion"`
	Objects           []json.RawMessage `json:"objects"`
}

type reviewResponse struct {
	UID              string            `json:"uid"`
	ConvertedObjects []json.RawMessage `json:"convertedObjects"`
	Result           reviewStatus      `json:"result"`
}

type reviewStatus struct {
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

// Held is an object that could not be converted; the answer has a stand-in for it.
type Held struct {
	Kind, Name string
	Problems   []Problem
}

// String is one line.
func (h Held) String() string { return h.Kind + " " + h.Name + ": " + Describe(h.Problems) }

// Review answers a ConversionReview, both in JSON, and returns which objects could not be converted. Whatever an API
// server can ask about our kinds, the answer is a success. A failure would block every list and watch with the object,
// and also those who could fix it (V-24). Only a request that makes no sense fails as a whole. The error means that
// data is not a review, and there is no answer.
func (c *Converter) Review(data []byte) (answer []byte, held []Held, err error) {
	if len(data) > MaxReview {
		return nil, nil, fmt.Errorf("the review has %d bytes: at most %d are read", len(data), MaxReview)
	}
	var asked review
	if err := json.Unmarshal(data, &asked); err != nil {
		return nil, nil, fmt.Errorf("reading the review: %w", err)
	}
	if asked.APIVersion != reviewVersion || asked.Kind != reviewKind {
		return nil, nil, fmt.Errorf("the review is %s of %s: it must be %s of %s", shorten(asked.Kind, 63),
			shorten(asked.APIVersion, 63), reviewKind, reviewVersion)
	}
	if asked.Request == nil {
		return nil, nil, errors.New("the review has no request")
	}
	response := &reviewResponse{UID: asked.Request.UID, Result: reviewStatus{Status: "Success"}}
	if response.ConvertedObjects, held, err = c.convertAll(asked.Request); err != nil {
		response.ConvertedObjects, held = []json.RawMessage{}, nil
		response.Result = reviewStatus{Status: "Failure", Message: err.Error()}
	}
	answer, err = json.Marshal(review{APIVersion: reviewVersion, Kind: reviewKind, Response: response})
	return answer, held, err
}

func (c *Converter) convertAll(request *reviewRequest) ([]json.RawMessage, []Held, error) {
	if len(request.Objects) > maxObjects {
		return nil, nil, fmt.Errorf("the request has %d objects: at most %d are converted at once",
			len(request.Objects), maxObjects)
	}
	wantedGroup, version, _ := strings.Cut(request.DesiredAPIVersion, "/")
	converted := make([]json.RawMessage, 0, len(request.Objects))
	var held []Held
	for i, data := range request.Objects {
		o, err := Decode(data)
		if err != nil {
			return nil, nil, fmt.Errorf("object %d: %w", i, err)
		}
		name := text(at(o, "metadata"), "name")
		if group, _, _ := strings.Cut(text(o, "apiVersion"), "/"); group != wantedGroup {
			return nil, nil, fmt.Errorf("object %d, %q, has the apiVersion %q: it cannot be converted to %q", i, name,
				text(o, "apiVersion"), request.DesiredAPIVersion)
		}
		result, err := c.Convert(o, version)
		if err != nil {
			return nil, nil, fmt.Errorf("object %d, %q: %w", i, name, err)
		}
		if len(result.Problems) > 0 {
			held = append(held, Held{Kind: text(o, "kind"), Name: name, Problems: result.Problems})
		}
		converted = append(converted, json.RawMessage(encode(result.Object)))
	}
	return converted, held, nil
}
