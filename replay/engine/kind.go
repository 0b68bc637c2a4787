package engine

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"plimsoll/replay/record"
)

// kindOf names an error for errors.json.
func kindOf(err error) record.ErrorKind {
	var handshake tlsError
	var op *net.OpError
	switch {
	case err == nil:
		return record.None
	case errors.As(err, &handshake):
		if isTimeout(err) {
			return record.Timeout
		}
		return record.TLSFailed
	case isTimeout(err):
		return record.Timeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return record.ConnectRefused
	case errors.As(err, &op) && op.Op == "dial":
		return record.ConnectFailed
	case errors.Is(err, errBadResponse):
		return record.BadResponse
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return record.Reset
	case errors.Is(err, errClosedEarly), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return record.ClosedEarly
	}
	return record.Other
}

func isTimeout(err error) bool {
	var network net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || (errors.As(err, &network) && network.Timeout())
}
