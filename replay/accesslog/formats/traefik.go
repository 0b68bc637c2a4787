package formats

// Traefik.

import "time"

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

var traefikVariants = []Variant{
	{Name: "Traefik's JSON", Log: `{"StartUTC":"%x","ClientHost":"%h","RequestMethod":"%m","RequestHost":"%v","RequestPath":"%U","RequestProtocol":"%H","DownstreamStatus":"%s","DownstreamContentSize":"%b","Duration":"%n","request_User-Agent":"%u","request_Referer":"%R"}`, IsSuggested: true},
}
