package formats

// What stands before web servers, or in their place: Squid, HAProxy, Traefik, Nginx Proxy Manager, and the services of
// Amazon, Google, Cloudflare, Fastly and Bunny.

import "time"

var squid = Format{
	// Squid behind syslog; %v is syslog's host. Squid's own file lacks the prefix. goaccess's string ends at %U,
	// and so takes the user, the peer and the content type for a part of the URL.
	Name: "SQUID", Log: `%^ %^ %^ %v %^: %x.%^ %~%L %h %^/%s %b %m %U %^`,
	Date: "%s", Time: "%s", DateTime: "%s", Resolution: time.Millisecond, LogTime: Finished, Escape: EscapeNone,
	HostIsLabel: true,
	Sample: Sample{
		Valid: 1, Failed: 1, Why: "behind syslog, milliseconds",
		Lines: []string{
			`Oct 10 14:22:10 proxy squid[2000]: 1760100936.779    180 192.0.2.224 TCP_MISS/200 411 GET http://example.com/minitri.flg - DIRECT/198.51.100.203`,
			`1760100936.779    180 192.0.2.224 TCP_MISS/200 411 GET http://example.com/minitri.flg - DIRECT/198.51.100.203`,
		},
	},
}

var traefikCLF = Format{
	// %v is the router's name. goaccess 1.7 does not know this preset, later versions do.
	Name: "TRAEFIKCLF", Log: `%h - %e [%d:%t %^] "%r" %s %b "%R" "%u" %^ "%v" "%U" %Lms`,
	Date: DateApache, Time: Time24, Resolution: time.Second, LogTime: Received, Escape: EscapeBackslash, HostIsLabel: true,
	Sample: Sample{
		Newer: true, Valid: 1, Failed: 1, Why: "the router's name is not a host; the duration ends in ms",
		Lines: []string{
			`192.0.2.239 - - [08/Dec/2025:09:16:05 +0000] "GET /upload.asp?test=1 HTTP/1.1" 200 405 "-" "Mozilla/5.0" 502 "web@docker" "http://172.17.0.3:80" 17ms`,
			`192.0.2.239 - - [08/Dec/2025:09:16:05 +0000] "GET / HTTP/1.1" - - "-" "-" 502 "web@docker" "-" 17ms`,
		},
	},
}

var cloudFront = Format{
	// The first %v is cs(Host), the distribution's own name, which goaccess takes. The second is x-host-header, what
	// the visitor asked for; goaccess skips it.
	Name: "CLOUDFRONT",
	Log:  "%d\t%t\t%^\t%b\t%h\t%m\t%v\t%U\t%s\t%R\t%u\t%q\t%^\t%C\t%^\t%v\t%^\t%^\t%T\t%^\t%K\t%k\t%^\t%H\t%^",
	Date: DateW3C, Time: Time24, Resolution: time.Second, LogTime: Finished, Escape: EscapePercent, LastVHost: true, NamesFields: true,
	Sample: Sample{
		Valid: 1, Failed: 1, Why: "tabs, and per cent escapes in the user agent",
		Lines: []string{
			"2025-10-10\t21:02:31\tLAX1\t392\t192.0.2.100\tGET\td111111abcdef8.cloudfront.net\t/index.html\t200\thttps://example.com/\tMozilla/5.0%20(Windows%20NT%2010.0)\tpage=1\t-\tHit\tSOX4x\td111111abcdef8.cloudfront.net\thttps\t23\t0.001\t-\tTLSv1.2\tECDHE-RSA-AES128-GCM-SHA256\tHit\tHTTP/2.0\t-\t-",
			"2025-10-10\t21:02:31\tLAX1\t392\t192.0.2.100\tGETS",
		},
	},
}

var awsALB = Format{
	// %v is the balancer's name.
	Name: "AWSALB", Log: `%^ %dT%t.%^ %v %h:%^ %^ %^ %T %^ %s %^ %^ %b "%r" "%u" %k %K %^`,
	Date: DateW3C, Time: Time24, Resolution: time.Microsecond, LogTime: Finished, Escape: EscapeBackslash, HostIsLabel: true,
	Sample: Sample{
		Valid: 1, Failed: 1, Why: "the balancer's name is not a host",
		Lines: []string{
			`http 2025-10-10T23:39:43.945958Z app/my-loadbalancer/50dc6c495c0c9188 192.0.2.131:2817 10.0.0.1:80 0.000 0.001 0.000 200 200 34 366 "GET http://www.example.com:80/ HTTP/1.1" "curl/8.5.0" - - arn:aws:x "Root=1-58337262" "-" "-" 0 2025-10-10T23:39:43.364000Z "forward" "-" "-"`,
			`http 2025-10-10T23:39:43.945958Z app/my-loadbalancer/50dc6c495c0c9188 192.0.2.131:2817 10.0.0.1:80 0.000 0.001 0.000 - - 34 366 "GET http://www.example.com:80/ HTTP/1.1" "curl/8.5.0" - - arn:aws:x`,
		},
	},
}

