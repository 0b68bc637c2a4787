<?php
/** Comments in the order of time, as they came: mostly under recent posts, a few posts far ahead of the others, in threads. */
final class Comments
{
    private const DEPTH = 5; // thread_comments_depth
    private const REMEMBER = 8; // of a post's latest comments, those that may be answered

    public function __construct(private mysqli $db, private Dice $dice, private Words $words, private Users $users) {}

    /** @param array<array{int, int, float}> $posts Id, Unix time, weight; in the order of time. */
    public function fill(int $count, array $posts): void
    {
        $table = new Table($this->db, 'wp_comments', [
            'comment_ID',
            'comment_post_ID',
            'comment_author',
            'comment_author_email',
            'comment_author_url',
            'comment_author_IP',
            'comment_date',
            'comment_date_gmt',
            'comment_content',
            'comment_karma',
            'comment_approved',
            'comment_agent',
            'comment_type',
            'comment_parent',
            'user_id',
        ]);
        $meta = new Table($this->db, 'wp_commentmeta', ['comment_id', 'meta_key', 'meta_value']);
        $first = $posts[0][1] + 600;
        $span = strtotime(Plan::LAST_DAY . ' UTC') - $first;
        $latest = [];
        $seen = 0; // posts written so far
        for ($id = 1; $id <= $count; $id++) {
            $instant = (int) ($first + ($span * $id) / $count);
            while ($seen < count($posts) && $posts[$seen][1] < $instant) {
                ++$seen;
            }
            [$post] = $this->choose($posts, $seen);
            $date = Plan::date($instant);
            $approved = $this->approval();
            $answered =
                '1' === $approved && isset($latest[$post]) && $this->dice->chance(0.45)
                    ? $this->dice->pick($latest[$post])
                    : [0, 0];
            $user = $this->dice->chance(0.25) ? $this->dice->between(1, count($this->users->people)) : 0;
            [$name, $email] = $user ? $this->users->people[$user] : $this->guest();
            $table->add(
                $id,
                $post,
                $name,
                $email,
                $user || $this->dice->chance(0.7) ? '' : 'https://' . $this->words->topic() . '.example.com/',
                '192.0.2.' . $this->dice->between(1, 254),
                $date,
                $date,
                $this->words->sentences(1 + $this->dice->skewed(9, 2)),
                0,
                $approved,
                'Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0',
                'comment',
                $answered[0],
                $user,
            );
            if ('spam' === $approved) {
                $meta->add($id, '_wp_trash_meta_status', '0');
            } elseif ('1' === $approved && $answered[1] + 1 < self::DEPTH) {
                $latest[$post][] = [$id, $answered[1] + 1];
                if (count($latest[$post]) > self::REMEMBER) {
                    array_shift($latest[$post]);
                }
            }
        }
        $table->flush();
        $meta->flush();
        $this->db->query(
            "UPDATE wp_posts p JOIN (SELECT comment_post_ID id, COUNT(*) n FROM wp_comments WHERE comment_approved = '1' GROUP BY comment_post_ID) c
			ON c.id = p.ID SET p.comment_count = c.n",
        );
    }

    /** Of four posts, each the more likely the newer it is, the one that is talked about most. */
    private function choose(array $posts, int $seen): array
    {
        $best = null;
        for ($i = 0; $i < 4; $i++) {
            $post = $posts[$seen - 1 - $this->dice->skewed($seen, 2.2)];
            if (null === $best || $post[2] > $best[2]) {
                $best = $post;
            }
        }
        return $best;
    }

    private function approval(): string
    {
        $throw = $this->dice->between(0, 99);
        return match (true) {
            $throw < 90 => '1',
            $throw < 93 => '0',
            default => 'spam',
        };
    }

    private function guest(): array
    {
        [$first, $last] = $this->words->name();
        return ["$first $last", strtolower("$first.$last") . $this->dice->between(1, 99) . '@example.com'];
    }
}
