// Package platform holds what OpenShift itself has on its control plane nodes, as data with a source for each row
// the namespaces whose pods belong there, and the few actors who put them there. It is what the plugin is
// configured with upstream, and what the audit tells the platform's own pods by. It decides nothing.
//
// Start with components.yaml. [Component.Replay] says in the language of scripts how the pods of a row come to
// their node, so that the evaluator and real API servers can be asked about each row.
package platform
