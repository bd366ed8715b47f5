package joiner

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// requests that arrive slowly hold no place of those that have arrived, however many they are.
func TestSlowRequestsHoldNoPlaces(t *testing.T) {
	t.Parallel()
	const places = 2
	server := httptest.NewServer(atOnce(places, 100, 1000, echo()))
	defer server.Close()
	var senders []*io.PipeWriter
	answers := make(chan string)
	for range 2 * places {
		body, sender := io.Pipe()
		senders = append(senders, sender)
		go func() { answers <- ask(t, server.URL, body) }()
		if _, err := io.WriteString(sender, "slow"); err != nil {
			t.Fatal(err)
		}
	}
	for range places + 1 {
		if answer := ask(t, server.URL, strings.NewReader("fast")); answer != "200 fast" {
			t.Errorf("beside slow ones: %s", answer)
		}
	}
	for _, sender := range senders {
		_ = sender.Close()
		if answer := <-answers; answer != "200 slow" {
			t.Errorf("a slow one: %s", answer)
		}
	}
}

// what has arrived is bounded in all requests together, and free again after them; places are bounded too, and
// wait for nobody who is gone.
func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()
	entered, leave := make(chan struct{}), make(chan struct{})
	handler := atOnce(1, 10, 15, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		entered <- struct{}{}
		<-leave
		echo().ServeHTTP(w, r)
	}))
	first := make(chan string)
	go func() { first <- answered(t, handler, strings.Repeat("a", 10)) }()
	<-entered
	if answer := answered(t, handler, strings.Repeat("b", 10)); !strings.HasPrefix(answer,
		"503 requests of more than 15 bytes") {
		t.Errorf("too many bytes: %s", answer)
	}
	second := make(chan string)
	go func() { second <- answered(t, handler, "c") }()
	select {
	case <-entered:
		t.Error("two at once")
	case leave <- struct{}{}:
	}
	if answer := <-first; answer != "200 aaaaaaaaaa" {
		t.Errorf("the first: %s", answer)
	}
	<-entered
	leave <- struct{}{}
	if answer := <-second; answer != "200 c" {
		t.Errorf("the one that waited: %s", answer)
	}
	go func() { first <- answered(t, handler, strings.Repeat("d", 20)) }()
	<-entered
	leave <- struct{}{}
	if answer := <-first; answer != "200 "+strings.Repeat("d", 11) {
		t.Errorf("a large one, which the handler has to refuse: %s", answer)
	}
}

func echo() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })
}

func answered(t *testing.T, handler http.Handler, body string) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/",
		strings.NewReader(body)))
	return recorder.Result().Status[:4] + recorder.Body.String()
}

func ask(t *testing.T, url string, body io.Reader) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Error(err)
		return ""
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response.Status[:4] + string(content)
}
