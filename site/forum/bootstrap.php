<?php

declare(strict_types=1);

/** What every entry point begins with: the classes, and the rule that a warning is an error. */

spl_autoload_register(static function (string $class): void {
    if (str_starts_with($class, 'Forum\\')) {
        require __DIR__ . '/src/' . str_replace('\\', '/', substr($class, 6)) . '.php';
    }
});

set_error_handler(static function (int $level, string $message, string $file, int $line): bool {
    throw new ErrorException($message, 0, $level, $file, $line);
});
