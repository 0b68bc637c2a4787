<?php

declare(strict_types=1);

namespace Forum\Upgrade;

use Closure;
use Forum\Database;
use Forum\Schema;

/** A step that is one ALTER TABLE. InnoDB does all of it or nothing, and the tables themselves say which. */
final class Alter implements Step
{
    /** @param Closure(Schema): bool $isDone */
    public function __construct(
        private readonly string $name,
        private readonly string $title,
        private readonly string $sql,
        private readonly string $undoSql,
        private readonly Closure $isDone,
    ) {}

    public function name(): string
    {
        return $this->name;
    }

    public function title(): string
    {
        return $this->title;
    }

    public function last(Database $db): int
    {
        return 0;
    }

    public function piece(Database $db, Journal $journal, Budget $budget): bool
    {
        if (!($this->isDone)(new Schema($db))) {
            $db->run($this->sql);
        }
        return true;
    }

    public function undo(Database $db): void
    {
        if (($this->isDone)(new Schema($db))) {
            $db->run($this->undoSql);
        }
    }
}
