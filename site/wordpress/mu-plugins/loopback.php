<?php
/**
 * Plugin Name: Plimsoll: loopback
 * Description: WordPress's calls to itself (the database part of an upgrade) reach the web role, whatever name and port the visitor used.
 */

/**
 * Leads a call to this site's own address to the web role; the Host header stays.
 *
 * @param resource|CurlHandle $handle The call.
 * @param array               $args   Its arguments.
 * @param string              $url    Its address.
 */
function plimsoll_loopback($handle, $args, $url)
{
    if (wp_parse_url($url, PHP_URL_HOST) === wp_parse_url(home_url(), PHP_URL_HOST)) {
        curl_setopt($handle, CURLOPT_CONNECT_TO, ['::web:8080']);
    }
}
add_action('http_api_curl', 'plimsoll_loopback', 10, 3);
add_filter('block_local_requests', '__return_false');
