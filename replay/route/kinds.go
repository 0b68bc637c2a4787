package route

// The kinds of requests, and how a path shows one.

import "bytes"

// kind is one kind of request, with the names that it is known by.
type kind struct {
	name       string
	files      []string // last parts of a path, in any folder
	extensions []string // file types
	folders    []string // first parts of a path, as forum software and the like have them
}

// kinds is the registry. To add a kind, add an entry: room for its name is kept, and it is found by its files, file
// types and folders. A kind that takes more than one name to tell gets a rule too, below. Sources: WordPress
// core, phpBB 3, vBulletin 3 to 5, XenForo, Discourse.
var kinds = [...]kind{
	{
		name:       "page",
		extensions: []string{"php", "html", "htm", "xhtml", "shtml", "asp", "aspx", "jsp", "cgi"},
		folders:    []string{"category", "tag", "tags", "page"},
	},
	{
		name: "feed",
		files: []string{"feed", "rss", "atom", "rss.xml", "atom.xml", "feed.xml", "index.rss", "wp-rss2.php",
			"external.php", "rss2", "rdf", "latest.rss", "posts.rss"},
		extensions: []string{"rss", "atom", "rdf"},
	},
	{
		name: "login",
		files: []string{"wp-login.php", "login.php", "login", "signin", "logout", "register", "wp-signup.php",
			"wp-activate.php"},
		folders: []string{"login", "logout", "register", "lost-password", "session"},
	},
	{name: "admin", files: []string{"admin-post.php", "admin.php"}, folders: []string{"admin", "adm"}},
	{name: "admin-ajax", files: []string{"admin-ajax.php"}},
	{name: "rest"},
	{
		name:    "upload",
		files:   []string{"async-upload.php", "media-new.php", "media-upload.php"},
		folders: []string{"uploads"},
	},
	{
		name:    "thread",
		files:   []string{"viewtopic.php", "showthread.php", "showpost.php"},
		folders: []string{"threads", "thread", "t", "topic", "topics"},
	},
	{
		name:    "forum",
		files:   []string{"viewforum.php", "forumdisplay.php"},
		folders: []string{"forums", "forum", "c", "categories", "whats-new", "latest"},
	},
	{
		name:  "member",
		files: []string{"memberlist.php", "member.php"},
		folders: []string{"members", "member", "u", "users", "user", "profile", "account", "conversations",
			"direct-messages", "author"},
	},
	{name: "search", files: []string{"search.php", "search", "search.json"}, folders: []string{"search"}},
	{name: "cron", files: []string{"wp-cron.php", "cron.php", "job.php"}},
	{name: "xmlrpc", files: []string{"xmlrpc.php"}},
	{name: "comment", files: []string{"wp-comments-post.php", "wp-trackback.php"}},
	{name: "article"},
	{
		name:  "posting",
		files: []string{"posting.php", "newreply.php", "newthread.php", "add-reply", "post-thread"},
	},
	{name: "attachment", files: []string{"attachment.php"}, folders: []string{"attachments"}},
	{name: "api", files: []string{"ajax.php"}, folders: []string{"api", "graphql", "message-bus"}},
	{name: "sitemap"},
	{name: "robots", files: []string{"robots.txt", "ads.txt", "security.txt", "humans.txt"}},
	{name: "health", files: []string{"healthz", "health", "server-status", "stub_status", "nginx_status"}},
	{name: "probe"},
	{
		name: "image",
		extensions: []string{"jpg", "jpeg", "png", "gif", "webp", "avif", "svg", "svgz", "ico", "bmp", "tif", "tiff",
			"heic", "jxl", "cur"},
	},
	{
		name:       "css-js",
		files:      []string{"load-styles.php", "load-scripts.php", "css.php"},
		extensions: []string{"css", "js", "mjs", "map", "wasm"},
	},
	{name: "font", extensions: []string{"woff", "woff2", "ttf", "otf", "eot"}},
	{
		name: "download",
		extensions: []string{"zip", "gz", "tgz", "bz2", "xz", "zst", "7z", "rar", "tar", "iso", "img", "exe", "msi", "dmg",
			"pkg", "deb", "rpm", "apk", "jar", "pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "odt", "ods",
			"epub", "bin", "torrent", "sig", "asc", "whl", "gem", "crate", "drpm"},
	},
	{
		name: "media",
		extensions: []string{"mp3", "mp4", "m4a", "m4v", "m4s", "ogg", "ogv", "oga", "opus", "webm", "wav", "flac", "avi",
			"mov", "mkv", "mpg", "mpeg", "ts", "m3u8", "mpd", "vtt"},
	},
	{
		name:       "text",
		extensions: []string{"txt", "xml", "json", "csv", "md", "yaml", "yml", "log", "webmanifest"},
	},
}

var (
	byFile      = kindsBy(func(k *kind) []string { return k.files })
	byExtension = kindsBy(func(k *kind) []string { return k.extensions })
	byForum     = kindsBy(func(k *kind) []string { return k.folders })
)

// kindsBy returns the names of kinds by one of the things that they are known by.
func kindsBy(known func(k *kind) []string) map[string]string {
	names := map[string]string{}
	for i := range kinds {
		for _, word := range known(&kinds[i]) {
			names[word] = kinds[i].name
		}
	}
	return names
}

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
		return "article"
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
		return "article"
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