var awsELB = Format{
	Name: "AWSELB", Log: `%^ %dT%t.%^ %^ %h:%^ %^ %^ %T %^ %s %^ %^ %b "%r" "%u" %k %K %^ "%^" "%v"`,
	Date: DateW3C, Time: Time24, Resolution: time.Microsecond, LogTime: Finished, Escape: EscapeBackslash,
	Sample: Sample{
		Valid: 1, Failed: 1, Why: "sub-second UTC times, absolute targets",
		Lines: []string{
			`https 2025-10-10T23:39:43.945958Z app/my-loadbalancer/50dc6c495c0c9188 192.0.2.131:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://www.example.com:443/ HTTP/1.1" "curl/8.5.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:x "Root=1-58337281" "www.example.com" "arn:aws:y" 1 2025-10-10T23:39:43.859000Z "authenticate,forward" "-" "-"`,
			`https 2025-10-10 app/my-loadbalancer/50dc6c495c0c9188 192.0.2.131:2817 -`,
		},
	},
}

var awsS3 = Format{
	// %v is the bucket.
	Name: "AWSS3", Log: `%^ %v [%d:%t %^] %h %^"%r" %s %^ %b %^ %L %^ "%R" "%u"`,
	Date: DateApache, Time: Time24, Resolution: time.Second, LogTime: Received, Escape: EscapeNone, HostIsLabel: true,
	Sample: Sample{
		Valid: 1, Failed: 1, Why: "the bucket is not a host",
		Lines: []string{
			`79a59d mybucket [06/Feb/2025:00:00:38 +0000] 192.0.2.3 79a59d 3E57427F3EXAMPLE REST.GET.VERSIONING - "GET /mybucket?versioning HTTP/1.1" 200 - 113 - 7 - "-" "S3Console/0.4" -`,
			`79a59d mybucket [06/Feb/2025:00:00:38 +0000] 192.0.2.3 79a59d 3E57427F3EXAMPLE REST.GET.VERSIONING - "GET /mybucket?versioning HTTP/1.1" 2000 - 113 - 7 - "-" "S3Console/0.4" -`,
		},
	},
}

var cloudStorage = Format{
	Name: "CLOUDSTORAGE", Log: `"%x","%h",%^,%^,"%m","%U","%s",%^,"%b","%D",%^,"%R","%u"`,
	Date: "%f", Time: "%f", DateTime: "%f", Resolution: time.Microsecond, LogTime: Finished, Escape: EscapeNone,
	Sample: Sample{
		Valid: 1, Failed: 1, Why: "comma-separated, microseconds since the epoch",
		Lines: []string{
			`"1760100936123456","192.0.2.9","1","","GET","/storage/v1/b/site/o/logo.png","200","100","2048","15300","storage.googleapis.com","https://example.com/","curl/8.5.0","id","objects.get","site","logo.png"`,
			`"17x0100936123456","192.0.2.9","1","","GET","/x","200","100","2048","15300","h","-","-"`,
		},
	},
}

var haproxy = Format{
	// The header fields that it was told to capture come before the request, in braces. "option httpslog" goes on after it.
	Name: "HAPROXY", Log: `%h:%^ [%d:%t.%^] %^ %^ %^/%^/%^/%^/%L %s %b %^"%r"`,
	Date: DateApache, Time: Time24, Resolution: time.Millisecond, LogTime: Received, Escape: EscapeHash, ZeroStatus: true,
	Sample: Sample{
		Newer: true, Valid: 4, Failed: 1, Why: "with and without captured header fields, an IPv6 address, a request that was given up, a TCP connection",
		Lines: []string{
			`192.0.2.1:33317 [25/Nov/2025:10:00:00.655] in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 "GET /index.html HTTP/1.1"`,
			`192.0.2.1:33318 [25/Nov/2025:10:00:01.002] in~ static/srv1 0/0/7/1457/+1487 200 +11394 - - ---- 2/1/0/0/0 0/0 {www.example.com|Mozilla/5.0 (X11; Linux x86_64)} {} "GET /?a=#22 HTTP/1.1"`,
			`2001:db8::1:33319 [25/Nov/2025:10:00:01.020] in~ in/<NOSRV> 0/-1/-1/-1/0 503 213 - - SC-- 1/1/0/0/0 0/0 "GET https://www.example.com/foo HTTP/2.0"`,
			`192.0.2.2:33320 [25/Nov/2025:10:00:02.100] in static/srv1 5/0/1/-1/900 -1 0 - - CH-- 1/1/1/1/0 0/0 "POST /slow HTTP/1.1"`,
			`192.0.2.2:33321 [25/Nov/2025:10:00:03.000] tcp db/srv1 0/0/5007 212 -- 0/0/0/0/3 0/0`,
		},
	},
}

