package event

import (
	"fmt"
	"hash/fnv"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// To returns a sink that sends events to the API server. If two events about one version of an object have the same
// reason and action, client-go counts the second and drops its text. So the action contains a checksum of the text:
// another text is another event.
func To(recorder events.EventRecorder) Sink {
	return func(about client.Object, kind Kind, reason, message string) {
		recorder.Eventf(about, nil, string(kind), reason, action(reason, message), "%s", message)
	}
}

// action returns the reason, as in Karpenter, and a checksum of the text. The API allows 128 characters.
func action(reason, message string) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(message)) // it never fails
	return fmt.Sprintf("%s-%08x", reason, sum.Sum32())
}
