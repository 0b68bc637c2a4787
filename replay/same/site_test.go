package same

import "testing"

func TestOwnLinks(t *testing.T) {
	rows := []struct{ why, scheme, host, text, want string }{
		{"a link", "http", "a:8080", `href="http://a:8080/x"`, `href="site://site.invalid/x"`},
		{"without scheme", "http", "a:8080", `src="//a:8080/x"`, `src="//site.invalid/x"`},
		{"in JSON", "https", "shop.example", `"https:\/\/shop.example\/wp-json"`, `"site:\/\/site.invalid\/wp-json"`},
		{"percent-encoded", "http", "a:8080", `?u=http%3A%2F%2Fa%3A8080%2Fx`, `?u=site%3A%2F%2Fsite.invalid%2Fx`},
		{"capitals", "http", "a:8080", `HTTP://A:8080`, `site://site.invalid`},
		{"the scheme's own port", "https", "b", `https://b:443/ https://b/`, `site://site.invalid/ site://site.invalid/`},
		{"another port is another site", "http", "a:8080", `http://a:80801/ http://a/`, `http://a:80801/ http://a/`},
		{"a port behind a name without one", "http", "b", `http://b:8080/`, `http://b:8080/`},
		{"a longer name is another site", "http", "b", `http://b.example/ http://bb/ http://b-c/`, `http://b.example/ http://bb/ http://b-c/`},
		{"the end of a sentence", "http", "b", `See http://b. Or http://b: there`, `See site://site.invalid. Or site://site.invalid: there`},
		{"the other scheme stays: mixed content", "https", "b", `http://b/x`, `http://site.invalid/x`},
		{"a name alone is no link", "http", "b", `b b.example a@b`, `b b.example a@b`},
		{"IPv6", "http", "[::1]:8080", `http://[::1]:8080/x`, `site://site.invalid/x`},
		{"the id of a post in a feed, at a clone", "http", "a:8080",
			`<guid isPermaLink="false">https://shop.example/?p=6</guid> https://shop.example/`, `<guid isPermaLink="false">site://site.invalid/?p=6</guid> https://shop.example/`},
		{"the same id at the site itself", "https", "shop.example", `<guid isPermaLink="false">https://shop.example/?p=6</guid>`, `<guid isPermaLink="false">site://site.invalid/?p=6</guid>`},
		{"an id in JSON", "http", "a:8080", `"guid":{"rendered":"http:\/\/shop.example\/?p=6"}`, `"guid":{"rendered":"site:\/\/site.invalid\/?p=6"}`},
		{"an id that is a link", "http", "a:8080", `<guid isPermaLink="true">http://shop.example/x</guid>`, `<guid isPermaLink="true">http://shop.example/x</guid>`},
		{"an id that is not an address", "http", "a:8080", `<guid isPermaLink="false">tag:a:8080</guid>`, `<guid isPermaLink="false">tag:a:8080</guid>`},
		{"dots are no wildcards", "http", "10.0.0.5", `http://10a0b0c5/`, `http://10a0b0c5/`},
	}
	for _, row := range rows {
		if got := string(newOwnLinks(row.scheme, row.host).normalise([]byte(row.text))); got != row.want {
			t.Errorf("%s: %s, want %s", row.why, got, row.want)
		}
	}
}
