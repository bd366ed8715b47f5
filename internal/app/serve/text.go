package serve

import (
	"bufio"
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Gathered serves the metrics of a gatherer with Prometheus' library.
func Gathered(from prometheus.Gatherer) http.Handler {
	return promhttp.HandlerFor(from, promhttp.HandlerOpts{})
}

// Family is a metric family of Prometheus' library that can write itself as text.
type Family struct{ *dto.MetricFamily }

// WriteTo implements io.WriterTo.
func (f Family) WriteTo(w io.Writer) (int64, error) {
	n, err := expfmt.MetricFamilyToText(w, f.MetricFamily)
	return int64(n), err
}

// Text answers a scrape with families that are text already, compressed where the request allows it. It has no other
// format: Prometheus accepts this one whatever it asks for.
func Text(w http.ResponseWriter, r *http.Request, families []io.WriterTo) {
	w.Header().Set("Content-Type", string(expfmt.NewFormat(expfmt.TypeTextPlain)))
	to := bufio.NewWriterSize(w, 64<<10)
	defer to.Flush() //nolint:errcheck // who asked has gone: there is nobody to tell
	out := io.Writer(to)
	if takesGzip(r) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Add("Vary", "Accept-Encoding")
		// The text is so repetitive that more effort makes it hardly smaller, and takes twice the time.
		packed, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		defer packed.Close() //nolint:errcheck // as above
		out = packed
	}
	for _, f := range families {
		if _, err := f.WriteTo(out); err != nil {
			panic(http.ErrAbortHandler) // otherwise half a scrape would look like a whole one
		}
	}
}

// takesGzip reports whether a request accepts a gzip answer.
func takesGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
		if strings.EqualFold(name, "gzip") {
			return strings.Trim(strings.TrimPrefix(strings.ToLower(weight), "q="), "0.") != "" || weight == ""
		}
	}
	return false
}
