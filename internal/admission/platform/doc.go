// Package platform holds what OpenShift itself runs on its control plane nodes, as data with a source for each row
// the namespaces whose pods belong there, and the few actors who put them there. Upstream, the plugin is
// configured with it. The audit recognizes the platform's own pods by it. It decides nothing.
//
// Start with components.yaml. [Component.Replay] describes how the pods of a row come to their node, in the language
// of scripts. So the evaluator and real API servers can be asked about each row.
package platform
