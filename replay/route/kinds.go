package route

// kind is one kind of request, with the names that it is known by.
type kind struct {
	name       string
	files      []string // last parts of a path, in any folder
	extensions []string // file types
	folders    []string // first parts of a path, as forum software and the like have them
}

// kinds is the registry. To add a kind, add an entry: room for its name is kept, and it is found by its files, file
// types and folders. A kind that takes more than one name to tell gets a rule in classifier.go too. Sources: WordPress
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
	{
		name:  "post",
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
