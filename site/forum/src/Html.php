<?php

declare(strict_types=1);

namespace Forum;

/** Pages as text. Whatever comes from the database or the browser goes through text(). */
final class Html
{
    public static function text(mixed $value): string
    {
        return htmlspecialchars((string) $value, ENT_QUOTES | ENT_SUBSTITUTE, 'UTF-8');
    }

    /** @param string $root Path from the page to the folder of style.css */
    public static function page(string $title, string $body, string $root = ''): string
    {
        return self::head($title, $root) . $body . self::foot();
    }

    public static function head(string $title, string $root = ''): string
    {
        $title = self::text($title);
        return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>$title</title>\n" .
            "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n" .
            "<link rel=\"stylesheet\" href=\"{$root}style.css\">\n</head>\n<body>\n<main>\n<h1>$title</h1>\n";
    }

    public static function foot(): string
    {
        return "</main>\n</body>\n</html>\n";
    }

    public static function errorBox(string $message): string
    {
        return '<div class="error-box" role="alert">' . self::text($message) . "</div>\n";
    }

    /** @param array<string, scalar> $fields */
    public static function hidden(array $fields): string
    {
        $html = '';
        foreach ($fields as $name => $value) {
            $html .=
                sprintf('<input type="hidden" name="%s" value="%s">', self::text($name), self::text($value)) . "\n";
        }
        return $html;
    }

    /** Links to the pages of a list, of which page $current is shown. */
    public static function paging(string $base, int $current, int $pages): string
    {
        if ($pages < 2) {
            return '';
        }
        $near = array_filter([1, $current - 1, $current, $current + 1, $pages], fn(int $n) => $n >= 1 && $n <= $pages);
        $html = '';
        foreach (array_unique($near) as $n) {
            $class = $n === $current ? ' class="current"' : '';
            $html .= sprintf('<a href="%s"%s>%d</a> ', self::text($n === 1 ? $base : "$base/page-$n"), $class, $n);
        }
        return "<nav class=\"paging\">$html</nav>\n";
    }
}
