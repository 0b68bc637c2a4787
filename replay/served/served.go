// Package served tells by the headers of an answer what answered: a cache, or the server behind it.
package served

import "bytes"

// By is what answered a request, as in the column `served` of requests.npy.
type By uint8

const (
	Unknown By = iota // no header says it
	Hit               // a cache, and nothing behind it
	Miss              // the server: no cache had the answer
	Pass              // the server: caches left the request alone
	Expired           // the server: a cache asked it whether what it had was still good, or for what has taken its place
)

// Names are those of all, by number.
var Names = [...]string{Unknown: "unknown", Hit: "hit", Miss: "miss", Pass: "pass", Expired: "expired"}

// weights decide where several caches speak: what one of them had, the server did not send.
var weights = [...]uint8{Unknown: 0, Pass: 1, Miss: 2, Expired: 3, Hit: 4}

// Headers take the headers of one answer. The zero value has taken none.
type Headers struct{ said, guessed By }

// By returns what answered by all that was taken. An Age, and a Varnish that had nothing, count where nothing else says
// it: whether Varnish looked for it or let it pass, its number does not tell.
func (h Headers) By() By {
	if h.said == Unknown {
		return h.guessed
	}
	return h.said
}

// Take takes a header, which an HTTP/1 parser has as bytes and one of HTTP/2 as strings; most say nothing of caches. It
// allocates nothing.
func Take[Text string | []byte](h *Headers, name, value Text) {
	switch len(name) { // the cheapest way past the others
	case len("Age"):
		if is(name, "age") && isNumber(value) && !isZero(value) {
			h.guessed = Hit
		}
	case len("X-Varnish"):
		if !is(name, "x-varnish") {
			return
		}
		if by := byTransactions(value); by == Hit {
			h.add(Hit)
		} else if h.guessed == Unknown {
			h.guessed = by
		}
	case len("X-Cache"), len("Cache-Status"), len("X-Proxy-Cache"), len("X-Cache-Status"), len("CF-Cache-Status"):
		if is(name, "x-cache") || is(name, "cache-status") || is(name, "x-proxy-cache") || is(name, "x-cache-status") ||
			is(name, "cf-cache-status") || is(name, "x-fastcgi-cache") {
			h.add(byWords(value))
		}
	}
}

func (h *Headers) add(by By) {
	if weights[by] > weights[h.said] {
		h.said = by
	}
}

// is compares a header's name with one in small letters.
func is[Text string | []byte](name Text, small string) bool {
	if len(name) != len(small) {
		return false
	}
	for i := range len(small) {
		if lower(name[i]) != small[i] {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// byTransactions reads X-Varnish: the transaction of this request, and that which fetched what it got from the cache.
func byTransactions[Text string | []byte](value Text) By {
	space := index(value, ' ')
	switch {
	case !isNumber(value[:space]):
		return Unknown
	case space == len(value):
		return Miss
	case isNumber(value[space+1:]):
		return Hit
	}
	return Unknown
}

// byWords reads lists such as `OriginCache; hit; ttl=1100, "CDN, edge"; fwd=stale`, `HIT, MISS` and
// `Hit from cloudfront`.
func byWords[Text string | []byte](list Text) By {
	var most By
	for len(list) > 0 {
		end := separator(list)
		if by := word(list[:end]); weights[by] > weights[most] {
			most = by
		}
		list = list[min(end+1, len(list)):]
	}
	return most
}

// separator returns where the first comma or semicolon outside of quotes stands, else the length.
func separator[Text string | []byte](list Text) int {
	quoted := false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && quoted:
			i++
		case (c == ',' || c == ';') && !quoted:
			return i
		}
	}
	return len(list)
}

// index returns where a byte stands first, else the length.
func index[Text string | []byte](text Text, c byte) int {
	for i := range len(text) {
		if text[i] == c {
			return i
		}
	}
	return len(text)
}

const longestWord = 24

// words are those by which caches say it, without "tcp_".
var words = map[string]By{
	// nginx ($upstream_cache_status), Cloudflare, Varnish, Fastly, Squid; stale: without asking the server
	"hit": Hit, "stale": Hit, "updating": Hit,
	"miss": Miss, "pass": Pass, "bypass": Pass, "dynamic": Pass,
	"expired": Expired, "revalidated": Expired,
	// RFC 9211, 2.2
	"fwd=uri-miss": Miss, "fwd=vary-miss": Miss, "fwd=miss": Miss, "fwd=partial": Miss,
	"fwd=bypass": Pass, "fwd=method": Pass, "fwd=request": Pass, "fwd=stale": Expired,
	// CloudFront, Akamai, Edgio, Azure
	"refreshhit": Expired, "refresh_hit": Expired, "refresh_miss": Expired, "client_refresh_miss": Expired,
	"expired_hit": Expired, "expired_miss": Expired,
	"mem_hit": Hit, "remote_hit": Hit, "ims_hit": Hit, "imem_hit": Hit,
	"config_nocache": Pass, "private_nostore": Pass,
}

// word looks a word up, without spaces before it and what stands behind one: `HIT from cache.example`.
func word[Text string | []byte](text Text) By {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t') {
		text = text[1:]
	}
	if text = text[:index(text, ' ')]; len(text) > longestWord {
		return Unknown
	}
	var small [longestWord]byte
	for i := range len(text) {
		small[i] = lower(text[i])
	}
	return words[string(bytes.TrimPrefix(small[:len(text)], []byte("tcp_")))]
}

func isNumber[Text string | []byte](text Text) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return len(text) > 0
}

func isZero[Text string | []byte](number Text) bool {
	for i := range len(number) {
		if number[i] != '0' {
			return false
		}
	}
	return true
}
