package route

import "bytes"

// kindOf returns the kind of request that a lower-case path and its query show, or "".
func kindOf(path, query []byte) string {
	if len(path) == 0 || string(path) == "/" || string(path) == "*" {
		return frontPage(query)
	}
	last := path[bytes.LastIndexByte(path, '/')+1:]
	if kind := byScript(path, last, query); kind != "" {
		return kind
	}
	extension := last[bytes.LastIndexByte(last, '.')+1:]
	kind := ""
	if len(extension) < len(last) {
		kind = byExtension[string(extension)]
	}
	// Forums answer in JSON and as text below the same folders as in HTML: there the folder says more.
	if kind != "" && kind != "text" && kind != "page" {
		return kind
	}
	if folder := byFolder(path); folder != "" && !hidden(path) {
		return folder
	}
	switch {
	case kind != "":
		return kind
	case hidden(path):
		return "probe"
	case onePart(path):
		return "page" // "/about", "/hello-world/": a permalink, and there may be thousands
	}
	return ""
}

// hidden finds what only scanners ask for, in any folder that they can think of: /laravel/.env, /.git/config.
func hidden(path []byte) bool {
	at := bytes.Index(path, []byte("/."))
	return at >= 0 && !hasPrefix(path[at:], "/.well-known/")
}

// onePart reports whether the path has one segment only, with a slash after it or not.
func onePart(path []byte) bool {
	if path[0] != '/' {
		return false
	}
	path = bytes.Trim(path, "/")
	return bytes.IndexByte(path, '/') < 0 && bytes.IndexByte(path, '.') < 0
}

// frontPage returns the kind of a request for "/": WordPress's plain permalinks and XenForo's route-in-query are
// queries of it.
func frontPage(query []byte) string {
	switch {
	case hasParam(query, "s="), hasParam(query, "q="):
		return "search"
	case hasParam(query, "feed="):
		return "feed"
	case hasParam(query, "rest_route="), hasParam(query, "wc-ajax="):
		return "rest"
	case hasParam(query, "p="):
		return "post"
	case hasParam(query, "attachment_id="):
		return "attachment"
	case hasPrefix(query, "threads/"):
		return "thread"
	case hasPrefix(query, "forums/"):
		return "forum"
	case hasPrefix(query, "members/"):
		return "member"
	case hasPrefix(query, "login"):
		return "login"
	}
	return "page"
}

// byScript returns the kind of a script or file that is known by its own name.
func byScript(path, last, query []byte) string {
	if kind, ok := byFile[string(last)]; ok {
		return kind
	}
	switch string(last) {
	case "index.php":
		if len(path) <= len("/index.php") || bytes.Count(path, []byte("/")) == 1 {
			return frontPage(query)
		}
	case "ucp.php": // phpBB's user control panel
		if hasParam(query, "mode=login") || hasParam(query, "mode=logout") {
			return "login"
		}
		return "member"
	}
	if hasPrefix(last, "sitemap") || hasPrefix(last, "wp-sitemap") {
		return "sitemap"
	}
	return ""
}

// byFolder returns the kind of what lies in a folder that software puts its parts into. WordPress may live below a
// folder of its own, so its parts are looked for anywhere; those of forums at the front or below /forum, /forums,
// /community.
func byFolder(path []byte) string {
	switch {
	case contains(path, "/wp-json/"), bytes.HasSuffix(path, []byte("/wp-json")):
		return "rest"
	case contains(path, "/wp-admin/"), bytes.HasSuffix(path, []byte("/wp-admin")):
		return "admin"
	case contains(path, "/feed/"):
		return "feed"
	case contains(path, "/download/file.php"): // phpBB
		return "attachment"
	case dated(path):
		return "post"
	}
	p := path
	for _, root := range [...]string{"/index.php", "/community", "/forums", "/forum", "/board"} {
		if rest, ok := bytes.CutPrefix(p, []byte(root)); ok && len(rest) > 1 && rest[0] == '/' {
			if kind := byForumFolder(rest); kind != "" {
				return kind
			}
		}
	}
	return byForumFolder(p)
}

func byForumFolder(p []byte) string { return byForum[string(firstSegment(p))] }

// dated finds WordPress's permalinks with a date: /2026/11/ and what follows.
func dated(path []byte) bool {
	if len(path) < len("/2026/11/") || path[0] != '/' || path[5] != '/' || path[8] != '/' {
		return false
	}
	for _, i := range [...]int{1, 2, 3, 4, 6, 7} {
		if path[i] < '0' || path[i] > '9' {
			return false
		}
	}
	return true
}
