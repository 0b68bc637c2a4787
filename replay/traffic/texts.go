package traffic

import "plimsoll/replay/accesslog"

// mostTexts bounds how many texts are kept; past it all are forgotten.
const mostTexts = 1 << 14

// texts keeps what logs repeat from line to line: hosts, browsers, pages that link. Each is unescaped and stored once.
type texts struct{ known map[string]string }

// of returns the text that a log has in its own escapes; "" for the dash that stands for nothing.
func (t *texts) of(raw []byte, style accesslog.Escape) string {
	if text, ok := t.known[string(raw)]; ok {
		return text
	}
	text := string(accesslog.Unescape(nil, raw, style))
	if text == "-" {
		text = ""
	}
	if t.known == nil || len(t.known) >= mostTexts {
		t.known = map[string]string{}
	}
	t.known[string(raw)] = text
	return text
}
