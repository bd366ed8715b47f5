package webhook

import (
	"errors"
	"net/http"

	"github.com/joiner-autoscaler/joiner/internal/convert"
)

// ConversionPath is where the API server finds the conversion.
const ConversionPath = "/convert"

// ConversionConfig is what the door of conversion needs.
type ConversionConfig struct {
	// Converter does the work.
	Converter *convert.Converter
	// Observe is told which objects could not be converted, for a log and metrics, whenever one is asked for. It may be
	// nil. It must not wait.
	Observe func([]convert.Held)
}

// Conversion is an http.Handler for ConversionReviews of version v1 (V-20). It takes no time but that of computing: the
// API server waits up to 30 seconds, and every request for our kinds waits with it.
type Conversion struct {
	config ConversionConfig
}

// NewConversion makes the door. An error names what is missing from its configuration.
func NewConversion(config ConversionConfig) (*Conversion, error) {
	if config.Converter == nil {
		return nil, errors.New("conversion webhook: Converter is missing")
	}
	return &Conversion{config: config}, nil
}

// ServeHTTP answers a review with status 200, and what is no review with a status of 400 to 499 and one line of text.
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