var haproxyCLF = Format{
	// "option httplog clf". Its milliseconds, behind the port, are not read.
	Name: "HAPROXYCLF", Log: `%h - - [%d:%t %^] "%r" %s %b "" "" %^ %^ "%^" "%^" "%^" %^ %^ %^ %^ %L %^`,
	Date: DateApache, Time: Time24, Resolution: time.Second, LogTime: Received, Escape: EscapeHash, ZeroStatus: true,
	Sample: Sample{
		Valid: 2, Why: "the duration is the last of five times",
		Lines: []string{
			`192.0.2.1 - - [25/Nov/2025:10:00:00 +0000] "GET /index.html HTTP/1.1" 200 2750 "" "" 33317 655 "in" "static" "srv1" 10 0 30 69 109 "----" 1 1 1 1 0 0 0 "" ""`,
			`192.0.2.2 - - [25/Nov/2025:10:00:01 +0000] "POST /a HTTP/1.1" 503 213 "" "" 33318 2 "in~" "in" "<NOSRV>" 0 -1 -1 -1 0 "SC--" 1 1 0 0 0 0 0 "" "" "www.example.com" ""`,
		},
	},
}

var traefik = Format{
	// Traefik's JSON. ClientHost is X-Forwarded-For where there is one. Header fields are there if its configuration keeps them.
	Name: "TRAEFIK", Log: `{"StartUTC":"%x","StartLocal":"%x","ClientHost":"~h{, }","ClientAddr":"%h:%^","RequestMethod":"%m","RequestHost":"%v","RequestPath":"%U",` +
		`"RequestProtocol":"%H","DownstreamStatus":"%s","DownstreamContentSize":"%b","Duration":"%n",` +
		`"request_User-Agent":"%u","request_Referer":"%R"}`,
	LogTime: Received, Escape: EscapeNone, ZeroStatus: true, ClientKey: "ClientHost",
	Keys: "`StartUTC` or `StartLocal`, `ClientHost` or `ClientAddr`, `RequestMethod`, `RequestHost`, `RequestPath`, `RequestProtocol`, `DownstreamStatus`, `DownstreamContentSize`, `Duration`, `request_User-Agent`, `request_Referer`",
	Sample: Sample{
		Newer: true, Valid: 3, Failed: 1, Why: "an address, a list from X-Forwarded-For, an address with its port, a message",
		Lines: []string{
			`{"ClientAddr":"192.0.2.1:52458","ClientHost":"192.0.2.1","ClientPort":"52458","ClientUsername":"-","DownstreamContentSize":15,"DownstreamStatus":200,"Duration":10002425284,"RequestAddr":"www.example.com","RequestHost":"www.example.com","RequestMethod":"GET","RequestPath":"/a?b=1","RequestProtocol":"HTTP/1.1","RouterName":"web@file","StartLocal":"2025-11-25T10:00:00.773360139Z","StartUTC":"2025-11-25T10:00:00.773360139Z","request_User-Agent":"curl/8.5.0","level":"info","msg":"","time":"2025-11-25T10:00:10Z"}`,
			`{"ClientHost":"203.0.113.7, 192.0.2.1","DownstreamStatus":499,"Duration":900000,"RequestHost":"www.example.com","RequestMethod":"POST","RequestPath":"/b","RequestProtocol":"HTTP/2.0","StartUTC":"2025-11-25T10:00:01.5Z"}`,
			`{"ClientAddr":"[2001:db8::1]:56348","DownstreamStatus":304,"RequestMethod":"GET","RequestPath":"/c","RequestProtocol":"HTTP/1.1","StartLocal":"2025-11-25T11:00:02.25+01:00"}`,
			`{"level":"error","msg":"no route","time":"2025-11-25T10:00:10Z"}`,
		},
	},
}

