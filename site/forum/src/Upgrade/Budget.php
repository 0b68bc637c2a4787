<?php

declare(strict_types=1);

namespace Forum\Upgrade;

/** What one page may do: so many rows, and no further batch after so many seconds. */
final class Budget
{
    private int $rowsLeft;
    private readonly float $until;

    public function __construct(float $page_s, int $page_rows, private readonly int $batch_rows)
    {
        $this->until = microtime(true) + $page_s;
        $this->rowsLeft = $page_rows;
    }

    /** Rows of a batch whose rows each cost $weight times that of a post. */
    public function batchRows(int $weight): int
    {
        return max(1, intdiv(min($this->batch_rows, max(1, $this->rowsLeft)), $weight));
    }

    public function took(int $rows): void
    {
        $this->rowsLeft -= $rows;
    }

    public function isSpent(): bool
    {
        return $this->rowsLeft <= 0 || microtime(true) >= $this->until;
    }
}
