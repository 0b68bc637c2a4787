package wire

import "golang.org/x/net/http2"

// Validator holds the Last-Modified and ETag of a response. Its arrays keep it free of pointers.
type Validator struct {
	modified [32]byte
	etag     [64]byte
	nm, ne   uint8
}

// Empty reports whether the response had neither header.
func (v *Validator) Empty() bool { return v.nm == 0 && v.ne == 0 }

func (v *Validator) lastModified() string { return string(v.modified[:v.nm]) }
func (v *Validator) entityTag() string    { return string(v.etag[:v.ne]) }

func (v *Validator) setModified(value []byte) { keepValue(v.modified[:], &v.nm, value) }
func (v *Validator) setETag(value []byte)     { keepValue(v.etag[:], &v.ne, value) }

// keepValue copies a header's value into an array if it fits and can be sent back.
func keepValue(into []byte, length *uint8, value []byte) {
	if len(value) <= len(into) && isFieldValue(value) {
		*length = uint8(copy(into, value))
	}
}

// HTTP2Validator returns the validator in the headers of an HTTP/2 response.
func HTTP2Validator(f *http2.MetaHeadersFrame) Validator {
	var v Validator
	for _, field := range f.RegularFields() {
		switch field.Name {
		case "etag":
			v.setETag([]byte(field.Value))
		case "last-modified":
			v.setModified([]byte(field.Value))
		}
	}
	return v
}
