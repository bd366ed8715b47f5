// Package webhook holds the doors that an API server calls over HTTP. A door is an adapter: it reads the request
// within bounds of size and time, asks a pure package, and writes the answer. It decides nothing.
//
//   - [NodeScheduling] asks package nodescheduling/evaluator who may place pods on protected nodes.
//   - [Conversion] asks package internal/convert for objects of v1beta1 in v1, and back.
//
// The program that serves a door provides the TLS certificate and the caches behind its ports, and handles shutdown.
package webhook
