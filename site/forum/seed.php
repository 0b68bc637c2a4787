<?php

declare(strict_types=1);

/** `php seed.php --size small --seed 1`: makes and fills the tables of the old version. */

namespace Forum;

use Forum\Seed\Seeder;
use Forum\Seed\Size;

require __DIR__ . '/bootstrap.php';

const USAGE = 'usage: php seed.php [--size small|medium|large] [--seed N] [--rows POSTS] [--force] [--wait SECONDS]
  --rows   number of posts in place of a size, with a thread for every 20 and a member for every 40
  --force  seed again, even if the forum was seeded with other settings
  --wait   seconds to wait for the database (default 0)';

Cli::main(static function () use ($argv): int {
    $options = getopt('', ['size:', 'seed:', 'rows:', 'wait:', 'force'], $rest);
    $options += ['size' => 'small', 'seed' => '1', 'rows' => null, 'wait' => '0'];
    $number = static fn(string $key, int $least) => filter_var($options[$key], FILTER_VALIDATE_INT, [
        'options' => ['min_range' => $least],
    ]);
    $rows = $options['rows'] === null ? null : $number('rows', 1);
    [$seed, $wait_s] = [$number('seed', 0), $number('wait', 0)];
    $size = Size::of((string) $options['size'], $rows ?: null);
    if ($rest < count($argv) || $size === null || $rows === false || $seed === false || $wait_s === false) {
        return Cli::usage(USAGE);
    }
    $db = Database::connect(require __DIR__ . '/config.php', $wait_s);
    $schema = new Schema($db);
    $settings = new Settings($db);
    $what = "posts $size->posts seed $seed";
    // Written last: a forum whose seeding was interrupted has no such setting, and is made again.
    $before = $schema->hasTable('setting') ? $settings->get('seeded') : null;
    if ($before === $what && !isset($options['force'])) {
        Cli::say("The forum already has $what.");
        return 0;
    }
    if ($before !== null && !isset($options['force'])) {
        return Cli::usage("The forum was seeded with $before. To lose that and seed $what, add --force.");
    }
    $begun = microtime(true);
    $schema->drop();
    $schema->create();
    $shown = $begun;
    (new Seeder($db, $size, $seed))->run(static function (int $posts) use ($size, &$shown): void {
        if (microtime(true) - $shown > 5) {
            Cli::say(sprintf('%d of %d posts', $posts, $size->posts));
            $shown = microtime(true);
        }
    });
    $settings->set('seeded', $what);
    Cli::say(
        sprintf(
            'Seeded %d posts, %d threads, %d members with seed %d in %.1f s.',
            $size->posts,
            $size->threads,
            $size->members,
            $seed,
            microtime(true) - $begun,
        ),
    );
    return 0;
});
