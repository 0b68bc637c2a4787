package formats

// nginx, beyond Apache's formats.

var nginxVariants = []Variant{
	{Name: "nginx's combined format and `$request_time`", Log: `%h %^[%d:%t %^] "%r" %s %b "%R" "%u" %T`},
	{Name: "nginx with `$time_iso8601` or `$msec` in the brackets", Log: `%h %^[%x] "%r" %s %b "%R" "%u"`},
	{Name: "ingress-nginx", Log: `%h %^[%d:%t %^] "%r" %s %b "%R" "%u" %^ %T`},
	{Name: "nginx `escape=json`, your own keys", Log: `{"time":"%x","client":{"ip":"%h"},"request":"%r","status":"%s","bytes":"%b"}`},
}
