<?php

declare(strict_types=1);

namespace Forum;

/** Table `member`: who may log in. */
final class Members
{
    public function __construct(private readonly Database $db) {}

    /** Returns the member whose name and password these are, or null. */
    public function verify(mixed $name, mixed $password, bool $adminOnly = false): ?int
    {
        if (!is_string($name) || !is_string($password)) {
            return null;
        }
        $row = $this->db->row('SELECT member_id, password, is_admin FROM member WHERE name = ?', [$name]);
        if ($row === null || !password_verify($password, $row['password']) || ($adminOnly && !$row['is_admin'])) {
            return null;
        }
        return (int) $row['member_id'];
    }

    public function name(int $memberId): string
    {
        return (string) $this->db->value('SELECT name FROM member WHERE member_id = ?', [$memberId]);
    }
}
