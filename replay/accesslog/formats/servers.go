package formats

// Web servers: Apache, nginx, Caddy and IIS.

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

var caddy = Format{
	// client_ip is what newer versions of Caddy log and of goaccess read; remote_ip is what both had before. Caddy
	// knows which proxies to believe, and remote_ip may be one.
	Name: "CADDY", Log: `{ "ts": "%x.%^", "request": { "client_ip": "%h", "remote_ip": "%h", "proto":"%H", "method": "%m", ` +
		`"host": "%v", "uri": "%U", "headers": {"User-Agent": ["%u"], "Referer": ["%R"] }, ` +
		`"tls": { "cipher_suite":"%k", "proto": "%K" } }, "duration": "%T", "size": "%b", "status": "%s", ` +
		`"resp_headers": { "Content-Type": ["%M"] } }`,
	Date: "%s", Time: "%s", DateTime: "%s", Resolution: time.Microsecond, LogTime: Finished, Escape: EscapeNone,
	ZeroStatus: true, ClientKey: "request.client_ip",
	Keys: "`ts`, `request.client_ip` or `request.remote_ip`, `.proto`, `.method`, `.host`, `.uri`, `.headers.User-Agent`, `.headers.Referer`, `duration`, `size`, `status`",
	Sample: Sample{
		Newer: true, Valid: 3, Failed: 2, Why: "JSON: a status 0, remote_ip alone, a line that is not JSON, one without a client",
		Lines: []string{
			`{"level":"info","ts":1760100936.7564995,"request":{"remote_ip":"192.0.2.1","client_ip":"198.51.100.9","proto":"HTTP/2.0","method":"GET","host":"www.example.com","uri":"/a?b=1","headers":{"User-Agent":["Mozilla/5.0 \"x\""],"Referer":["https://example.com/"]},"tls":{"cipher_suite":4865,"proto":"h2"}},"duration":0.001504,"size":10900,"status":200,"resp_headers":{"Content-Type":["text/html"]}}`,
			`{"ts":1760100937.1,"request":{"remote_ip":"192.0.2.1","proto":"HTTP/1.1","method":"HEAD","host":"www.example.com","uri":"/","headers":{}},"duration":1.5e-05,"size":0,"status":404}`,
			`{"ts":1760100938.25,"request":{"remote_ip":"192.0.2.1","client_ip":"198.51.100.9","proto":"HTTP/1.1","method":"GET","host":"www.example.com","uri":"/","headers":{"User-Agent":["curl"]}},"duration":2,"size":0,"status":0}`,
			`{"ts":1760100939.5,"request":{"method":"GET","uri":"/"`,
			`{"ts":1760100939.5,"request":{"method":"GET","uri":"/"},"status":200}`,
		},
	},
}

var w3c = Format{
	Name: "W3C", Log: `%d %t %^ %m %U %q %^ %^ %h %u %R %s %^ %^ %L`,
	Date: DateW3C, Time: Time24, Resolution: time.Second, LogTime: Finished, Escape: EscapePlus, NamesFields: true,
	Server: "IIS",
	Sample: Sample{
		Valid: 2, Failed: 0, Why: "comments, and plus signs for spaces in the user agent",
		Lines: []string{
			`#Software: Microsoft Internet Information Services 8.5`,
			`#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken`,
			`2025-10-10 00:32:17 192.0.2.1 GET /news.aspx id=7 80 - 198.51.100.2 Mozilla/5.0+(Windows+NT+10.0) http://example.com/ 200 0 0 203`,
			`2025-10-10 01:32:17 192.0.2.1 GET /robots.txt - 80 - 198.51.100.3 Bot - 404 0 2 15`,
		},
	},
}

var serverVariants = []Variant{
	{Label: "a log with the virtual host first, without a port", Log: `%v %h %^[%d:%t %^] "%r" %s %b "%R" "%u"`, IsDetected: true},
	{Label: "a log with the virtual host first, without a port, referer or user agent", Log: `%v %h %^[%d:%t %^] "%r" %s %b`, IsDetected: true},
	{Label: "a log with the client first and then the virtual host, as at OVH", Log: `%h %v %e [%d:%t %^] "%r" %s %b "%R" "%u"`, IsDetected: true},
	{Label: "Gandi's web hosting", Log: `%v %h %^ %e [%d:%t %^] (%T s) "%r" %s %b "%R" "%u"`, IsDetected: true},
	{Label: "a log with X-Forwarded-For first, in quotes", Log: `"~h{, }" %^ %^[%d:%t %^] "%r" %s %b "%R" "%u"`, IsDetected: true},
	{Label: "a log with X-Forwarded-For first, without quotes", Log: `~h{, } %^[%d:%t %^] "%r" %s %b "%R" "%u"`},
	{Label: "a combined format with its time in ISO 8601 or in seconds (nginx: `$time_iso8601` or `$msec`)", Log: `%h %^[%x] "%r" %s %b "%R" "%u"`, IsDetected: true},
	{Label: "Apache's combined format and `%D`", Log: `%h %^[%d:%t %^] "%r" %s %b "%R" "%u" %D`},
	{Label: "nginx's combined format and `$request_time`, Icecast's", Log: `%h %^[%d:%t %^] "%r" %s %b "%R" "%u" %T`},
	{Label: "ingress-nginx", Log: `%h %^[%d:%t %^] "%r" %s %b "%R" "%u" %^ %T`},
	{Label: "nginx `escape=json`, your own keys", Log: `{"time":"%x","client":{"ip":"%h"},"request":"%r","status":"%s","bytes":"%b"}`},
	{Label: "IIS with `sc-bytes cs-bytes time-taken` at the end (with `--date-format %Y-%m-%d --time-format %H:%M:%S`)", Log: `%d %t %^ %m %U %q %^ %^ %h %u %R %s %^ %^ %b %^ %L`},
}
