<?php

declare(strict_types=1);

namespace Forum;

/**
 * Table `session`. A guest who only reads has none and gets no cookie, so that a cache may keep his pages.
 *
 * @phpstan-type Session array{id: string, member_id: int, csrf: string}
 */
final class Sessions
{
    private const LIFE_S = 3600;

    public function __construct(private readonly Database $db, private readonly string $cookie) {}

    /** @return Session|null The session that the browser's cookie names, unless it is over. */
    public function current(): ?array
    {
        $id = $_COOKIE[$this->cookie] ?? '';
        if (!is_string($id) || !preg_match('/^[0-9a-f]{64}$/', $id)) {
            return null;
        }
        $row = $this->db->row('SELECT member_id, csrf FROM session WHERE session_id = ? AND expires_at > ?', [
            hex2bin($id),
            time(),
        ]);
        return $row ? ['id' => $id, 'member_id' => (int) $row['member_id'], 'csrf' => $row['csrf']] : null;
    }

    /** @return Session A new one, whose cookie is set; member 0 is a guest. */
    public function begin(int $memberId): array
    {
        $session = ['id' => bin2hex(random_bytes(32)), 'member_id' => $memberId, 'csrf' => bin2hex(random_bytes(16))];
        $this->db->run('DELETE FROM session WHERE expires_at < ? LIMIT 1000', [time()]);
        $this->db->run('INSERT INTO session (session_id, member_id, csrf, expires_at) VALUES (?, ?, ?, ?)', [
            hex2bin($session['id']),
            $memberId,
            $session['csrf'],
            time() + self::LIFE_S,
        ]);
        setcookie($this->cookie, $session['id'], ['path' => '/', 'httponly' => true, 'samesite' => 'Lax']);
        return $session;
    }

    public function end(): void
    {
        if ($session = $this->current()) {
            $this->db->run('DELETE FROM session WHERE session_id = ?', [hex2bin($session['id'])]);
        }
        setcookie($this->cookie, '', ['path' => '/', 'expires' => 1]);
    }

    /** @param Session $session What this session's forms carry in `_xfToken`. */
    public static function token(array $session): string
    {
        $now = (string) time();
        return $now . ',' . hash_hmac('sha256', $now, $session['csrf']);
    }

    /** @param Session|null $session Whether the posted `_xfToken` was given to this session within its life. */
    public static function tokenFits(?array $session, mixed $token): bool
    {
        if ($session === null || !is_string($token) || !preg_match('/^(\d{1,12}),([0-9a-f]{64})$/', $token, $parts)) {
            return false;
        }
        return hash_equals(hash_hmac('sha256', $parts[1], $session['csrf']), $parts[2]) &&
            (int) $parts[1] > time() - self::LIFE_S;
    }
}
