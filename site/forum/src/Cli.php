<?php

declare(strict_types=1);

namespace Forum;

/** What the commands share: refusal outside a terminal, exit codes 0, 1 and 2, output line by line. */
final class Cli
{
    /** @param callable(): int $work Returns the exit code. */
    public static function main(callable $work): never
    {
        if (PHP_SAPI !== 'cli') {
            http_response_code(404);
            exit(2);
        }
        try {
            exit($work());
        } catch (Problem $problem) {
            self::say($problem->getMessage(), STDERR);
            exit(1);
        } catch (\Throwable $error) {
            self::say('It failed: ' . $error->getMessage(), STDERR);
            exit(1);
        }
    }

    /** @param resource $to */
    public static function say(string $line, mixed $to = STDOUT): void
    {
        fwrite($to, $line . "\n");
        fflush($to);
    }

    public static function usage(string $text): int
    {
        self::say($text, STDERR);
        return 2;
    }
}
