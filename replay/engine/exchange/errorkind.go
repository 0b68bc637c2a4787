package exchange

import (
	"errors"
	"io"
	"net"
	"syscall"

	"plimsoll/replay/engine/target"
	"plimsoll/replay/engine/wire"
	"plimsoll/replay/record"
)

// KindOf names an error for errors.json.
func KindOf(err error) record.ErrorKind {
	var handshake target.HandshakeError
	var op *net.OpError
	switch {
	case err == nil:
		return record.None
	case errors.As(err, &handshake):
		if target.IsTimeout(err) {
			return record.Timeout
		}
		return record.TLSFailed
	case target.IsTimeout(err):
		return record.Timeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return record.ConnectRefused
	case errors.As(err, &op) && op.Op == "dial":
		return record.ConnectFailed
	case errors.Is(err, wire.ErrBadResponse):
		return record.BadResponse
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return record.Reset
	case errors.Is(err, wire.ErrClosedEarly), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return record.ClosedEarly
	}
	return record.Other
}
