<?php

declare(strict_types=1);

namespace Forum\Upgrade;

use Forum\Database;
use Forum\Problem;

/**
 * Keeps two upgrades from running at once.
 *
 * Two things are needed. Between two pages, a row says whose upgrade it is, and until when that counts without
 * another page. Within a page, a lock of the database's own: it is held by the connection, so it lasts exactly
 * as long as a statement that outlives its killed client.
 */
final class Lease
{
    public function __construct(
        private readonly Database $db,
        private readonly int $lease_s,
        private readonly int $lock_wait_s,
    ) {}

    /** Does $work for $owner while nobody else can; takes the lease when $take, else it must be the owner's. */
    public function hold(string $owner, bool $take, callable $work): mixed
    {
        $lock = 'forum-upgrade:' . $this->db->name;
        if ((int) $this->db->value('SELECT GET_LOCK(?, ?)', [$lock, $this->lock_wait_s]) !== 1) {
            throw new Problem(
                'The upgrade is locked: a step is still running. Wait until it has finished, then start again.',
            );
        }
        try {
            $this->claim($owner, $take);
            $result = $work();
            $this->renew($owner);
            return $result;
        } finally {
            try {
                $this->db->run('DO RELEASE_LOCK(?)', [$lock]);
            } catch (\PDOException) {
                // The connection is gone, and its lock with it.
            }
        }
    }

    public function release(): void
    {
        $this->db->run('DELETE FROM upgrade_lease');
    }

    private function claim(string $owner, bool $take): void
    {
        $lease = $this->db->row('SELECT owner, expires_at FROM upgrade_lease WHERE id = 1');
        if ($lease !== null && $lease['owner'] === $owner) {
            return;
        }
        if (!$take) {
            throw new Problem('This upgrade is no longer yours: it was taken over. Start again.');
        }
        if ($lease !== null && $lease['expires_at'] > microtime(true)) {
            $wait_s = (int) ceil($lease['expires_at'] - microtime(true));
            throw new Problem("The upgrade is locked: somebody else is running it. Try again in $wait_s seconds.");
        }
        $this->renew($owner);
    }

    private function renew(string $owner): void
    {
        $sql = 'REPLACE INTO upgrade_lease (id, owner, expires_at) VALUES (1, ?, ?)';
        $this->db->run($sql, [$owner, microtime(true) + $this->lease_s]);
    }
}