var npm = Format{
	Name: "NPM", Log: `[%d:%t %^] %C %^ %s - %m %^ %v "%U" [Client %h] [Length %b] [Gzip %^] [Sent-to %^] "%u" "%R"`,
	Date: DateApache, Time: Time24, Resolution: time.Second, LogTime: Finished, Escape: EscapeBackslash,
	Sample: Sample{
		Valid: 2, Failed: 1, Why: "Nginx Proxy Manager's format proxy; one that it forwarded nowhere",
		Lines: []string{
			`[25/Nov/2025:10:00:00 +0000] - 200 200 - GET https www.example.com "/a?b=1" [Client 192.0.2.1] [Length 1543] [Gzip 2.45] [Sent-to 10.0.0.15] "Mozilla/5.0 (X11)" "https://www.example.com/"`,
			`[25/Nov/2025:10:00:01 +0000] HIT 304 304 - POST http www.example.com "/c" [Client 2001:db8::1] [Length 0] [Gzip -] [Sent-to web] "curl/8.5.0" "-"`,
			`[25/Nov/2025:10:00:02 +0000] 404 - GET https www.example.com "/robots.txt" [Client 192.0.2.2] [Length 169] [Gzip -] "curl/8.5.0" "-"`,
		},
	},
}

var npmStandard = Format{
	Name: "NPMSTANDARD", Log: `[%d:%t %^] %s - %m %^ %v "%U" [Client %h] [Length %b] [Gzip %^] "%u" "%R"`,
	Date: DateApache, Time: Time24, Resolution: time.Second, LogTime: Finished, Escape: EscapeBackslash,
	Sample: Sample{
		Valid: 2, Failed: 1, Why: "Nginx Proxy Manager's format standard: hosts that it forwards nowhere",
		Lines: []string{
			`[25/Nov/2025:10:00:02 +0000] 404 - GET https www.example.com "/robots.txt" [Client 192.0.2.2] [Length 169] [Gzip -] "curl/8.5.0" "-"`,
			`[25/Nov/2025:10:00:03 +0000] 301 - HEAD http old.example.com "/" [Client 192.0.2.3] [Length 0] [Gzip -] "-" "http://old.example.com/"`,
			`[25/Nov/2025:10:00:00 +0000] - 200 200 - GET https www.example.com "/a" [Client 192.0.2.1] [Length 1543] [Gzip 2.45] [Sent-to 10.0.0.15] "curl/8.5.0" "-"`,
		},
	},
}

var cloudflare = Format{
	// Logpush's data set http_requests. Its times are nanoseconds or seconds since the epoch, or RFC 3339.
	Name: "CLOUDFLARE", Log: `{"EdgeStartTimestamp":"%x","ClientIP":"%h","ClientRequestMethod":"%m","ClientRequestHost":"%v",` +
		`"ClientRequestURI":"%U","ClientRequestProtocol":"%H","ClientRequestReferer":"%R","ClientRequestUserAgent":"%u",` +
		`"EdgeResponseStatus":"%s","EdgeResponseBytes":"%b","CacheCacheStatus":"%C"}`,
	LogTime: Received, Escape: EscapeNone, ZeroStatus: true,
	Keys: "`EdgeStartTimestamp`, `ClientIP`, `ClientRequestMethod`, `ClientRequestHost`, `ClientRequestURI`, `ClientRequestProtocol`, `ClientRequestReferer`, `ClientRequestUserAgent`, `EdgeResponseStatus`, `EdgeResponseBytes`",
	Sample: Sample{
		Newer: true, Valid: 3, Failed: 1, Why: "times in three forms; an event of the firewall",
		Lines: []string{
			`{"CacheCacheStatus":"hit","ClientIP":"192.0.2.1","ClientRequestHost":"www.example.com","ClientRequestMethod":"GET","ClientRequestPath":"/a","ClientRequestProtocol":"HTTP/3","ClientRequestReferer":"https://www.example.com/","ClientRequestURI":"/a?b=1","ClientRequestUserAgent":"Mozilla/5.0","EdgeEndTimestamp":1760100936461999900,"EdgeResponseBytes":69045,"EdgeResponseStatus":200,"EdgeStartTimestamp":1760100936433000200,"RayID":"3a6050bcbe121a87"}`,
			`{"ClientIP":"2001:db8::1","ClientRequestHost":"www.example.com","ClientRequestMethod":"POST","ClientRequestURI":"/c","EdgeResponseBytes":0,"EdgeResponseStatus":0,"EdgeStartTimestamp":"2025-10-10T12:55:37Z","RayID":"3a6050bcbe121a88"}`,
			`{"ClientIP":"192.0.2.3","ClientRequestHost":"www.example.com","ClientRequestMethod":"GET","ClientRequestURI":"/d","EdgeResponseBytes":12,"EdgeResponseStatus":404,"EdgeStartTimestamp":1760100938}`,
			`{"Action":"block","ClientIP":"192.0.2.1","ClientRequestHost":"www.example.com","Datetime":"2025-10-10T12:55:37Z"}`,
		},
	},
}

