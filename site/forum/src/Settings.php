<?php

declare(strict_types=1);

namespace Forum;

/** Table `setting`: the version of the tables, what was seeded, faults on order. */
final class Settings
{
    public function __construct(private readonly Database $db) {}

    public function get(string $name): ?string
    {
        $value = $this->db->value('SELECT value FROM setting WHERE name = ?', [$name]);
        return $value === null ? null : (string) $value;
    }

    public function set(string $name, string $value): void
    {
        $this->db->run('REPLACE INTO setting (name, value) VALUES (?, ?)', [$name, $value]);
    }

    public function remove(string $name): void
    {
        $this->db->run('DELETE FROM setting WHERE name = ?', [$name]);
    }
}
