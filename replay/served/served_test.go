package served

import (
	"strings"
	"testing"
)

// TestHeaders: what answered, by headers as caches send them.
func TestHeaders(t *testing.T) {
	for _, row := range []struct {
		says, source, headers string
		want                  By
	}{
		{"a server without a cache", "", "Server: nginx\nContent-Type: text/html", Unknown},
		{"a cache had it", "RFC 9211, 3", "Cache-Status: ExampleCache; hit; ttl=376", Hit},
		{"it was stale, and good enough", "RFC 9211, 3", "Cache-Status: ExampleCache; hit; ttl=-412", Hit},
		{"no cache had it", "RFC 9211, 3", "Cache-Status: ExampleCache; fwd=uri-miss; collapsed", Miss},
		{"the server said that it is still good", "RFC 9211, 3", "Cache-Status: ExampleCache; fwd=stale; fwd-status=304", Expired},
		{"the cache was told not to look", "RFC 9211, 2.2", "Cache-Status: ExampleCache; fwd=bypass", Pass},
		{"a POST goes through", "RFC 9211, 2.2", "Cache-Status: ExampleCache;fwd=method", Pass},
		{"the innermost of three had it", "RFC 9211, 3",
			"Cache-Status: ReverseProxyCache; hit\nCache-Status: ForwardProxyCache; fwd=uri-miss; collapsed; stored", Hit},
		{"in one line", "RFC 9211, 3", `Cache-Status: OriginCache; hit; ttl=1100, "CDN Company Here"; fwd=uri-miss`, Hit},
		{"it did not", "RFC 8941, 3.3.6", "Cache-Status: ExampleCache; hit=?0; fwd=request", Pass},
		{"a name with everything in it", "RFC 8941, 3.3.3", `Cache-Status: "a, hit; \", hit; "; fwd=uri-miss`, Miss},
		{"a name that does not end", "", `Cache-Status: "a, hit`, Unknown},
		{"nginx had it", "nginx.org, $upstream_cache_status", "X-Cache-Status: HIT", Hit},
		{"it did not", "nginx.org, $upstream_cache_status", "X-Proxy-Cache: MISS", Miss},
		{"it was not to", "nginx.org, $upstream_cache_status", "X-FastCGI-Cache: BYPASS", Pass},
		{"it asked for another", "nginx.org, $upstream_cache_status", "X-Cache-Status: EXPIRED", Expired},
		{"it asked whether it is still good", "nginx.org, $upstream_cache_status", "x-cache-status: REVALIDATED", Expired},
		{"it used what is old, since the server failed", "nginx.org, $upstream_cache_status", "X-Cache-Status: STALE", Hit},
		{"or while another asks", "nginx.org, $upstream_cache_status", "X-Cache-Status: UPDATING", Hit},
		{"nothing is cached there", "nginx.org: the variable is empty", "X-Cache-Status: -", Unknown},
		{"Cloudflare does not cache pages", "developers.cloudflare.com, cache responses", "CF-Cache-Status: DYNAMIC", Pass},
		{"Cloudflare had it", "developers.cloudflare.com, cache responses", "cf-cache-status: HIT\nage: 310", Hit},
		{"Cloudflare asked again", "developers.cloudflare.com, cache responses", "CF-Cache-Status: REVALIDATED\nAge: 0", Expired},
		{"it made the answer itself", "developers.cloudflare.com, cache responses", "CF-Cache-Status: NONE/UNKNOWN", Unknown},
		{"a cache behind Cloudflare had it", "", "CF-Cache-Status: DYNAMIC\nX-Cache: HIT", Hit},
		{"CloudFront had it", "docs.aws.amazon.com, x-edge-result-type", "X-Cache: Hit from cloudfront", Hit},
		{"CloudFront asked again", "docs.aws.amazon.com, x-edge-result-type", "X-Cache: RefreshHit from cloudfront", Expired},
		{"CloudFront did not get it", "docs.aws.amazon.com, x-edge-result-type", "X-Cache: Error from cloudfront", Unknown},
		{"Fastly's shield had it", "fastly.com, X-Cache", "X-Cache: HIT, MISS", Hit},
		{"Squid did not", "wiki.squid-cache.org", "X-Cache: MISS from proxy.example", Miss},
		{"Akamai had it", "techdocs.akamai.com, Pragma headers", "X-Cache: TCP_MEM_HIT from a23-1-2-3 (AkamaiGHost)", Hit},
		{"Akamai asked again", "techdocs.akamai.com, Pragma headers", "X-Cache: TCP_REFRESH_HIT from a23-1-2-3", Expired},
		{"Azure may not", "learn.microsoft.com, Front Door", "X-Cache: CONFIG_NOCACHE", Pass},
		{"Varnish had what 65539 fetched", "varnish-cache.org, X-Varnish", "X-Varnish: 32770 65539\nAge: 3", Hit},
		{"Varnish fetched it", "varnish-cache.org, X-Varnish", "X-Varnish: 65539\nAge: 0", Miss},
		{"its configuration says that it let it pass", "", "X-Cache: PASS\nX-Varnish: 65539\nAge: 0", Pass},
		{"what it fetched was somewhere for a minute", "", "X-Varnish: 65539\nAge: 60", Hit},
		{"no numbers", "", "X-Varnish: one two", Unknown},
		{"none", "", "X-Varnish:", Unknown},
		{"it was somewhere for a minute", "RFC 9111, 5.1", "Age: 60", Hit},
		{"it came at once", "RFC 9111, 5.1", "Age: 000", Unknown},
		{"an age that is none", "", "Age: -1", Unknown},
		{"no age", "", "Age:", Unknown},
		{"its age is that of what the server vouched for", "", "Age: 60\nX-Cache: EXPIRED", Expired},
		{"a word that there is not", "", "X-Cache: HITS", Unknown},
		{"one without end", "", "X-Cache: " + strings.Repeat("HIT", 1000), Unknown},
	} {
		if got := readHeaders(row.headers); got != row.want {
			t.Errorf("%s (%s): %q is %s, want %s", row.says, row.source, row.headers, Names[got], Names[row.want])
		}
	}
}

func readHeaders(text string) By {
	var h Headers
	for line := range strings.SplitSeq(text, "\n") {
		name, value, _ := strings.Cut(line, ":")
		Take(&h, []byte(name), []byte(strings.TrimSpace(value)))
	}
	return h.By()
}

// FuzzHeaders: whatever a server sends, the answer is one of five, and another case says the same.
func FuzzHeaders(f *testing.F) {
	f.Add("Cache-Status: \"a\\\", hit; fwd=stale\nX-Varnish: 1 2")
	f.Add("Age: 1\nX-Cache: TCP_HIT from x, MISS")
	f.Fuzz(func(t *testing.T, text string) {
		got := readHeaders(text)
		if int(got) >= len(Names) {
			t.Fatalf("%q: %d", text, got)
		}
		ascii := strings.IndexFunc(text, func(r rune) bool { return r >= 0x80 }) < 0
		if upper := readHeaders(strings.ToUpper(text)); ascii && upper != got {
			t.Errorf("%q: %s, in capitals %s", text, Names[got], Names[upper])
		}
	})
}

func TestTakingHeadersAllocatesNothing(t *testing.T) {
	name, value := []byte("Cache-Status"), []byte(`"a cache"; fwd=uri-miss; stored, edge; hit`)
	if n := testing.AllocsPerRun(100, func() { Take(new(Headers), name, value) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
