<?php
/**
 * Plugin Name: Plimsoll: server timing
 * Description: Says in the header Server-Timing how much CPU time PHP took for a request to the admin, login, REST and upload side.
 *
 * It needs nothing else of Plimsoll: copy it to wp-content/mu-plugins/ of any site. WordPress 4.3 and later.
 */

/**
 * CPU time between two readings, in ms: in user and in system mode together.
 *
 * @param array $from getrusage() at the start.
 * @param array $to   getrusage() at the end.
 * @return float
 */
function plimsoll_cpu_ms($from, $to)
{
    $us = 0;
    foreach (['ru_utime', 'ru_stime'] as $mode) {
        $us +=
            1000000 * ($to[$mode . '.tv_sec'] - $from[$mode . '.tv_sec']) +
            $to[$mode . '.tv_usec'] -
            $from[$mode . '.tv_usec'];
    }
    return $us / 1000;
}

/**
 * Keeps the reply until it is whole, so that the header can say what all of it took.
 *
 * Public pages are left alone (a cache would repeat the figure), and so are pages that tell their progress as they go.
 */
function plimsoll_time_this_request()
{
    $path = isset($_SERVER['SCRIPT_NAME']) ? $_SERVER['SCRIPT_NAME'] : '';
    if (preg_match('#/wp-admin/(update-core|update|upgrade)\.php$#', $path)) {
        return;
    }
    $uri = isset($_SERVER['REQUEST_URI']) ? $_SERVER['REQUEST_URI'] : '';
    if (!is_admin() && !preg_match('#/wp-login\.php|/wp-json(/|$)|[?&]rest_route=#', $uri)) {
        return;
    }
    $start = isset($GLOBALS['plimsoll_cpu_start']) ? $GLOBALS['plimsoll_cpu_start'] : getrusage();
    ob_start(function ($reply, $phase) use ($start) {
        if ($phase & PHP_OUTPUT_HANDLER_FINAL && !headers_sent()) {
            header(sprintf('Server-Timing: cpu;dur=%.1f', plimsoll_cpu_ms($start, getrusage())));
        }
        return $reply;
    });
}
if (function_exists('getrusage') && PHP_SAPI !== 'cli') {
    plimsoll_time_this_request();
}
