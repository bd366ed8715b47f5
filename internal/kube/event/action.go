package event

import (
	"fmt"
	"hash/fnv"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// To is a sink that sends events to the API server. client-go takes two events of one reason, action and version of an object for the
// same one, counts the second and drops its text. So the action has a sum of the text: what says something else is an event of its own.
func To(recorder events.EventRecorder) Sink {
	return func(about client.Object, kind Kind, reason, message string) {
		recorder.Eventf(about, nil, string(kind), reason, action(reason, message), "%s", message)
	}
}

// action is the reason, as in Karpenter, and what tells two texts apart. It may have 128 characters.
func action(reason, message string) string {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(message)) // it never fails
	return fmt.Sprintf("%s-%08x", reason, sum.Sum32())
}
