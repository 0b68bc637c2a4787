<?php
/**
 * Plugin Name: Plimsoll: consistency
 * Description: Nothing happens by itself: no cron, no mail, no prompts, no calls to the outside. So two clones do the same work.
 */

// Mail is said to be sent, and is not.
add_filter('pre_wp_mail', '__return_true');

// The admin's e-mail is not asked to be confirmed, and cron does not run, here without the constants too.
add_filter('admin_email_check_interval', '__return_zero');
add_filter('pre_get_ready_cron_jobs', '__return_empty_array');

// What WordPress asks wordpress.org for when an administrator looks at a page.
add_filter('pre_site_transient_update_plugins', 'plimsoll_no_updates');
add_filter('pre_site_transient_update_themes', 'plimsoll_no_updates');
add_filter('pre_site_transient_php_check_' . md5(phpversion()), 'plimsoll_php_is_fine');
remove_action('admin_init', '_maybe_update_plugins');
remove_action('admin_init', '_maybe_update_themes');
remove_action('admin_init', '_maybe_update_core');
add_action('wp_dashboard_setup', 'plimsoll_no_news', 20);

/**
 * All calls but those to this site itself and to the upgrade mirror are refused, whatever wp-config.php says.
 *
 * @param false|array|WP_Error $reply What an earlier filter answered.
 * @param array                $args  The request's arguments.
 * @param string               $url   Its address.
 * @return false|array|WP_Error False where the call may go on.
 */
function plimsoll_no_external_calls($reply, $args, $url)
{
    $host = wp_parse_url($url, PHP_URL_HOST);
    if (in_array($host, ['mirror', wp_parse_url(home_url(), PHP_URL_HOST)], true)) {
        return $reply;
    }
    return new WP_Error('http_request_not_executed', 'Plimsoll: a clone calls nobody; refused: ' . $host);
}
add_filter('pre_http_request', 'plimsoll_no_external_calls', 10, 3);

/**
 * The answer of an update check that found nothing.
 *
 * @return object
 */
function plimsoll_no_updates()
{
    return (object) [
        'last_checked' => time(),
        'checked' => [],
        'response' => [],
        'no_update' => [],
        'translations' => [],
    ];
}

/**
 * What wordpress.org would have said of this PHP.
 *
 * @return array
 */
function plimsoll_php_is_fine()
{
    return [
        'recommended_version' => phpversion(),
        'minimum_version' => '5.6.20',
        'is_supported' => true,
        'is_secure' => true,
        'is_acceptable' => true,
    ];
}

/** The dashboard without WordPress news and the browser check. */
function plimsoll_no_news()
{
    remove_meta_box('dashboard_primary', 'dashboard', 'side');
    remove_meta_box('dashboard_browser_nag', 'dashboard', 'normal');
    remove_meta_box('dashboard_php_nag', 'dashboard', 'normal');
}
