// Package dump writes down what the engine planned with and what it said, and reads it back (U-06). A dump is a bug
// report that replays itself, and a snapshot that can be planned for anywhere. docs/dump.md is its reference.
//
// A [Dump] is engine values. record.go lists what a file may contain, field by field. Engine values have no field for
// secrets, environments, images, arguments or annotations, and a new field gets into the file only when somebody adds
// it here (U-40). A test fails until that is done, or until somebody has given a reason against it.
//
// write.go and plan.go turn values into records and back, stream.go records into bytes and back. redact.go removes
// names, and script.go writes a dump in the language of docs/scripts.md. The package is pure: it reads no file and no
// clock.
package dump
