<?php
/** Installs WordPress by its own installer. What chance or the clock put there is replaced afterwards, by fill.php. */
define( 'WP_INSTALLING', true );
define( 'WP_DEFAULT_THEME', 'twentytwentyone' );
require __DIR__ . '/wordpress.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';

wp_install( 'The Plimsoll Gazette', 'admin', 'admin@example.org', true, '', 'plimsoll-clone' );
