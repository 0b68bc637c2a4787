package main

import (
	"encoding/base64"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"plimsoll/replay/accesslog"
)

// appendRequest appends one request as a JSON object. Keys whose value the log does not have are left out. Text is as
// the log has it, escapes not undone; where it is not UTF-8, its exact bytes follow in base64 under the key with
// _base64 at its end, and the text has U+FFFD in place of what is not UTF-8.
func appendRequest(b []byte, path string, r *accesslog.Request) []byte {
	b = appendText(append(b, '{'), "file", []byte(path))
	b = append(b, `,"line":`...)
	b = strconv.AppendUint(b, r.Line, 10)
	b = append(b, `,"time":"`...)
	b = time.Unix(0, r.TimeNS).UTC().AppendFormat(b, time.RFC3339Nano)
	b = append(b, '"')
	for _, text := range [...]struct {
		key   string
		value []byte
	}{
		{"host", r.Host}, {"vhost", r.VHost}, {"method", r.Method}, {"target", r.Target}, {"protocol", r.Protocol},
		{"referer", r.Referer}, {"user_agent", r.UserAgent},
	} {
		if text.value != nil {
			b = appendText(append(b, ','), text.key, text.value)
		}
	}
	if r.Status > 0 {
		b = strconv.AppendUint(append(b, `,"status":`...), uint64(r.Status), 10)
	}
	if r.Bytes >= 0 {
		b = strconv.AppendInt(append(b, `,"bytes":`...), r.Bytes, 10)
	}
	if r.DurationNS >= 0 {
		b = appendSeconds(append(b, `,"duration_s":`...), r.DurationNS)
	}
	return append(b, '}')
}

func appendSeconds(b []byte, ns int64) []byte {
	return strconv.AppendFloat(b, math.Round(float64(ns))/1e9, 'f', -1, 64)
}

func appendText(b []byte, key string, value []byte) []byte {
	b = append(append(append(b, '"'), key...), `":"`...)
	valid := true
	for i := 0; i < len(value); {
		r, n := utf8.DecodeRune(value[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			valid = false
			b = append(b, `\ufffd`...)
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ' || r >= 0x7f && r <= 0x9f || r >= 0x2028 && r <= 0x202e || r == '<' || r == '>' || r == '&':
			b = appendUnicode(b, r)
		default:
			b = append(b, value[i:i+n]...)
		}
		i += n
	}
	b = append(b, '"')
	if valid {
		return b
	}
	b = append(append(append(b, `,"`...), key...), `_base64":"`...)
	return append(base64.StdEncoding.AppendEncode(b, value), '"')
}

func appendUnicode(b []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
}
