<?php

declare(strict_types=1);

namespace Forum;

use RuntimeException;

/** The text that visitors see in an error box; the code is the page's HTTP status. */
final class Problem extends RuntimeException
{
    public function __construct(string $message, public readonly int $status = 200)
    {
        parent::__construct($message);
    }
}