var fastly = Format{
	// The two formats in JSON of Fastly's documentation. Its first is the one that its endpoints have by default, in which
	// time_elapsed is lacking; in the second "request" is the method.
	Name: "FASTLY", Log: `{"timestamp":"%x","time_start":"%x","client_ip":"%h","request_method":"%m","request":"%m","host":"%v",` +
		`"url":"%U","request_protocol":"%H","protocol":"%H","request_referer":"%R","request_user_agent":"%u",` +
		`"response_state":"%C","response_status":"%s","status":"%s","response_body_size":"%b","resp_body_size":"%b","time_elapsed":"%D"}`,
	LogTime: Received, Escape: EscapeNone, ZeroStatus: true,
	Keys: "`timestamp` or `time_start`, `client_ip`, `request_method` or `request`, `host`, `url`, `request_protocol` or `protocol`, `request_referer`, `request_user_agent`, `response_status` or `status`, `response_body_size` or `resp_body_size`, `time_elapsed`",
	Sample: Sample{
		Newer: true, Valid: 2, Failed: 1, Why: "both formats; a line without a client",
		Lines: []string{
			`{"timestamp":"2025-10-10T12:55:36+0000","client_ip":"192.0.2.1","geo_country":"germany","host":"www.example.com","url":"/a?b=1","request_method":"GET","request_protocol":"HTTP/2","request_referer":"","request_user_agent":"Mozilla/5.0","response_state":"HIT-CLUSTER","response_status":200,"response_reason":"OK","response_body_size":512,"fastly_server":"cache-fra-1","fastly_is_edge":true}`,
			`{"service_id":"x","time_start":"2025-10-10T12:55:37UTC","time_end":"2025-10-10T12:55:37UTC","time_elapsed":1500,"client_ip":"192.0.2.2","request":"POST","protocol":"HTTP/1.1","host":"www.example.com","url":"/c","status":"404","resp_body_size":12}`,
			`{"timestamp":"2025-10-10T12:55:36+0000","url":"/"}`,
		},
	},
}

var bunny = Format{
	// No method: a replay takes all requests for GET. Times are in milliseconds, and in seconds in older logs.
	Name: "BUNNY", Log: `%C|%s|%x|%b|%^|%h|%R|%U|%^|%u|%^|%^`,
	LogTime: Finished, Escape: EscapeNone,
	Sample: Sample{
		Newer: true, Valid: 2, Failed: 1, Why: "milliseconds since the epoch, whole URLs, no method; a line that was cut off",
		Lines: []string{
			`HIT|200|1760100936421|412|390|192.0.2.1|-|https://cdn.example.com/avatar.gif?v=2|WA|Mozilla/5.0 (X11; Linux x86_64)|322b688bd63fb63f2babe9de30a5d262|DE`,
			`MISS|404|1760100937000|0|390|2001:db8::1|https://www.example.com/|https://cdn.example.com/none.js|DE|curl/8.5.0|322b688bd63fb63f2babe9de30a5d263|DE`,
			`HIT|200|1760100936421|412|390`,
		},
	},
}

var proxyVariants = []Variant{
	{Label: "Squid's own access.log (`logformat squid`)", Log: `%x %~%L %h %^/%s %b %m %U %^`, IsDetected: true},
	{Label: "HAProxy's log (`option httplog`) behind syslog", Log: `%^]: %h:%^ [%d:%t.%^] %^ %^ %^/%^/%^/%^/%L %s %b %^"%r"`, IsDetected: true},
	{Label: "HAProxy's log that captures Host and User-Agent", Log: `%h:%^ [%d:%t.%^] %^ %^ %^/%^/%^/%^/%L %s %b %^{%v|%u} %^"%r"`},
	{Label: "the log of an AWS classic load balancer", Log: `%x %^ %h:%^ %^ %^ %T %^ %s %^ %^ %b "%r" "%u"`, IsDetected: true},
}
