# The cache: public pages for two minutes, everything personal passed through. Errors are Varnish's own pages.
vcl 4.1;

import std;

backend web {
    .host = "web";
    .port = "8080";
    .connect_timeout = 3s;
    .first_byte_timeout = 900s;
    .between_bytes_timeout = 900s;
}

acl inside {
    "127.0.0.0"/8;
    "10.0.0.0"/8;
    "172.16.0.0"/12;
    "192.168.0.0"/16;
}

sub vcl_recv {
    # A save in WordPress bans the addresses that show the post; the front lets no visitor do so.
    if (req.method == "BAN") {
        if (client.ip !~ inside || !req.http.X-Ban-Url) {
            return (synth(405));
        }
        ban("obj.http.X-Url ~ " + req.http.X-Ban-Url);
        return (synth(200, "Banned"));
    }

    unset req.http.Proxy;
    if (req.method != "GET" && req.method != "HEAD") {
        return (pass);
    }
    # The download is far larger than the cache, and is there to measure the way to the disk.
    if (req.url ~ "^/static/download") {
        return (pass);
    }
    if (req.url ~ "^/(wp-admin|wp-login\.php|wp-json|wp-cron\.php|xmlrpc\.php)" || req.url ~ "[?&](preview|rest_route|customize_changeset_uuid|nocache)=") {
        return (pass);
    }
    if (req.url ~ "^/forum/install" || (req.url ~ "^/forum/" && req.http.Cookie)) {
        return (pass);
    }
    if (req.http.Authorization || req.http.Cookie ~ "(wordpress_logged_in_|wordpress_sec_|wp-postpass_|comment_author_)") {
        return (pass);
    }
    unset req.http.Cookie;
    return (hash);
}

sub vcl_backend_response {
    set beresp.http.X-Url = bereq.url;
    if (bereq.uncacheable) {
        return (deliver);
    }
    set beresp.grace = 10s;
    if (beresp.status >= 500) {
        set beresp.uncacheable = true;
        set beresp.ttl = 0s;
        return (deliver);
    }
    if (bereq.url !~ "^/forum/") {
        unset beresp.http.Set-Cookie;
    }
    if (beresp.http.Set-Cookie || beresp.http.Cache-Control ~ "(?i)no-cache|no-store|private") {
        set beresp.uncacheable = true;
        set beresp.ttl = 120s;
        return (deliver);
    }
    # Originals of images would push the pages out.
    if (std.integer(beresp.http.Content-Length, 0) > 1048576) {
        set beresp.uncacheable = true;
        set beresp.ttl = 120s;
        return (deliver);
    }
    set beresp.ttl = 120s;
    if (beresp.status >= 400) {
        set beresp.ttl = 10s;
    }
    return (deliver);
}

# X-Cache says what varnishstat counts.
sub vcl_hit {
    set req.http.X-Cache = "HIT";
}

sub vcl_miss {
    set req.http.X-Cache = "MISS";
}

sub vcl_pass {
    set req.http.X-Cache = "PASS";
}

sub vcl_backend_fetch {
    unset bereq.http.X-Cache;
}

sub vcl_deliver {
    unset resp.http.X-Url;
    set resp.http.X-Cache = req.http.X-Cache;
}
