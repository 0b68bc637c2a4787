<?php

declare(strict_types=1);

namespace Forum\Seed;

/** How much is seeded. */
final class Size
{
    private const POSTS = ['small' => 200_000, 'medium' => 1_000_000, 'large' => 8_000_000];

    private function __construct(
        public readonly int $posts,
        public readonly int $threads,
        public readonly int $members,
        public readonly int $boards,
    ) {}

    /** A named size; $rows posts instead, where given. Null for a name that there is not. */
    public static function of(string $name, ?int $rows): ?self
    {
        $posts = $rows ?? (self::POSTS[$name] ?? null);
        if ($posts === null || !isset(self::POSTS[$name])) {
            return null;
        }
        return new self($posts, max(1, intdiv($posts, 20)), max(10, intdiv($posts, 40)), 12);
    }
}
