<?php
/** Rows on their way into one table, some thousand a statement. */
final class Table
{
    private const STATEMENT_BYTES = 2 << 20;

    private array $rows = [];
    private int $bytes = 0;
    public int $count = 0;

    public function __construct(private mysqli $db, private string $name, private array $columns) {}

    /** Adds a row; values in the order of the columns, null for NULL. */
    public function add(int|float|string|null ...$values): void
    {
        foreach ($values as &$value) {
            $value = match (true) {
                null === $value => 'NULL',
                is_string($value) => "'" . $this->db->real_escape_string($value) . "'",
                default => (string) $value,
            };
        }
        $row = '(' . implode(',', $values) . ')';
        $this->rows[] = $row;
        $this->bytes += strlen($row);
        ++$this->count;
        if ($this->bytes > self::STATEMENT_BYTES) {
            $this->flush();
        }
    }

    /** Sends what is left. */
    public function flush(): void
    {
        if ($this->rows) {
            $this->db->query(
                "INSERT INTO $this->name (" . implode(',', $this->columns) . ') VALUES ' . implode(',', $this->rows),
            );
            $this->rows = [];
            $this->bytes = 0;
        }
    }
}
