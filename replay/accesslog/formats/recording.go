package formats

// Plimsoll's own: recordings of requests with their bodies.

import "time"

var recording = Format{
	// Ours: what nginx writes by the log_format of docs/record.md, and what GoReplay's files and HAR are read as.
	Name: "RECORDING", Log: `{ "time": "%x.%^", "client": "%h", "user": "%e", "method": "%m", "host": "%v", "target": "%U", ` +
		`"protocol": "%H", "status": "%s", "bytes": "%b", "duration": "%T", "referer": "%R", "agent": "%u", ` +
		`"type": "%Y", "length": "%l", "body": "%B" }`,
	Date: "%s", Time: "%s", DateTime: "%s", Resolution: time.Millisecond, LogTime: Finished, Escape: EscapeNone,
	ZeroStatus: true,
	Keys:       "`time`, `client`, `user`, `method`, `host`, `target`, `protocol`, `status`, `bytes`, `duration`, `referer`, `agent`, `type`, `length`, `body`; Plimsoll's own, see [record.md](record.md)",
	Sample: Sample{
		Newer: true, Valid: 3, Failed: 2, Why: "bodies with what JSON escapes, null, nothing; a line cut off, one without a client",
		Lines: []string{
			`{"time":"1760100936.756","client":"198.51.100.9","user":"","method":"POST","host":"www.example.com","target":"/wp-comments-post.php","protocol":"HTTP/1.1","status":"302","bytes":"0","duration":"0.120","referer":"https://www.example.com/?p=1","agent":"Mozilla/5.0","type":"application/x-www-form-urlencoded","length":"44","body":"comment=Na+\"so\"+was%21&comment_post_ID=1\u0000\u000d\u000a"}`,
			`{"time":"1760100937.001","client":"198.51.100.9","user":"","method":"GET","host":"www.example.com","target":"/","protocol":"HTTP/2.0","status":"200","bytes":"17","duration":"0.003","referer":"","agent":"","type":"","length":"","body":""}`,
			`{"time":1760100938.25,"client":"2001:db8::1","method":"HEAD","target":"/","status":0,"body":null}`,
			`{"time":"1760100939.000","client":"198.51.100.9","method":"POST","target":"/login","body":"pwd=hun`,
			`{"time":"1760100939.000","method":"POST","target":"/login"}`,
		},
	},
}
