<?php
/**
 * The site's configuration: the same for each clone, whatever name and port it answers under.
 */

// Where the CPU time of a request begins to count (mu-plugins/server-timing.php).
$GLOBALS['plimsoll_cpu_start'] = getrusage();

define('DB_NAME', 'wordpress');
define('DB_USER', 'wordpress');
define('DB_PASSWORD', 'wordpress');
define('DB_HOST', getenv('WORDPRESS_DB_HOST') ?: 'db:3306');
define('DB_CHARSET', 'utf8mb4');
define('DB_COLLATE', '');
$table_prefix = 'wp_';

// A clone is asked for by any name; what is no host name gets the one of the seed.
if (isset($_SERVER['HTTP_X_FORWARDED_PROTO']) && 'https' === $_SERVER['HTTP_X_FORWARDED_PROTO']) {
    $_SERVER['HTTPS'] = 'on';
}
$plimsoll_host = $_SERVER['HTTP_HOST'] ?? '';
if (!preg_match('/^([a-z0-9.-]+|\[[0-9a-f:.]+\])(:\d{1,5})?$/i', $plimsoll_host)) {
    $plimsoll_host = 'www.example.org';
}
$plimsoll_url = (empty($_SERVER['HTTPS']) ? 'http://' : 'https://') . $plimsoll_host;
define('WP_HOME', $plimsoll_url);
define('WP_SITEURL', $plimsoll_url);

// Clones of one seed accept each other's cookies; they are no secret, since a clone is reached on loopback only.
foreach (
    [
        'AUTH_KEY',
        'SECURE_AUTH_KEY',
        'LOGGED_IN_KEY',
        'NONCE_KEY',
        'AUTH_SALT',
        'SECURE_AUTH_SALT',
        'LOGGED_IN_SALT',
        'NONCE_SALT',
    ]
    as $plimsoll_salt
) {
    define($plimsoll_salt, 'plimsoll-clone ' . $plimsoll_salt);
}

// Consistency: nothing happens but what a visitor, an author or a scenario asks for.
define('DISABLE_WP_CRON', true);
define('AUTOMATIC_UPDATER_DISABLED', true);
define('WP_AUTO_UPDATE_CORE', 'minor'); // with false, Debian's WordPress hides the button as well
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('WP_ACCESSIBLE_HOSTS', 'mirror');
define('FS_METHOD', 'direct');
define('WP_MEMORY_LIMIT', '256M');
define('WP_MAX_MEMORY_LIMIT', '256M');
define('WP_TEMP_DIR', (getenv('PLIMSOLL_DATA') ?: '/data') . '/tmp/php');
define('WP_DEBUG', false);

if (!defined('ABSPATH')) {
    define('ABSPATH', __DIR__ . '/');
}
require_once ABSPATH . 'wp-settings.php';
