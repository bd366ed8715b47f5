// Package webhook holds the doors that an API server calls over HTTP. A door is an adapter: it reads the request within
// bounds of size and time, asks a pure package, and writes the answer. It decides nothing.
//
//   - [NodeScheduling] asks package nodescheduling/evaluator who may place pods on protected nodes.
//   - [Conversion] asks package internal/convert for objects of v1beta1 in v1, and back.
//
// Whoever serves a door brings the TLS certificate, the caches behind its ports, and the end of the process.
package webhook
