<?php
/** Checks what was seeded and prints site.json: `php report.php --size small --seed 1`. Ends with 1 where a relation does not hold. */
require __DIR__ . '/wordpress.php';
$said = getopt('', ['size:', 'seed:']);
/** @var wpdb $wpdb */
$db = $wpdb->dbh;
$one = fn(string $query): int => (int) $db->query($query)->fetch_row()[0];
$data = getenv('PLIMSOLL_DATA') ?: '/data';

$wrong = [
    'posts with a wrong number of comments' =>
        "SELECT COUNT(*) FROM wp_posts p WHERE p.comment_count <> (SELECT COUNT(*) FROM wp_comments c WHERE c.comment_post_ID = p.ID AND c.comment_approved = '1')",
    'terms with a wrong count' =>
        "SELECT COUNT(*) FROM wp_term_taxonomy t WHERE t.count <> (SELECT COUNT(*) FROM wp_term_relationships r JOIN wp_posts p ON p.ID = r.object_id WHERE r.term_taxonomy_id = t.term_taxonomy_id AND p.post_status = 'publish')",
    'comments without their post' =>
        'SELECT COUNT(*) FROM wp_comments c LEFT JOIN wp_posts p ON p.ID = c.comment_post_ID WHERE p.ID IS NULL',
    'comments that answer one of another post' =>
        'SELECT COUNT(*) FROM wp_comments c LEFT JOIN wp_comments a ON a.comment_ID = c.comment_parent WHERE c.comment_parent > 0 AND (a.comment_ID IS NULL OR a.comment_post_ID <> c.comment_post_ID OR a.comment_date > c.comment_date)',
    'comments older than their post' =>
        'SELECT COUNT(*) FROM wp_comments c JOIN wp_posts p ON p.ID = c.comment_post_ID WHERE c.comment_date < p.post_date',
    'posts without their author' =>
        'SELECT COUNT(*) FROM wp_posts p LEFT JOIN wp_users u ON u.ID = p.post_author WHERE u.ID IS NULL',
    'revisions without their post' =>
        "SELECT COUNT(*) FROM wp_posts r LEFT JOIN wp_posts p ON p.ID = r.post_parent WHERE r.post_type = 'revision' AND p.ID IS NULL",
    'values without their post' =>
        'SELECT COUNT(*) FROM wp_postmeta m LEFT JOIN wp_posts p ON p.ID = m.post_id WHERE p.ID IS NULL',
    'values without their user' =>
        'SELECT COUNT(*) FROM wp_usermeta m LEFT JOIN wp_users u ON u.ID = m.user_id WHERE u.ID IS NULL',
    'relations without their term' =>
        'SELECT COUNT(*) FROM wp_term_relationships r LEFT JOIN wp_term_taxonomy t ON t.term_taxonomy_id = r.term_taxonomy_id WHERE t.term_id IS NULL',
    'posts that share an address' =>
        "SELECT COUNT(*) FROM (SELECT 1 FROM wp_posts WHERE post_status = 'publish' AND post_type IN ('post', 'page') GROUP BY post_name HAVING COUNT(*) > 1) d",
];
$failed = false;
foreach ($wrong as $what => $query) {
    $count = $one($query);
    if ($count) {
        fwrite(STDERR, "seed: $count $what\n");
        $failed = true;
    }
}
if ($failed) {
    exit(1);
}

/** Bytes of all files in a folder. */
function folder_bytes(string $folder): int
{
    $bytes = 0;
    if (is_dir($folder)) {
        foreach (
            new RecursiveIteratorIterator(new RecursiveDirectoryIterator($folder, FilesystemIterator::SKIP_DOTS))
            as $file
        ) {
            $bytes += $file->getSize();
        }
    }
    return $bytes;
}

$of = fn(string $type): int => $one("SELECT COUNT(*) FROM wp_posts WHERE post_type = '$type'");

/** Bytes of a connection's database; MariaDB counts them when it analyses the tables. */
function database_bytes(mysqli $db): int
{
    $tables = array_column($db->query('SHOW TABLES')->fetch_all(), 0);
    if ($tables) {
        $db->query('ANALYZE TABLE ' . implode(', ', $tables));
    }
    return (int) $db
        ->query(
            'SELECT COALESCE(SUM(data_length + index_length), 0) FROM information_schema.tables WHERE table_schema = DATABASE()',
        )
        ->fetch_row()[0];
}

$offer = json_decode(file_get_contents("$data/mirror/offer.json"), true);
echo json_encode(
    [
        'format' => 1,
        'size' => $said['size'],
        'seed' => (int) $said['seed'],
        'counts' => [
            'posts' => $of('post'),
            'pages' => $of('page'),
            'revisions' => $of('revision'),
            'images' => $of('attachment'),
            'comments' => $one('SELECT COUNT(*) FROM wp_comments'),
            'users' => $one('SELECT COUNT(*) FROM wp_users'),
            'categories' => $one("SELECT COUNT(*) FROM wp_term_taxonomy WHERE taxonomy = 'category'"),
            'tags' => $one("SELECT COUNT(*) FROM wp_term_taxonomy WHERE taxonomy = 'post_tag'"),
            'options' => $one('SELECT COUNT(*) FROM wp_options'),
        ],
        'bytes' => [
            'database_wordpress' => database_bytes($db),
            'database_forum' => database_bytes(new mysqli('db', 'forum', 'forum', 'forum')),
            'uploads' => folder_bytes("$data/wordpress/wp-content/uploads"),
            'code' => folder_bytes("$data/wordpress/wp-includes") + folder_bytes("$data/wordpress/wp-admin"),
            'static' => folder_bytes("$data/static"),
        ],
        'versions' => [
            'wordpress' => get_bloginfo('version'),
            'db_version' => (int) get_option('db_version'),
            'offered' => $offer['version'],
            'php' => PHP_VERSION,
            'mariadb' => $db->server_info,
        ],
    ],
    JSON_PRETTY_PRINT | JSON_UNESCAPED_SLASHES,
),
    "\n";
