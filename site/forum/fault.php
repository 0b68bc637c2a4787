<?php

declare(strict_types=1);

/** `php fault.php KIND STEP | off`: makes a step of the upgrade fail again and again, until you turn it off. */

namespace Forum;

use Forum\Upgrade\Fault;
use Forum\Upgrade\Plan;
use Forum\Upgrade\Step;

require __DIR__ . '/bootstrap.php';

Cli::main(static function () use ($argv): int {
    [$kind, $step] = [$argv[1] ?? '', $argv[2] ?? ''];
    $steps = array_map(fn(Step $known) => $known->name(), Plan::steps());
    if ($kind !== 'off' && (!isset(Fault::KINDS[$kind]) || !in_array($step, $steps, true))) {
        $kinds = '';
        foreach (Fault::KINDS as $name => $meaning) {
            $kinds .= sprintf("  %-8s %s\n", $name, $meaning);
        }
        return Cli::usage("usage: php fault.php KIND STEP | off\nkinds:\n{$kinds}steps: " . implode(' ', $steps));
    }
    $settings = new Settings(Database::connect(require __DIR__ . '/config.php'));
    $kind === 'off' ? $settings->remove('fault') : $settings->set('fault', "$kind $step");
    Cli::say($kind === 'off' ? 'The fault is removed.' : "Step $step will meet: " . Fault::KINDS[$kind] . '.');
    return 0;
});
