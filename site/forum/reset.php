<?php

declare(strict_types=1);

/** `php reset.php`: takes the tables back to the old version, so that a clone can be upgraded again. */

namespace Forum;

use Forum\Upgrade\Upgrader;

require __DIR__ . '/bootstrap.php';

Cli::main(static function (): int {
    $config = require __DIR__ . '/config.php';
    $upgrader = new Upgrader(Database::connect($config), $config);
    $upgrader->reset();
    Cli::say('The forum is back at version ' . $upgrader->version() . '.');
    return 0;
});
