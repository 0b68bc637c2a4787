<?php

declare(strict_types=1);

namespace Forum;

/** What members write below a thread: a post, and what a forum counts and indexes with it. */
final class Replies
{
    private const MOST_BYTES = 10000;

    public function __construct(private readonly Database $db) {}

    /** The form below a thread's posts, for who is logged in; nothing for guests. */
    public function form(int $threadId): string
    {
        $session = $this->sessions()->current();
        if (!$session || !$session['member_id']) {
            return '';
        }
        $hidden = Html::hidden(['_xfToken' => Sessions::token($session)]);
        return "<form action=\"index.php?threads/$threadId/add-reply\" method=\"post\" class=\"reply\">\n$hidden" .
            "<textarea name=\"message\"></textarea>\n<button>Post reply</button>\n</form>\n";
    }

    /** Adds a member's post to a thread, and returns its number. */
    public function add(int $threadId, mixed $token, mixed $message): int
    {
        $session = $this->sessions()->current();
        if (!Sessions::tokenFits($session, $token)) {
            throw new Problem('The security token did not fit. Go back, reload the page and try again.', 400);
        }
        if (!$session || !$session['member_id']) {
            throw new Problem('Only members reply. Log in first.', 403);
        }
        if (!is_string($message) || trim($message) === '' || strlen($message) > self::MOST_BYTES) {
            throw new Problem('A reply has between 1 and ' . self::MOST_BYTES . ' bytes.', 400);
        }
        return $this->db->transaction(fn() => $this->insert($threadId, $session['member_id'], $message));
    }

    private function insert(int $threadId, int $memberId, string $message): int
    {
        $thread =
            $this->db->row('SELECT board_id, title, post_count FROM thread WHERE thread_id = ? FOR UPDATE', [
                $threadId,
            ]) ?? throw new Problem('There is no such thread.', 404);
        $now = time();
        $id = 1 + (int) $this->db->value('SELECT MAX(post_id) FROM post FOR UPDATE');
        $this->db->run(
            'INSERT INTO post (post_id, thread_id, member_id, posted_at, position, message) VALUES (?, ?, ?, ?, ?, ?)',
            [$id, $threadId, $memberId, $now, $thread['post_count'], $message],
        );
        $this->db->run(
            'INSERT INTO search_index (post_id, board_id, posted_at, title, message) VALUES (?, ?, ?, ?, ?)',
            [$id, $thread['board_id'], $now, $thread['title'], $message],
        );
        $this->db->run('UPDATE thread SET post_count = post_count + 1, last_post_at = ? WHERE thread_id = ?', [
            $now,
            $threadId,
        ]);
        $this->db->run('UPDATE board SET post_count = post_count + 1 WHERE board_id = ?', [$thread['board_id']]);
        $this->db->run('UPDATE member SET post_count = post_count + 1 WHERE member_id = ?', [$memberId]);
        return $id;
    }

    private function sessions(): Sessions
    {
        return new Sessions($this->db, 'forum_session');
    }
}
