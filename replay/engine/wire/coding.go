// Bodies that came in a content-encoding are unpacked (RFC 9110, 8.4.1).

package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
)

// ErrCoding says that a body is not in the content-encoding that it names.
var ErrCoding = errors.New("is not in the content-encoding that it names")

// mostWindowBytes is how much memory a body may ask for to be unpacked: what browsers allow zstd (RFC 9659).
const mostWindowBytes = 8 << 20

// Unpack returns a body without its content-encoding, and whether that is one that can be unpacked; if it is not, the
// body is returned as it is.
func Unpack(coding string, body io.Reader) (plain io.ReadCloser, known bool, err error) {
	buffered := bufio.NewReader(body)
	if _, err := buffered.Peek(1); errors.Is(err, io.EOF) { // nothing is packed there
		return io.NopCloser(buffered), true, nil
	}
	switch strings.ToLower(strings.TrimSpace(coding)) {
	case "", "identity":
		return io.NopCloser(buffered), true, nil
	case "gzip", "x-gzip":
		plain, err = gzip.NewReader(buffered)
	case "deflate":
		plain, err = zlib.NewReader(buffered)
	case "br":
		plain = io.NopCloser(brotli.NewReader(buffered))
	case "zstd":
		var z *zstd.Decoder
		z, err = zstd.NewReader(buffered, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(mostWindowBytes))
		if err == nil {
			plain = z.IOReadCloser()
		}
	default:
		return io.NopCloser(buffered), false, nil
	}
	if err != nil {
		return nil, true, notCoded(err)
	}
	return codedBody{plain}, true, nil
}

// codedBody tells errors of the coding from those of the network.
type codedBody struct{ io.ReadCloser }

func (c codedBody) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = notCoded(err)
	}
	return n, err
}

// notCoded is for errors that do not come from the connection, which knows its own.
func notCoded(err error) error {
	return fmt.Errorf("%w: %w", ErrCoding, err)
}
