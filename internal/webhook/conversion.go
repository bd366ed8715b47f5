package webhook

import (
	"errors"
	"net/http"

	"github.com/joiner-autoscaler/joiner/internal/convert"
)

// ConversionPath is the URL path of the conversion webhook.
const ConversionPath = "/convert"

// ConversionConfig is the configuration of a [Conversion].
type ConversionConfig struct {
	// Converter converts the objects.
	Converter *convert.Converter
	// Observe is called with the objects of a review that could not be converted, for a log and metrics. It may be
	// nil. It must not wait.
	Observe func([]convert.Held)
}

// Conversion is an http.Handler for ConversionReviews of version v1 (V-20). It only computes and never waits: the API
// server waits up to 30 seconds for it, and so does every request for our kinds.
type Conversion struct {
	config ConversionConfig
}

// NewConversion returns the door, or an error that names what is missing from its configuration.
func NewConversion(config ConversionConfig) (*Conversion, error) {
	if config.Converter == nil {
		return nil, errors.New("conversion webhook: Converter is missing")
	}
	return &Conversion{config: config}, nil
}

// ServeHTTP answers a review with status 200. It answers anything else with a status of 400 to 499 and one line of
// text.
func (h *Conversion) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, status, err := readBody(w, r, convert.MaxReview)
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	answer, held, err := h.config.Converter.Review(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if len(held) > 0 && h.config.Observe != nil {
		h.config.Observe(held)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer) // a client that is gone is not our concern
}
