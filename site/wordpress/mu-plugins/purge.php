<?php
/**
 * Plugin Name: Plimsoll: purge
 * Description: Tells the cache which pages changed when a post or a comment is saved, as a host's cache plugin does.
 */

/**
 * Notes the addresses that show a post, and bans them once, at the end of the request.
 *
 * @param int $post_id The post that changed.
 */
function plimsoll_purge_post($post_id)
{
    static $paths = null;
    if (wp_is_post_revision($post_id) || 'publish' !== get_post_status($post_id) || wp_installing()) {
        return;
    }
    if (null === $paths) {
        $paths = [];
        add_action('shutdown', function () use (&$paths) {
            plimsoll_ban(array_keys($paths));
        });
    }
    $links = [get_permalink($post_id)];
    foreach (wp_get_object_terms($post_id, ['category', 'post_tag']) as $term) {
        $links[] = get_term_link($term);
    }
    foreach ($links as $link) {
        $paths[(string) wp_parse_url($link, PHP_URL_PATH)] = true;
    }
}
add_action('clean_post_cache', 'plimsoll_purge_post');
add_action('wp_update_comment_count', 'plimsoll_purge_post');

/**
 * Bans pages by address, with the front page and the feeds, in one call that waits for no answer longer than a second.
 *
 * @param string[] $paths Paths of the addresses.
 */
function plimsoll_ban($paths)
{
    $paths[] = '/feed/';
    $urls = '^(/(page/.*)?|(' . implode('|', array_map('preg_quote', array_diff($paths, ['', '/']))) . ').*)([?].*)?$';
    $cache = @stream_socket_client('tcp://varnish:6081', $errno, $error, 1);
    if ($cache) {
        stream_set_timeout($cache, 1);
        fwrite($cache, "BAN / HTTP/1.1\r\nHost: varnish\r\nX-Ban-Url: $urls\r\nConnection: close\r\n\r\n");
        fgets($cache);
        fclose($cache);
    }
}
