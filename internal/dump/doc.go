// Package dump writes down what the engine planned with and what it said, and reads it back: a bug report that replays
// itself, and a picture that can be planned for anywhere (U-06). docs/dump.md is its reference.
//
// A [Dump] is engine values. What stands in the file is a list of what may stand there, field by field (record.go):
// engine values have no field for secrets, environments, images, arguments or annotations, and a field that is new
// comes into the file when somebody writes it here (U-40). A test fails until that is done, or said why not.
//
// write.go and plan.go turn values to records and back, stream.go records to bytes and back, redact.go takes names
// away, script.go says a dump in the language of docs/scripts.md. The package is pure: it reads no file and no clock.
package dump
