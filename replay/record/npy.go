package record

import (
	"fmt"
	"strings"
)

// The header of requests.npy takes this many bytes whatever the number of records, so that it can be rewritten
// in place. Format: NEP 1, version 1.0: magic, version, length of the rest (u2, little endian), then a Python
// literal padded with spaces to its final line feed.
const headerSize = 512

// The shape is at a fixed place and has a fixed width, so that updating it is one write of a few bytes
// within one page: no reader can see half of a header.
const shapeDigits = 20

var columns = [...][2]string{
	{"due_ns", "<i8"}, {"lag_us", "<u4"}, {"dns_us", "<u4"}, {"connect_us", "<u4"}, {"tls_us", "<u4"},
	{"ttfb_us", "<u4"}, {"total_us", "<u4"}, {"bytes", "<i8"}, {"logged_bytes", "<i8"}, {"line", "<u8"},
	{"client", "<u4"}, {"route", "<u2"}, {"status", "<u2"}, {"logged_status", "<u2"}, {"error", "|u1"}, {"flags", "|u1"},
}

var headerText, shapeOffset = func() (string, int64) {
	var b strings.Builder
	b.WriteString("\x93NUMPY\x01\x00")
	b.Write([]byte{(headerSize - 10) & 0xff, (headerSize - 10) >> 8})
	b.WriteString("{'descr': [")
	for i, c := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "('%s', '%s')", c[0], c[1])
	}
	b.WriteString("], 'fortran_order': False, 'shape': (")
	at := b.Len()
	b.WriteString(shapeText(0))
	b.WriteString(",), }")
	b.WriteString(strings.Repeat(" ", headerSize-1-b.Len()))
	b.WriteByte('\n')
	return b.String(), int64(at)
}()

// shapeText returns the number of records, padded to a fixed width.
func shapeText(records int64) string { return fmt.Sprintf("%*d", shapeDigits, records) }
