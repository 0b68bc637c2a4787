<?php

declare(strict_types=1);

namespace Forum\Upgrade;

/** Where the upgrade is: the step that comes next, or null when it is complete. */
final class State
{
    public function __construct(
        public readonly ?Step $step,
        public readonly int $position,
        public readonly int $last,
        public readonly int $stepsDone,
        public readonly int $steps,
    ) {}
}
