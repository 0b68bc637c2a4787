package formats

// Squid.

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

var squidVariants = []Variant{
	{Name: "Squid's own access.log", Log: `%x %~%L %h %^/%s %b %m %U %^`, IsSuggested: true},
}
