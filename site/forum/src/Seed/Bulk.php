<?php

declare(strict_types=1);

namespace Forum\Seed;

use Forum\Database;

/** Rows of one table, gathered and inserted many at a time. */
final class Bulk
{
    private const BYTES = 1 << 20; // well under the smallest max_allowed_packet in use, 16 MiB

    /** @var list<string> */
    private array $rows = [];
    private int $bytes = 0;

    public function __construct(private readonly Database $db, private readonly string $table) {}

    /** @param list<int|string> $values In the order of the table's columns. */
    public function add(array $values): void
    {
        foreach ($values as &$value) {
            $value = is_int($value) ? (string) $value : $this->db->quote($value);
        }
        $row = '(' . implode(',', $values) . ')';
        $this->rows[] = $row;
        $this->bytes += strlen($row);
        if ($this->bytes >= self::BYTES) {
            $this->flush();
        }
    }

    public function flush(): void
    {
        if ($this->rows) {
            $this->db->exec("INSERT INTO `$this->table` VALUES " . implode(',', $this->rows));
            [$this->rows, $this->bytes] = [[], 0];
        }
    }
}
