package formats

// Caddy.

import "time"

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
