package accesslog

import "slices"

// sample is a small log in one of the presets, with what goaccess makes of it.
type sample struct {
	preset        string
	lines         []string
	valid, failed int
	why           string // what is special about it
	newer         bool   // than goaccess 1.7, which does not know the preset, or reads it otherwise
}

// sampleOf returns the sample of a preset.
func sampleOf(preset string) sample {
	return samples[slices.IndexFunc(samples, func(s sample) bool { return s.preset == preset })]
}

// samples have one entry for each preset. Their lines are made up after the documentation of the servers.
var samples = []sample{
	{
		preset: "COMBINED", valid: 5, failed: 2,
		why: "an escaped quote, IPv6, a request that is none, a status that is none and a line cut off before the date's end",
		lines: []string{
			`192.0.2.7 - frank [10/Oct/2025:13:55:36 +0000] "GET /a.gif?x=%20 HTTP/1.0" 200 2326 "http://www.example.com/start" "Mozilla/4.08 [en] (Win98)"`,
			`2001:db8::1 - - [10/Oct/2025:13:55:37 +0000] "POST /wp-login.php HTTP/1.1" 302 - "-" "say \"hi\""`,
			`198.51.100.3 - - [10/Oct/2025:14:01:00 +0000] "\x16\x03\x01" 400 0 "-" "-"`,
			`198.51.100.3 - - [10/Oct/2025:14:01:02 +0000] "GET /no-protocol" 400 0 "-" "-"`,
			`198.51.100.3 - - [10/Oct/2025:15:00:00 +0000] "HEAD / HTTP/2.0" 304 0 "https://example.com/" "curl/8.5.0"`,
			`198.51.100.3 - - [10/Oct/2025:15:00:00 +0000] "GET / HTTP/1.1" 999 0 "-" "-"`,
			`198.51.100.3 - - [10/Oct/2025`,
		},
	},
	{
		preset: "VCOMBINED", valid: 3, failed: 1, why: "the host with its port comes first, which may be an IPv6 address",
		lines: []string{
			`www.example.com:443 192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 512 "-" "Mozilla/5.0"`,
			`shop.example.com:80 192.0.2.8 - - [10/Oct/2025:13:55:36 +0000] "GET /cart HTTP/1.1" 200 99 "-" "Mozilla/5.0"`,
			`[2001:db8::1]:80 192.0.2.9 - - [10/Oct/2025:13:55:37 +0000] "GET /six HTTP/1.1" 200 6 "-" "Mozilla/5.0"`,
			`192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 512 "-" "Mozilla/5.0"`,
		},
	},
	{
		preset: "COMMON", valid: 2, failed: 1, why: "no referer, no user agent",
		lines: []string{
			`192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/2.0" 200 512`,
			`client.example.net - - [10/Oct/2025:23:55:36 +0000] "PROPFIND /dav HTTP/1.1" 207 -`,
			`192.0.2.7 - - [10/Foo/2025:13:55:36 +0000] "GET / HTTP/2.0" 200 512`,
		},
	},
	{
		preset: "VCOMMON", valid: 1, failed: 1, why: "as COMMON, with the host",
		lines: []string{
			`www.example.com:80 192.0.2.7 - - [10/Oct/2025:13:55:36 +0000] "GET / HTTP/1.1" 200 512`,
			`www.example.com:80 192.0.2.7 - - [10/Oct/2025:33:55:36 +0000] "GET / HTTP/1.1" 200 512`,
		},
	},
	{
		preset: "W3C", valid: 2, failed: 0, why: "comments, and plus signs for spaces in the user agent",
		lines: []string{
			`#Software: Microsoft Internet Information Services 8.5`,
			`#Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken`,
			`2025-10-10 00:32:17 192.0.2.1 GET /news.aspx id=7 80 - 198.51.100.2 Mozilla/5.0+(Windows+NT+10.0) http://example.com/ 200 0 0 203`,
			`2025-10-10 01:32:17 192.0.2.1 GET /robots.txt - 80 - 198.51.100.3 Bot - 404 0 2 15`,
		},
	},
	{
		preset: "CLOUDFRONT", valid: 1, failed: 1, why: "tabs, and per cent escapes in the user agent",
		lines: []string{
			"2025-10-10\t21:02:31\tLAX1\t392\t192.0.2.100\tGET\td111111abcdef8.cloudfront.net\t/index.html\t200\thttps://example.com/\tMozilla/5.0%20(Windows%20NT%2010.0)\tpage=1\t-\tHit\tSOX4x\td111111abcdef8.cloudfront.net\thttps\t23\t0.001\t-\tTLSv1.2\tECDHE-RSA-AES128-GCM-SHA256\tHit\tHTTP/2.0\t-\t-",
			"2025-10-10\t21:02:31\tLAX1\t392\t192.0.2.100\tGETS",
		},
	},
	{
		preset: "CLOUDSTORAGE", valid: 1, failed: 1, why: "comma-separated, microseconds since the epoch",
		lines: []string{
			`"1760100936123456","192.0.2.9","1","","GET","/storage/v1/b/site/o/logo.png","200","100","2048","15300","storage.googleapis.com","https://example.com/","curl/8.5.0","id","objects.get","site","logo.png"`,
			`"17x0100936123456","192.0.2.9","1","","GET","/x","200","100","2048","15300","h","-","-"`,
		},
	},
	{
		preset: "AWSELB", valid: 1, failed: 1, why: "sub-second UTC times, absolute targets",
		lines: []string{
			`https 2025-10-10T23:39:43.945958Z app/my-loadbalancer/50dc6c495c0c9188 192.0.2.131:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://www.example.com:443/ HTTP/1.1" "curl/8.5.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:x "Root=1-58337281" "www.example.com" "arn:aws:y" 1 2025-10-10T23:39:43.859000Z "authenticate,forward" "-" "-"`,
			`https 2025-10-10 app/my-loadbalancer/50dc6c495c0c9188 192.0.2.131:2817 -`,
		},
	},
	{
		preset: "AWSALB", valid: 1, failed: 1, why: "the balancer's name is no host",
		lines: []string{
			`http 2025-10-10T23:39:43.945958Z app/my-loadbalancer/50dc6c495c0c9188 192.0.2.131:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 "GET http://www.example.com:80/ HTTP/1.1" "curl/8.5.0" - - arn:aws:x "Root=1-58337262" "-" "-" 0 2025-10-10T23:39:43.364000Z "forward" "-" "-"`,
			`http 2025-10-10T23:39:43.945958Z app/my-loadbalancer/50dc6c495c0c9188 192.0.2.131:2817 10.0.0.1:80 0.000 0.001 0.000 - - 34 366 "GET http://www.example.com:80/ HTTP/1.1" "curl/8.5.0" - - arn:aws:x`,
		},
	},
	{
		preset: "AWSS3", valid: 1, failed: 1, why: "the bucket is no host",
		lines: []string{
			`79a59d mybucket [06/Feb/2025:00:00:38 +0000] 192.0.2.3 79a59d 3E57427F3EXAMPLE REST.GET.VERSIONING - "GET /mybucket?versioning HTTP/1.1" 200 - 113 - 7 - "-" "S3Console/0.4" -`,
			`79a59d mybucket [06/Feb/2025:00:00:38 +0000] 192.0.2.3 79a59d 3E57427F3EXAMPLE REST.GET.VERSIONING - "GET /mybucket?versioning HTTP/1.1" 2000 - 113 - 7 - "-" "S3Console/0.4" -`,
		},
	},
	{
		preset: "SQUID", valid: 1, failed: 1, why: "behind syslog, milliseconds",
		lines: []string{
			`Oct 10 14:22:10 proxy squid[2000]: 1760100936.779    180 192.0.2.224 TCP_MISS/200 411 GET http://example.com/minitri.flg - DIRECT/198.51.100.203`,
			`1760100936.779    180 192.0.2.224 TCP_MISS/200 411 GET http://example.com/minitri.flg - DIRECT/198.51.100.203`,
		},
	},
	{
		preset: "TRAEFIKCLF", newer: true, valid: 1, failed: 1, why: "the router's name is no host; the duration ends in ms",
		lines: []string{
			`192.0.2.239 - - [08/Dec/2025:09:16:05 +0000] "GET /upload.asp?test=1 HTTP/1.1" 200 405 "-" "Mozilla/5.0" 502 "web@docker" "http://172.17.0.3:80" 17ms`,
			`192.0.2.239 - - [08/Dec/2025:09:16:05 +0000] "GET / HTTP/1.1" - - "-" "-" 502 "web@docker" "-" 17ms`,
		},
	},
	{
		preset: "CADDY", newer: true, valid: 3, failed: 2, why: "JSON: a status 0, remote_ip alone, a line that is no JSON, one without a client",
		lines: []string{
			`{"level":"info","ts":1760100936.7564995,"request":{"remote_ip":"192.0.2.1","client_ip":"198.51.100.9","proto":"HTTP/2.0","method":"GET","host":"www.example.com","uri":"/a?b=1","headers":{"User-Agent":["Mozilla/5.0 \"x\""],"Referer":["https://example.com/"]},"tls":{"cipher_suite":4865,"proto":"h2"}},"duration":0.001504,"size":10900,"status":200,"resp_headers":{"Content-Type":["text/html"]}}`,
			`{"ts":1760100937.1,"request":{"remote_ip":"192.0.2.1","proto":"HTTP/1.1","method":"HEAD","host":"www.example.com","uri":"/","headers":{}},"duration":1.5e-05,"size":0,"status":404}`,
			`{"ts":1760100938.25,"request":{"remote_ip":"192.0.2.1","client_ip":"198.51.100.9","proto":"HTTP/1.1","method":"GET","host":"www.example.com","uri":"/","headers":{"User-Agent":["curl"]}},"duration":2,"size":0,"status":0}`,
			`{"ts":1760100939.5,"request":{"method":"GET","uri":"/"`,
			`{"ts":1760100939.5,"request":{"method":"GET","uri":"/"},"status":200}`,
		},
	},
	{
		preset: "RECORDING", newer: true, valid: 3, failed: 2, why: "bodies with what JSON escapes, null, nothing; a line cut off, one without a client",
		lines: []string{
			`{"time":"1760100936.756","client":"198.51.100.9","user":"","method":"POST","host":"www.example.com","target":"/wp-comments-post.php","protocol":"HTTP/1.1","status":"302","bytes":"0","duration":"0.120","referer":"https://www.example.com/?p=1","agent":"Mozilla/5.0","type":"application/x-www-form-urlencoded","length":"44","body":"comment=Na+\"so\"+was%21&comment_post_ID=1\u0000\u000d\u000a"}`,
			`{"time":"1760100937.001","client":"198.51.100.9","user":"","method":"GET","host":"www.example.com","target":"/","protocol":"HTTP/2.0","status":"200","bytes":"17","duration":"0.003","referer":"","agent":"","type":"","length":"","body":""}`,
			`{"time":1760100938.25,"client":"2001:db8::1","method":"HEAD","target":"/","status":0,"body":null}`,
			`{"time":"1760100939.000","client":"198.51.100.9","method":"POST","target":"/login","body":"pwd=hun`,
			`{"time":"1760100939.000","method":"POST","target":"/login"}`,
		},
	},
}
