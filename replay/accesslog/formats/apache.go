package formats

// Apache, and nginx, which writes the same.

import "time"

var combined = Format{
	Name: "COMBINED", Log: `%h %^[%d:%t %^] "%r" %s %b "%R" "%u"`,
	Date: DateApache, Time: Time24, Resolution: time.Second, Escape: EscapeBackslash,
	Server: "Apache",
	Sample: Sample{
		Valid: 5, Failed: 2,
		Why: "an escaped quote, IPv6, something that is not a request, something that is not a status, and a line cut off before the date's end",
		Lines: []string{
			`192.0.2.7 - frank [10/Oct/2025:13:55:36 +0000] "GET /a.gif?x=%20 HTTP/1.0" 200 2326 "http://www.example.com/start" "Mozilla/4.08 [en] (Win98)"`,
			`2001:db8::1 - - [10/Oct/2025:13:55:37 +0000] "POST /wp-login.php HTTP/1.1" 302 - "-" "say \"hi\""`,
			`198.51.100.3 - - [10/Oct/2025:14:01:00 +0000] "\x16\x03\x01" 400 0 "-" "-"`,
			`198.51.100.3 - - [10/Oct/2025:14:01:02 +0000] "GET /no-protocol" 400 0 "-" "-"`,
			`198.51.100.3 - - [10/Oct/2025:15:00:00 +0000] "HEAD / HTTP/2.0" 304 0 "https://example.com/" "curl/8.5.0"`,
			`198.51.100.3 - - [10/Oct/2025:15:00:00 +0000] "GET / HTTP/1.1" 999 0 "-" "-"`,
			`198.51.100.3 - - [10/Oct/2025`,
		},
	},
}

var vcombined = Format{
	Name: "VCOMBINED", Log: `%v:%^ %h %^[%d:%t %^] "%r" %s %b "%R" "%u"`,
	Date: DateApache, Time: Time24, Resolution: time.Second, Escape: EscapeBackslash,
	Server: "Apache",
	Sample: Sample{
		Valid: 3, Failed: 1, Why: "the host with its port comes first, which may be an IPv6 address",
		Lines: []string{
			`www.example.com:443 192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 512 "-" "Mozilla/5.0"`,
			`shop.example.com:80 192.0.2.8 - - [10/Oct/2025:13:55:36 +0000] "GET /cart HTTP/1.1" 200 99 "-" "Mozilla/5.0"`,
			`[2001:db8::1]:80 192.0.2.9 - - [10/Oct/2025:13:55:37 +0000] "GET /six HTTP/1.1" 200 6 "-" "Mozilla/5.0"`,
			`192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 512 "-" "Mozilla/5.0"`,
		},
	},
}

var common = Format{
	Name: "COMMON", Log: `%h %^[%d:%t %^] "%r" %s %b`,
	Date: DateApache, Time: Time24, Resolution: time.Second, Escape: EscapeBackslash,
	Server: "Apache",
	Sample: Sample{
		Valid: 2, Failed: 1, Why: "no referer, no user agent",
		Lines: []string{
			`192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/2.0" 200 512`,
			`client.example.net - - [10/Oct/2025:23:55:36 +0000] "PROPFIND /dav HTTP/1.1" 207 -`,
			`192.0.2.7 - - [10/Foo/2025:13:55:36 +0000] "GET / HTTP/2.0" 200 512`,
		},
	},
}

var vcommon = Format{
	Name: "VCOMMON", Log: `%v:%^ %h %^[%d:%t %^] "%r" %s %b`,
	Date: DateApache, Time: Time24, Resolution: time.Second, Escape: EscapeBackslash,
	Server: "Apache",
	Sample: Sample{
		Valid: 1, Failed: 1, Why: "as COMMON, with the host",
		Lines: []string{
			`www.example.com:80 192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 512`,
			`www.example.com:80 192.0.2.7 - - [10/Oct/2025:33:55:36 +0000] "GET / HTTP/1.1" 200 512`,
		},
	},
}

var vhostVariants = []Variant{
	{Name: "a log with the virtual host first, without a port", Log: `%v %h %^[%d:%t %^] "%r" %s %b "%R" "%u"`, IsSuggested: true},
	{Name: "a log with the virtual host first, without a port", Log: `%v %h %^[%d:%t %^] "%r" %s %b`, IsSuggested: true},
}

var forwardedVariants = []Variant{
	{Name: "a log with X-Forwarded-For first", Log: `"~h{, }" %^ %^[%d:%t %^] "%r" %s %b "%R" "%u"`, IsSuggested: true},
	{Name: "the same without quotes", Log: `~h{, } %^[%d:%t %^] "%r" %s %b "%R" "%u"`},
}

var combinedVariants = []Variant{
	{Name: "a combined format with an ISO 8601 time", Log: `%h %^[%x] "%r" %s %b "%R" "%u"`, IsSuggested: true},
	{Name: "Apache's combined format and `%D`", Log: `%h %^[%d:%t %^] "%r" %s %b "%R" "%u" %D`},
}
