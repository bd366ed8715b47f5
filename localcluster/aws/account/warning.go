package account

import (
	"encoding/json"
	"time"
)

// Warning returns EventBridge's message that EC2 will reclaim a spot instance two minutes after at. The queue accepts
// messages from everybody, so that users can send one with aws sqs send-message.
func Warning(instance string, at time.Time) string {
	text, err := json.Marshal(map[string]any{
		"version": "0", "id": "warning-of-" + instance, "detail-type": "EC2 Spot Instance Interruption Warning",
		"source": "aws.ec2", "time": at.UTC().Format(time.RFC3339), "region": Region, "resources": []string{},
		"detail": map[string]string{"instance-id": instance, "instance-action": "terminate"},
	})
	if err != nil {
		panic(err) // texts only
	}
	return string(text)
}
