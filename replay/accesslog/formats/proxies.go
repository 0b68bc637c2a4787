package formats

// What stands before web servers, or in their place: Squid, HAProxy, Traefik, and the services of Amazon and Google.

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
	Date: DateW3C, Time: Time24, Resolution: time.Second, LogTime: Finished, Escape: EscapePercent, LastVHost: true,
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

var proxyVariants = []Variant{
	{Label: "Squid's own access.log (`logformat squid`)", Log: `%x %~%L %h %^/%s %b %m %U %^`, IsSuggested: true},
	{Label: "HAProxy's log (`option httplog`) behind syslog", Log: `%^]: %h:%^ [%d:%t.%^] %^ %^ %^/%^/%^/%^/%L %s %b %^"%r"`, IsSuggested: true},
	{Label: "HAProxy's log (`option httplog`) without syslog", Log: `%h:%^ [%d:%t.%^] %^ %^ %^/%^/%^/%^/%L %s %b %^"%r"`, IsSuggested: true},
	{Label: "Traefik's JSON", Log: `{"StartUTC":"%x","ClientHost":"%h","RequestMethod":"%m","RequestHost":"%v","RequestPath":"%U","RequestProtocol":"%H","DownstreamStatus":"%s","DownstreamContentSize":"%b","Duration":"%n","request_User-Agent":"%u","request_Referer":"%R"}`, IsSuggested: true},
	{Label: "the log of an AWS classic load balancer", Log: `%x %^ %h:%^ %^ %^ %T %^ %s %^ %^ %b "%r" "%u"`, IsSuggested: true},
}
