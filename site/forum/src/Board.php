<?php

declare(strict_types=1);

namespace Forum;

/** What visitors read: the list of boards, a board's threads, a thread's posts. */
final class Board
{
    public const THREADS_PER_PAGE = 20;
    public const POSTS_PER_PAGE = 20;

    public function __construct(private readonly Database $db) {}

    /** @return array{title: string, body: string} */
    public function index(): array
    {
        $body = '<ol class="boards">';
        foreach ($this->db->rows('SELECT * FROM board ORDER BY board_id') as $board) {
            $body .=
                sprintf(
                    '<li><a href="index.php?forums/%d">%s</a><p>%s</p><p class="small">%s threads, %s posts</p></li>',
                    $board['board_id'],
                    Html::text($board['title']),
                    Html::text($board['description']),
                    number_format((int) $board['thread_count']),
                    number_format((int) $board['post_count']),
                ) . "\n";
        }
        return ['title' => 'Forum', 'body' => $body . "</ol>\n<p><a href=\"index.php?login\">Log in</a></p>\n"];
    }

    /** @return array{title: string, body: string} */
    public function threads(int $boardId, int $page): array
    {
        $board =
            $this->db->row('SELECT title, thread_count FROM board WHERE board_id = ?', [$boardId]) ??
            throw new Problem('There is no such board.', 404);
        $pages = max(1, (int) ceil($board['thread_count'] / self::THREADS_PER_PAGE));
        $threads = $this->db->rows(
            'SELECT t.thread_id, t.title, t.post_count, t.views, t.last_post_at, m.name FROM thread t
             JOIN member m ON m.member_id = t.member_id
             WHERE t.board_id = ? ORDER BY t.last_post_at DESC LIMIT ? OFFSET ?',
            [$boardId, self::THREADS_PER_PAGE, self::offset($page, $pages, self::THREADS_PER_PAGE)],
        );
        $body = '<ol class="threads">';
        foreach ($threads as $thread) {
            $body .=
                sprintf(
                    '<li><a href="index.php?threads/%d">%s</a> <span class="small">%s, %s posts, %s views, %s</span></li>',
                    $thread['thread_id'],
                    Html::text($thread['title']),
                    Html::text($thread['name']),
                    number_format((int) $thread['post_count']),
                    number_format((int) $thread['views']),
                    gmdate('Y-m-d H:i', (int) $thread['last_post_at']),
                ) . "\n";
        }
        $paging = Html::paging("index.php?forums/$boardId", $page, $pages);
        return ['title' => $board['title'], 'body' => "$body</ol>\n$paging"];
    }

    /** @return array{title: string, body: string} */
    public function posts(int $threadId, int $page): array
    {
        $thread =
            $this->db->row('SELECT title, post_count, board_id FROM thread WHERE thread_id = ?', [$threadId]) ??
            throw new Problem('There is no such thread.', 404);
        $pages = max(1, (int) ceil($thread['post_count'] / self::POSTS_PER_PAGE));
        $first = self::offset($page, $pages, self::POSTS_PER_PAGE);
        $posts = $this->db->rows(
            'SELECT p.post_id, p.posted_at, p.position, p.message, m.name, m.signature,
                (SELECT COUNT(*) FROM post_like l WHERE l.post_id = p.post_id) AS likes
             FROM post p JOIN member m ON m.member_id = p.member_id
             WHERE p.thread_id = ? AND p.position >= ? AND p.position < ? ORDER BY p.position',
            [$threadId, $first, $first + self::POSTS_PER_PAGE],
        );
        $body = sprintf('<p><a href="index.php?forums/%d">Back to the board</a></p>', $thread['board_id']) . "\n";
        foreach ($posts as $post) {
            $body .= sprintf(
                "<article id=\"post-%d\"><header>%s, %s, #%d</header>\n<p>%s</p>\n<footer>%s<br>%d likes</footer></article>\n",
                $post['post_id'],
                Html::text($post['name']),
                gmdate('Y-m-d H:i', (int) $post['posted_at']),
                $post['position'] + 1,
                str_replace("\n", "</p>\n<p>", Html::text($post['message'])),
                Html::text($post['signature']),
                $post['likes'],
            );
        }
        return [
            'title' => $thread['title'],
            'body' => $body . Html::paging("index.php?threads/$threadId", $page, $pages),
        ];
    }

    private static function offset(int $page, int $pages, int $perPage): int
    {
        if ($page < 1 || $page > $pages) {
            throw new Problem('There is no such page.', 404);
        }
        return ($page - 1) * $perPage;
    }
}
