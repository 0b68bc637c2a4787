//go:build !linux

// The port of a connection: other systems choose it at once.

package target

import "syscall"

func portLater(string, string, syscall.RawConn) error { return nil }
