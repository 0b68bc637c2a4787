<?php

declare(strict_types=1);

namespace Forum\Upgrade;

use Forum\Database;

/**
 * A step that goes through a table by its key, in batches.
 *
 * Its statements take the rows whose key is over :low and at most :high. Done twice they write the same.
 */
final class Rebuild implements Step
{
    /**
     * @param list<string> $statements
     * @param int $weight What a row costs, in posts: a batch takes so many times fewer rows
     */
    public function __construct(
        private readonly string $name,
        private readonly string $title,
        private readonly string $table,
        private readonly string $key,
        private readonly int $weight,
        private readonly array $statements,
        private readonly string $undoSql = '',
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
        return (int) $db->value("SELECT MAX(`$this->key`) FROM `$this->table`");
    }

    public function piece(Database $db, Journal $journal, Budget $budget): bool
    {
        do {
            $low = $journal->position($this->name);
            $batch = $db->row(
                "SELECT MAX(k) AS high, COUNT(*) AS n FROM
                    (SELECT `$this->key` AS k FROM `$this->table` WHERE `$this->key` > ? ORDER BY 1 LIMIT ?) AS b",
                [$low, $budget->batchRows($this->weight)],
            );
            if (!$batch || !$batch['n']) {
                return true;
            }
            $high = (int) $batch['high'];
            $db->transaction(function () use ($db, $journal, $low, $high, $batch): void {
                foreach ($this->statements as $statement) {
                    $db->run($statement, [':low' => $low, ':high' => $high]);
                }
                $journal->advance($this->name, $high, (int) $batch['n']);
            });
            $budget->took((int) $batch['n'] * $this->weight);
        } while (!$budget->isSpent());
        return false;
    }

    public function undo(Database $db): void
    {
        if ($this->undoSql !== '') {
            $db->run($this->undoSql);
        }
    }
}
