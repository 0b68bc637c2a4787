<?php
/** How much of everything a size means, and when it was written. Pure. */
final class Plan
{
    public const FIRST_DAY = '2015-06-01 06:00:00'; // UTC
    public const LAST_DAY = '2025-05-31 22:00:00';

    /** One `small` is about this many bytes of database and pictures of WordPress; measured. */
    private const SMALL_BYTES = 390_000_000;

    private function __construct(
        public readonly int $posts,
        public readonly int $pages,
        public readonly int $comments,
        public readonly int $revisions,
        public readonly int $users,
        public readonly int $images,
        public readonly int $categories,
        public readonly int $tags,
        public readonly int $gallery_images,
    ) {}

    /** @param int $bytes What `large` is to exceed. */
    public static function of(string $size, int $bytes = 0): self
    {
        $times = match ($size) {
            'small' => 1,
            'medium' => 10,
            'large' => max(10, intdiv($bytes, self::SMALL_BYTES) + 1),
            'tiny' => 0.02, // for tests of the generator
        };
        return new self(
            posts: (int) (2000 * $times),
            pages: 30,
            comments: (int) (20000 * $times),
            revisions: (int) (4000 * $times),
            users: max(20, (int) (300 * min($times, 100))),
            images: (int) (200 * $times),
            categories: 25,
            tags: (int) (400 * max(0.1, min($times, 10))),
            gallery_images: 'small' === $size ? 0 : min(100, (int) (200 * $times)), // pictures on one page
        );
    }

    /** An instant on the way from the first day (0.0) to the last (1.0), Unix time. */
    public static function instant(float $way): int
    {
        $first = strtotime(self::FIRST_DAY . ' UTC');
        return (int) ($first + $way * (strtotime(self::LAST_DAY . ' UTC') - $first));
    }

    public static function date(int $instant): string
    {
        return gmdate('Y-m-d H:i:s', $instant);
    }
}
