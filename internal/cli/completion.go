package cli

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Bounds of completion: how long a shell waits for names, and how many it gets.
const (
	completionTime = 3 * time.Second
	completionMost = 500
)

// completes offers a shell the names of objects of a cluster (U-28), as NAMESPACE/NAME for namespaced ones. Without a
// cluster, or without the right to list, it offers nothing and prints no error: the user is in the middle of a command
// line.
func completes(config Config, connection *Connection, resource schema.GroupVersionResource) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		client, err := config.Client(*connection)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(command.Context(), completionTime)
		defer cancel()
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: completionMost})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for _, item := range list.Items {
			name := item.GetName()
			if item.GetNamespace() != "" {
				name = item.GetNamespace() + "/" + name
			}
			if strings.HasPrefix(name, begun) {
				names = append(names, name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
