<?php

declare(strict_types=1);

/** `php cmd.php upgrade`: the upgrade of install/ in one process, with a line for each piece. */

namespace Forum;

use Forum\Upgrade\Plan;
use Forum\Upgrade\Upgrader;

require __DIR__ . '/bootstrap.php';

Cli::main(static function () use ($argv): int {
    if (($argv[1] ?? '') !== 'upgrade' || count($argv) > 2) {
        return Cli::usage('usage: php cmd.php upgrade');
    }
    $config = require __DIR__ . '/config.php';
    $upgrader = new Upgrader(Database::connect($config), $config);
    $owner = md5('cli ' . getmypid() . ' ' . microtime());
    Cli::say(sprintf('Upgrading from %s to %s.', $upgrader->version(), Plan::TO));
    $state = $upgrader->start($owner);
    while ($state->step !== null) {
        $what = sprintf('[%d/%d] %s', $state->stepsDone + 1, $state->steps, $state->step->title());
        $progress = $state->last === 0 ? '' : sprintf(' (%d of %d)', $state->position, $state->last);
        Cli::say("$what ...$progress");
        $state = $upgrader->page($owner, $state->step->name(), $state->position);
    }
    Cli::say('The upgrade is complete. The forum runs version ' . Plan::TO . '.');
    return 0;
});
