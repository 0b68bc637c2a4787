package formats

// Google's Cloud Storage.

import "time"

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
