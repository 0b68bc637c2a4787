<?php

declare(strict_types=1);

namespace Forum\Seed;

use Forum\Database;
use Forum\Upgrade\Plan;
use Random\Engine\Mt19937;
use Random\Randomizer;

/** Fills the tables of the old version, the same for each size and seed number. */
final class Seeder
{
    public const PASSWORD = 'plimsoll-clone';
    private const BEGUN_AT = 1_262_304_000; // 2010-01-01
    private const ENDED_AT = 1_751_328_000; // 2025-07-01
    private const OPEN_THREADS = 200; // so many are discussed at once, so that a thread's posts lie apart on the disk

    private readonly Randomizer $random;
    private readonly Text $text;
    /** @var array<int, int> by thread, from 1 */
    private array $startedAt = [];
    /** @var array<int, int> */
    private array $lastAt = [];
    /** @var array<int, int> */
    private array $posts = [];
    /** @var array<int, int> */
    private array $starter = [];
    /** @var array<int, int> by member, from 1 */
    private array $written = [];

    public function __construct(private readonly Database $db, private readonly Size $size, int $seed)
    {
        $this->random = new Randomizer(new Mt19937($seed));
        $this->text = new Text($this->random);
    }

    /** @param callable(int): void $progress Gets the number of posts so far. */
    public function run(callable $progress): void
    {
        $this->db->exec('SET SESSION unique_checks = 0, foreign_key_checks = 0');
        $this->postsAndLikes($progress);
        $this->members();
        $this->threadsAndBoards();
        $this->db->run("REPLACE INTO setting (name, value) VALUES ('version', ?)", [Plan::FROM]);
    }

    /** @param callable(int): void $progress */
    private function postsAndLikes(callable $progress): void
    {
        [$posts, $likes] = [new Bulk($this->db, 'post'), new Bulk($this->db, 'post_like')];
        $total = $this->size->posts;
        for ($id = 1; $id <= $total; $id++) {
            $at = self::BEGUN_AT + intdiv((self::ENDED_AT - self::BEGUN_AT) * $id, $total);
            $thread = $this->pickThread($id);
            $member = $this->random->getInt(1, $this->size->members);
            $this->posts[$thread] = ($this->posts[$thread] ?? 0) + 1;
            $this->written[$member] = ($this->written[$member] ?? 0) + 1;
            $this->startedAt[$thread] ??= $at;
            $this->starter[$thread] ??= $member;
            $this->lastAt[$thread] = $at;
            $posts->add([$id, $thread, $member, $at, $this->posts[$thread] - 1, $this->text->post()]);
            // Two posts in five are liked, by one to five members.
            $count = max(0, $this->random->getInt(-7, 5));
            $liker = $this->random->getInt(0, $this->size->members - 1);
            for ($i = 0; $i < $count; $i++) {
                $likes->add([$id, (($liker + $i) % $this->size->members) + 1, $at + 60 * $i]);
            }
            if ($id % 10_000 === 0) {
                $progress($id);
            }
        }
        $posts->flush();
        $likes->flush();
    }

    /** Threads are begun evenly; a post goes to one of the last OPEN_THREADS. */
    private function pickThread(int $post): int
    {
        $begun = min($this->size->threads, 1 + intdiv(($post - 1) * $this->size->threads, $this->size->posts));
        return isset($this->posts[$begun])
            ? $this->random->getInt(max(1, $begun - self::OPEN_THREADS + 1), $begun)
            : $begun;
    }

    private function members(): void
    {
        // One hash for all, of a fixed salt: the same each time, and not ten minutes of hashing.
        $hash = crypt(self::PASSWORD, '$2y$10$plimsollstandinforum1e');
        $members = new Bulk($this->db, 'member');
        for ($id = 1; $id <= $this->size->members; $id++) {
            $name = $id === 1 ? 'admin' : "member$id";
            $joined = self::BEGUN_AT + intdiv((self::ENDED_AT - self::BEGUN_AT) * $id, $this->size->members * 2);
            $signature = $id % 3 ? '' : $this->text->words(12);
            $members->add([
                $id,
                $name,
                "$name@forum.invalid",
                $hash,
                $id === 1 ? 1 : 0,
                $joined,
                $this->written[$id] ?? 0,
                $signature,
            ]);
        }
        $members->flush();
    }

    private function threadsAndBoards(): void
    {
        $counts = array_fill(1, $this->size->boards, [0, 0]);
        $threads = new Bulk($this->db, 'thread');
        foreach ($this->posts as $id => $posts) {
            $board = $this->random->getInt(1, $this->size->boards);
            $counts[$board] = [$counts[$board][0] + 1, $counts[$board][1] + $posts];
            $views = $posts * $this->random->getInt(5, 200);
            $threads->add([
                $id,
                $board,
                $this->text->title(),
                $this->starter[$id],
                $this->startedAt[$id],
                $this->lastAt[$id],
                $posts,
                $views,
            ]);
        }
        $threads->flush();
        $boards = new Bulk($this->db, 'board');
        foreach ($counts as $id => [$threadCount, $postCount]) {
            $boards->add([$id, $this->text->title(), ucfirst($this->text->words(12)) . '.', $threadCount, $postCount]);
        }
        $boards->flush();
    }
}
