<?php

declare(strict_types=1);

namespace Forum;

/** The tables as the old version has them, and what they look like now. */
final class Schema
{
    /** In the order in which they are made. utf8mb3 and short types: what a forum of some age has. */
    public const TABLES = [
        'setting' => 'name VARCHAR(50) NOT NULL PRIMARY KEY, value TEXT NOT NULL',
        'session' => 'session_id BINARY(32) NOT NULL PRIMARY KEY, member_id INT UNSIGNED NOT NULL,
            csrf CHAR(32) NOT NULL, expires_at INT UNSIGNED NOT NULL, KEY expires_at (expires_at)',
        'upgrade_step' => "step VARCHAR(50) NOT NULL PRIMARY KEY, status ENUM('running', 'done') NOT NULL,
            position BIGINT UNSIGNED NOT NULL DEFAULT 0, rows_done BIGINT UNSIGNED NOT NULL DEFAULT 0,
            pages INT UNSIGNED NOT NULL DEFAULT 0, seconds DOUBLE NOT NULL DEFAULT 0",
        'upgrade_lease' => 'id TINYINT NOT NULL PRIMARY KEY, owner CHAR(32) NOT NULL, expires_at DOUBLE NOT NULL',
        'board' => 'board_id INT UNSIGNED NOT NULL PRIMARY KEY, title VARCHAR(100) NOT NULL,
            description TEXT NOT NULL, thread_count INT UNSIGNED NOT NULL, post_count INT UNSIGNED NOT NULL',
        'member' => 'member_id INT UNSIGNED NOT NULL PRIMARY KEY, name VARCHAR(50) NOT NULL,
            email VARCHAR(120) NOT NULL, password VARCHAR(255) NOT NULL, is_admin TINYINT NOT NULL,
            joined_at INT UNSIGNED NOT NULL, post_count INT UNSIGNED NOT NULL, signature TEXT NOT NULL,
            UNIQUE KEY name (name)',
        'thread' => 'thread_id INT UNSIGNED NOT NULL PRIMARY KEY, board_id INT UNSIGNED NOT NULL,
            title VARCHAR(100) NOT NULL, member_id INT UNSIGNED NOT NULL, started_at INT UNSIGNED NOT NULL,
            last_post_at INT UNSIGNED NOT NULL, post_count INT UNSIGNED NOT NULL, views INT UNSIGNED NOT NULL,
            KEY board_last (board_id, last_post_at)',
        'post' => 'post_id INT UNSIGNED NOT NULL PRIMARY KEY, thread_id INT UNSIGNED NOT NULL,
            member_id INT UNSIGNED NOT NULL, posted_at INT UNSIGNED NOT NULL, position INT UNSIGNED NOT NULL,
            message MEDIUMTEXT NOT NULL, KEY thread_position (thread_id, position)',
        'post_like' => 'post_id INT UNSIGNED NOT NULL, member_id INT UNSIGNED NOT NULL,
            liked_at INT UNSIGNED NOT NULL, PRIMARY KEY (post_id, member_id), KEY member_id (member_id)',
        'search_index' => 'post_id INT UNSIGNED NOT NULL PRIMARY KEY, board_id INT UNSIGNED NOT NULL,
            posted_at INT UNSIGNED NOT NULL, title VARCHAR(250) NOT NULL, message MEDIUMTEXT NOT NULL',
    ];

    public function __construct(private readonly Database $db) {}

    public function create(): void
    {
        foreach (self::TABLES as $table => $columns) {
            $this->db->run("CREATE TABLE IF NOT EXISTS `$table` ($columns)
                ENGINE=InnoDB DEFAULT CHARSET=utf8mb3 COLLATE=utf8mb3_general_ci");
        }
    }

    public function drop(): void
    {
        foreach (array_reverse(array_keys(self::TABLES)) as $table) {
            $this->db->run("DROP TABLE IF EXISTS `$table`");
        }
    }

    public function hasTable(string $table): bool
    {
        return $this->found('TABLES', 'TABLE_NAME = ?', [$table]);
    }

    public function hasColumn(string $table, string $column): bool
    {
        return $this->found('COLUMNS', 'TABLE_NAME = ? AND COLUMN_NAME = ?', [$table, $column]);
    }

    public function hasIndex(string $table, string $index): bool
    {
        return $this->found('STATISTICS', 'TABLE_NAME = ? AND INDEX_NAME = ?', [$table, $index]);
    }

    /** Whether the column is of $type, for instance "varchar(250)" or "bigint unsigned". */
    public function hasType(string $table, string $column, string $type): bool
    {
        $sql = 'SELECT COLUMN_TYPE FROM information_schema.COLUMNS
            WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? AND COLUMN_NAME = ?';
        $now = (string) $this->db->value($sql, [$this->db->name, $table, $column]);
        // Some servers write an integer's display width, and some do not.
        return preg_replace('/int\(\d+\)/', 'int', $now) === $type;
    }

    public function hasCollation(string $table, string $collation): bool
    {
        return $this->found('TABLES', 'TABLE_NAME = ? AND TABLE_COLLATION = ?', [$table, $collation]);
    }

    /** @param list<string> $values */
    private function found(string $view, string $where, array $values): bool
    {
        $sql = "SELECT 1 FROM information_schema.$view WHERE TABLE_SCHEMA = ? AND $where LIMIT 1";
        return $this->db->value($sql, [$this->db->name, ...$values]) !== null;
    }
}
