<?php
/** Installs WordPress by its own installer. What chance or the clock put there is replaced afterwards, by fill.php. */
define('WP_INSTALLING', true);
define('WP_DEFAULT_THEME', 'twentytwentyone');
require __DIR__ . '/wordpress.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';

// The installer would try whether its own pages can be reached; they cannot yet.
add_filter('pre_http_request', fn() => new WP_Error('no_calls', 'The site is being made.'), 1);

wp_install('The Plimsoll Gazette', 'admin', 'admin@example.org', true, '', 'plimsoll-clone');

// Before the site is filled, by a process of its own: WordPress knows categories' addresses only when this was set as it started.
update_option('permalink_structure', '/%year%/%monthnum%/%postname%/');
