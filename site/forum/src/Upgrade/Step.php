<?php

declare(strict_types=1);

namespace Forum\Upgrade;

use Forum\Database;

/** One step of the upgrade. Killed at any instant and done again, it leads to the same tables. */
interface Step
{
    /** Its key in the journal. */
    public function name(): string;

    /** What the page's title says while it is done. */
    public function title(): string;

    /** The largest cursor that it can reach, to show how far it is; 0 for a step that is one statement. */
    public function last(Database $db): int;

    /** Does one bounded piece, and writes in the journal how far it came. Returns whether the step is done. */
    public function piece(Database $db, Journal $journal, Budget $budget): bool;

    /** Takes the step back, so that the upgrade can be done again. */
    public function undo(Database $db): void;
}
