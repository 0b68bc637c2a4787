package members

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"math"
	"regexp"

	"plimsoll/replay/accesslog"
)

// Signs are what shows that a client of a log is a member.
type Signs struct {
	Match []*regexp.Regexp // of a target that only members get
	Share float64          // of all clients, drawn by Seed in place of the log's signs; 0: by the signs
	Seed  int64
	Login Place // of the site; the usual ones are known
}

// Marks reports whether a request of a client says that this is a member. target is the request's, as it was sent.
func (s *Signs) Marks(r *accesslog.Request, client uint32, target []byte) bool {
	if s.Share > 0 {
		return s.drawn(client)
	}
	if len(r.User) > 0 || s.isLogin(r, target) || isAdminPage(r, target) {
		return true
	}
	for _, re := range s.Match {
		if re.Match(target) {
			return true
		}
	}
	return false
}

// drawn reports whether a client is among the share, the same in every run with this seed.
func (s *Signs) drawn(client uint32) bool {
	var text [12]byte
	binary.LittleEndian.PutUint64(text[:], uint64(s.Seed))
	binary.LittleEndian.PutUint32(text[8:], client)
	h := fnv.New64a()
	_, _ = h.Write(text[:])
	mixed := h.Sum64()
	mixed ^= mixed >> 33 // FNV alone leaves the high bits uneven; this is the finalizer of MurmurHash3
	mixed *= 0xff51afd7ed558ccd
	mixed ^= mixed >> 33
	return float64(mixed)/math.MaxUint64 < s.Share
}

// loginTarget matches where WordPress and XenForo take logins.
var loginTarget = regexp.MustCompile(`(?:/wp-login\.php(?:\?|$)|/login/login/?(?:\?|$)|/index\.php\?login(?:/login)?/?(?:&|$))`)

// isLogin reports whether a login went through, which redirects: a wrong password gets the form again. So robots
// that guess passwords are not members.
func (s *Signs) isLogin(r *accesslog.Request, target []byte) bool {
	if string(r.Method) != "POST" || r.Status != 0 && (r.Status < 300 || r.Status > 399) {
		return false
	}
	return loginTarget.Match(target) || !s.Login.IsZero() && s.Login.IsAt(string(target))
}

// openToGuests matches what is under wp-admin and answers guests too.
var openToGuests = regexp.MustCompile(
	`/wp-admin/(?:(?:admin-ajax|admin-post|load-styles|load-scripts|install|upgrade|setup-config)\.php|(?:css|js|images)/)`)

// isAdminPage reports whether a page under wp-admin was shown. Guests are redirected to the login there.
func isAdminPage(r *accesslog.Request, target []byte) bool {
	shown := r.Status == 0 || r.Status >= 200 && r.Status < 300
	path, _, _ := bytes.Cut(target, []byte{'?'})
	return shown && bytes.Contains(path, []byte("/wp-admin/")) && !openToGuests.Match(path)
}
