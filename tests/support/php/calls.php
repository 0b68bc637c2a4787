<?php
// Says what becomes of calls to the outside, of one to the mirror, and of a mail.
require '/usr/share/plimsoll/seed/wordpress.php';
foreach (['https://api.wordpress.org/', 'http://192.0.2.1/', 'http://mirror:8081/offer.json'] as $url) {
    $reply = wp_remote_get($url);
    echo is_wp_error($reply) ? $reply->get_error_code() : $reply['response']['code'], "\n";
}
echo wp_mail('somebody@example.org', 'a', 'b') ? "sent\n" : "not sent\n";
