package route

import "bytes"

// kindNames are the names that kindOf gives, so that room is kept for them.
var kindNames = []string{
	"page", "feed", "login", "admin", "admin-ajax", "rest", "upload", "thread", "forum", "member", "search", "cron", "xmlrpc",
	"comment", "post", "attachment", "api", "sitemap", "robots", "health", "probe",
	"image", "css-js", "font", "download", "media", "text",
}

// kindOf is the kind of request that a lower-case path and its query show, or "".
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

// onePart tells whether the path has one segment only, with a slash after it or not.
func onePart(path []byte) bool {
	if path[0] != '/' {
		return false
	}
	path = bytes.Trim(path, "/")
	return bytes.IndexByte(path, '/') < 0 && bytes.IndexByte(path, '.') < 0
}

// frontPage tells what is asked of "/": WordPress's plain permalinks and XenForo's route-in-query are queries of it.
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

// byScript knows scripts and files by their own name. Sources: WordPress core, phpBB 3, vBulletin 3 to 5, XenForo.
func byScript(path, last, query []byte) string {
	if kind, ok := byName[string(last)]; ok {
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

var byName = map[string]string{
	"wp-login.php": "login", "login.php": "login", "wp-cron.php": "cron", "cron.php": "cron", "xmlrpc.php": "xmlrpc",
	"admin-ajax.php": "admin-ajax", "admin-post.php": "admin", "async-upload.php": "upload", "media-new.php": "upload",
	"media-upload.php": "upload", "wp-comments-post.php": "comment", "wp-trackback.php": "comment", "job.php": "cron",
	"viewtopic.php": "thread", "showthread.php": "thread", "showpost.php": "thread", "viewforum.php": "forum",
	"forumdisplay.php": "forum", "memberlist.php": "member", "member.php": "member", "search.php": "search",
	"posting.php": "post", "newreply.php": "post", "newthread.php": "post", "attachment.php": "attachment",
	"admin.php": "admin", "robots.txt": "robots", "ads.txt": "robots", "security.txt": "robots", "humans.txt": "robots",
	"feed": "feed", "rss": "feed", "atom": "feed", "rss.xml": "feed", "atom.xml": "feed", "feed.xml": "feed", "index.rss": "feed",
	"wp-rss2.php": "feed", "external.php": "feed", "rss2": "feed", "rdf": "feed", "latest.rss": "feed", "posts.rss": "feed",
	"login": "login", "signin": "login", "logout": "login", "register": "login", "wp-signup.php": "login",
	"healthz": "health", "health": "health", "server-status": "health", "stub_status": "health", "nginx_status": "health",
	"add-reply": "post", "post-thread": "post", "wp-activate.php": "login", "load-styles.php": "css-js", "load-scripts.php": "css-js",
	"css.php": "css-js", "search": "search", "search.json": "search", "ajax.php": "api",
}

var byExtension = func() map[string]string {
	m := map[string]string{}
	for kind, extensions := range map[string][]string{
		"image":    {"jpg", "jpeg", "png", "gif", "webp", "avif", "svg", "svgz", "ico", "bmp", "tif", "tiff", "heic", "jxl", "cur"},
		"css-js":   {"css", "js", "mjs", "map", "wasm"},
		"font":     {"woff", "woff2", "ttf", "otf", "eot"},
		"download": {"zip", "gz", "tgz", "bz2", "xz", "zst", "7z", "rar", "tar", "iso", "img", "exe", "msi", "dmg", "pkg", "deb", "rpm", "apk", "jar", "pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods", "epub", "bin", "torrent", "sig", "asc", "whl", "gem", "crate", "drpm"},
		"media":    {"mp3", "mp4", "m4a", "m4v", "m4s", "ogg", "ogv", "oga", "opus", "webm", "wav", "flac", "avi", "mov", "mkv", "mpg", "mpeg", "ts", "m3u8", "mpd", "vtt"},
		"text":     {"txt", "xml", "json", "csv", "md", "yaml", "yml", "log", "webmanifest"},
		"feed":     {"rss", "atom", "rdf"},
		"page":     {"php", "html", "htm", "xhtml", "shtml", "asp", "aspx", "jsp", "cgi"},
	} {
		for _, e := range extensions {
			m[e] = kind
		}
	}
	return m
}()

// byFolder knows the folders that software puts its parts into. WordPress may live below a folder of its own,
// so its parts are looked for anywhere; those of forums at the front or below /forum, /forums, /community.
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

func byForumFolder(p []byte) string { return forumFolders[string(firstSegment(p))] }

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

var forumFolders = map[string]string{
	"threads": "thread", "thread": "thread", "t": "thread", "topic": "thread", "topics": "thread",
	"forums": "forum", "forum": "forum", "c": "forum", "categories": "forum", "whats-new": "forum", "latest": "forum",
	"members": "member", "member": "member", "u": "member", "users": "member", "user": "member", "profile": "member",
	"account": "member", "conversations": "member", "direct-messages": "member", "author": "member",
	"search": "search", "login": "login", "logout": "login", "register": "login", "lost-password": "login", "session": "login",
	"attachments": "attachment", "admin": "admin", "adm": "admin", "api": "api", "graphql": "api", "message-bus": "api", "uploads": "upload",
	"category": "page", "tag": "page", "tags": "page", "page": "page",
}
