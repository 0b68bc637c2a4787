<?php

declare(strict_types=1);

/**
 * Settings of the stand-in. Each is overridden by an environment variable of the name beside it.
 */
$setting = static function (string $name, string $default): string {
    $value = getenv($name);
    return $value === false || $value === '' ? $default : $value;
};

return [
    'db_host' => $setting('FORUM_DB_HOST', 'db'),
    'db_port' => (int) $setting('FORUM_DB_PORT', '3306'),
    'db_user' => $setting('FORUM_DB_USER', 'forum'),
    'db_password' => $setting('FORUM_DB_PASSWORD', 'forum'),
    'db_name' => $setting('FORUM_DB_NAME', 'forum'),
    // A page of the upgrader begins no further batch after so many seconds.
    'page_s' => (float) $setting('FORUM_PAGE_SECONDS', '8'),
    // One transaction of a rebuild takes so many rows.
    'batch_rows' => max(1, (int) $setting('FORUM_BATCH_ROWS', '1000')),
    // One page takes so many rows, however fast they go.
    'page_rows' => max(1, (int) $setting('FORUM_PAGE_ROWS', '50000')),
    // An upgrade that showed no page for so many seconds may be taken over.
    'lease_s' => max(1, (int) $setting('FORUM_LEASE_SECONDS', '20')),
    // How long a page waits for a statement that an earlier page left running in the database.
    'lock_wait_s' => max(0, (int) $setting('FORUM_LOCK_WAIT_SECONDS', '5')),
];
