package traffic

import (
	"context"

	"plimsoll/replay/accesslog"
	"plimsoll/replay/engine/wire"
)

// EachGet calls use for every request of the logs, in their order, until it returns false: with the target as it was sent,
// the virtual host that the log names, if it does, and whether this is a GET that can be sent again as it was. The bytes
// are good until the next call.
func (l *Logs) EachGet(ctx context.Context, use func(target, vhost []byte, isGet bool) bool) error {
	style := l.Format.TargetEscape()
	var target []byte
	return l.source.Each(ctx, l.Format, nil, func(r *accesslog.Request) bool {
		target = accesslog.Unescape(target[:0], r.Target, style)
		method := methodOf(r.Method)
		if method == "" && !l.hasMethod {
			method = "GET"
		}
		sendable := (&wire.Request{Method: method, Target: string(target)}).Unsafe() == ""
		vhost := r.VHost
		if len(vhost) == 0 {
			vhost = r.URLHost
		}
		return use(target, vhost, method == "GET" && sendable)
	})
}
