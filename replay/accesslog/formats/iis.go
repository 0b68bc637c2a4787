package formats

// IIS, and others that write the extended format of the W3C.

import "time"

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

var iisVariants = []Variant{
	{Name: "IIS with `sc-bytes cs-bytes time-taken` at the end (with `--date-format %Y-%m-%d --time-format %H:%M:%S`)", Log: `%d %t %^ %m %U %q %^ %^ %h %u %R %s %^ %^ %b %^ %L`},
}
