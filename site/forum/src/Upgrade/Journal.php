<?php

declare(strict_types=1);

namespace Forum\Upgrade;

use Forum\Database;

/** Table `upgrade_step`: how far each step came. What a batch changes and its entry here are one transaction. */
final class Journal
{
    public function __construct(private readonly Database $db) {}

    public function isDone(string $step): bool
    {
        return $this->db->value('SELECT status FROM upgrade_step WHERE step = ?', [$step]) === 'done';
    }

    /** The cursor up to which the step's rows are done. */
    public function position(string $step): int
    {
        return (int) $this->db->value('SELECT position FROM upgrade_step WHERE step = ?', [$step]);
    }

    public function isEmpty(): bool
    {
        return $this->db->value('SELECT 1 FROM upgrade_step LIMIT 1') === null;
    }

    public function begin(string $step): void
    {
        $this->db->run("INSERT IGNORE INTO upgrade_step (step, status) VALUES (?, 'running')", [$step]);
    }

    public function advance(string $step, int $position, int $rows): void
    {
        $sql = 'UPDATE upgrade_step SET position = ?, rows_done = rows_done + ? WHERE step = ?';
        $this->db->run($sql, [$position, $rows, $step]);
    }

    public function pageDone(string $step, bool $done, float $seconds): void
    {
        $this->db->run('UPDATE upgrade_step SET pages = pages + 1, seconds = seconds + ?, status = ? WHERE step = ?', [
            $seconds,
            $done ? 'done' : 'running',
            $step,
        ]);
    }

    public function clear(): void
    {
        $this->db->run('DELETE FROM upgrade_step');
    }
}
