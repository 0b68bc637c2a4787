package formats

// HAProxy.

var haproxyVariants = []Variant{
	{Name: "HAProxy's log of HTTP behind syslog", Log: `%^]: %h:%^ [%d:%t.%^] %^ %^ %^/%^/%^/%^/%L %s %b %^"%r"`, IsSuggested: true},
	{Name: "HAProxy's log of HTTP", Log: `%h:%^ [%d:%t.%^] %^ %^ %^/%^/%^/%^/%L %s %b %^"%r"`, IsSuggested: true},
}
