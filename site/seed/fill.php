<?php
/** Fills an installed WordPress: `php fill.php --size small --seed 1 [--gib 30]`. The same site for the same size and seed. */
require __DIR__ . '/wordpress.php';
foreach (
    [
        'Dice',
        'Words',
        'Article',
        'Table',
        'Plan',
        'Painter',
        'Pictures',
        'Users',
        'Terms',
        'Posts',
        'Comments',
        'Options',
    ]
    as $class
) {
    require __DIR__ . "/$class.php";
}
$said = getopt('', ['size:', 'seed:', 'gib:']);
$plan = Plan::of($said['size'], ((int) ($said['gib'] ?? 0)) << 30);
$dice = fn(string $what): Dice => new Dice((int) $said['seed'], $what);
$began = microtime(true);
$tell = function (string $what) use ($began): void {
    fprintf(STDERR, "  %5.1f s  %s\n", microtime(true) - $began, $what);
};

/** @var wpdb $wpdb */
$db = $wpdb->dbh;
foreach (
    [
        'posts',
        'postmeta',
        'comments',
        'commentmeta',
        'terms',
        'term_taxonomy',
        'term_relationships',
        'termmeta',
        'users',
        'usermeta',
        'links',
    ]
    as $emptied
) {
    $db->query("TRUNCATE TABLE wp_$emptied");
}
$db->query("SET SESSION sql_mode = 'NO_ENGINE_SUBSTITUTION', unique_checks = 0"); // dates of 0, as WordPress itself writes them

$words = new Words($dice('words'));
$users = new Users($db, $dice('users'), $words);
$users->fill($plan->users);
$terms = new Terms($db, $dice('terms'), $words);
$terms->fill($plan->categories, $plan->tags);
$tell("$plan->users users, $plan->categories categories, $plan->tags tags");

$pictures = new Pictures($dice('pictures'));
$tell('pictures drawn, and WordPress has made their sizes');

$posts = new Posts($db, $dice('posts'), $words, $users, $terms, $pictures);
$posts->fill($plan);
$posts->menu();
$posts->flush();
$terms->count();
$tell(
    "$plan->posts posts, $plan->pages pages, $plan->revisions revisions, $plan->images pictures in $pictures->files files",
);

(new Comments($db, $dice('comments'), $words, $users))->fill($plan->comments, $posts->published);
$tell("$plan->comments comments");

(new Options($db, $dice('options'), $words))->fill($terms);
$tell('options');
