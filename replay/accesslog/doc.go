// Package accesslog reads web servers' access logs as goaccess does.
//
// A log's format is a goaccess log-format string, or the name of one of goaccess's presets. It is compiled once,
// into a small program that runs over the bytes of a line and allocates nothing:
//
//	format, err := accesslog.Compile(accesslog.Spec{Log: "COMBINED"})
//	var request accesslog.Request
//	if mismatch := format.Parse(line, &request); mismatch != nil { … }
//
// Whole logs, plain or compressed, one file or a rotated set, are read on all cores in constant memory: Open finds
// the files, FormatFor compiles or detects their format, Count folds them into totals, and Read hands out requests
// merged by time.
//
// What a specifier means, what makes a line valid, and where this package differs from goaccess on purpose, is
// written in docs/log-formats.md. Tests hold the package against the real goaccess.
package accesslog
