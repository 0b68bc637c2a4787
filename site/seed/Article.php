<?php
/** Articles in block markup, as the editor saves them. */
final class Article
{
    public function __construct(private Dice $dice, private Words $words) {}

    /**
     * Blocks of together about $bytes.
     *
     * @param array<array{int, string, string}> $images Id, address and caption of each picture to show.
     * @return string[]
     */
    public function blocks(int $bytes, array $images = []): array
    {
        $blocks = [$this->paragraph()];
        $length = strlen($blocks[0]);
        while ($images || $length < $bytes) {
            $block = $images && count($blocks) % 3 === 1 ? $this->image(...array_shift($images)) : $this->any();
            $blocks[] = $block;
            $length += strlen($block) + 2;
        }
        if (count($blocks) > 5) {
            array_splice($blocks, 2, 0, ["<!-- wp:more -->\n<!--more-->\n<!-- /wp:more -->"]);
        }
        return $blocks;
    }

    /**
     * A gallery of pictures, as the editor saves it.
     *
     * @param array<array{int, string, string}> $images Id, address and caption of each.
     */
    public function gallery(array $images): string
    {
        $pictures = '';
        foreach ($images as [$id, $url, $caption]) {
            $pictures .= "<!-- wp:image {\"id\":$id,\"sizeSlug\":\"medium\",\"linkDestination\":\"none\"} -->\n<figure class=\"wp-block-image size-medium\"><img src=\"$url\" alt=\"$caption\" class=\"wp-image-$id\"/></figure>\n<!-- /wp:image -->\n\n";
        }
        return "<!-- wp:gallery {\"linkTo\":\"none\"} -->\n<figure class=\"wp-block-gallery has-nested-images columns-default is-cropped\">" .
            $pictures .
            "</figure>\n<!-- /wp:gallery -->";
    }

    private function any(): string
    {
        $throw = $this->dice->between(0, 99);
        return match (true) {
            $throw < 66 => $this->paragraph(),
            $throw < 78 => $this->heading(),
            $throw < 86 => $this->bullets(),
            $throw < 92 => "<!-- wp:quote -->\n<blockquote class=\"wp-block-quote\"><!-- wp:paragraph -->\n<p>" .
                $this->words->sentences(2) .
                "</p>\n<!-- /wp:paragraph --><cite>" .
                implode(' ', $this->words->name()) .
                "</cite></blockquote>\n<!-- /wp:quote -->",
            $throw < 95
                => "<!-- wp:separator -->\n<hr class=\"wp-block-separator has-alpha-channel-opacity\"/>\n<!-- /wp:separator -->",
            $throw < 98 => $this->table(),
            default => "<!-- wp:code -->\n<pre class=\"wp-block-code\"><code>" .
                $this->words->topic() .
                ' --' .
                $this->words->topic() .
                '=' .
                $this->dice->hex(12) .
                "\n" .
                $this->dice->hex(64) .
                "</code></pre>\n<!-- /wp:code -->",
        };
    }

    private function paragraph(): string
    {
        $text = $this->words->sentences($this->dice->between(2, 7));
        if ($this->dice->chance(0.25)) {
            $text .= ' <strong>' . $this->words->sentence() . '</strong>';
        }
        if ($this->dice->chance(0.3)) {
            $text .=
                ' <a href="/?s=' .
                $this->words->topic() .
                '">' .
                $this->words->title(2) .
                '</a> ' .
                $this->words->sentence();
        }
        return "<!-- wp:paragraph -->\n<p>$text</p>\n<!-- /wp:paragraph -->";
    }

    private function heading(): string
    {
        return "<!-- wp:heading -->\n<h2>" .
            $this->words->title($this->dice->between(2, 6)) .
            "</h2>\n<!-- /wp:heading -->";
    }

    private function bullets(): string
    {
        $items = '';
        for ($i = $this->dice->between(3, 8); $i > 0; $i--) {
            $items .= "<!-- wp:list-item -->\n<li>" . $this->words->sentence() . "</li>\n<!-- /wp:list-item -->";
        }
        return "<!-- wp:list -->\n<ul>$items</ul>\n<!-- /wp:list -->";
    }

    private function table(): string
    {
        $rows = '';
        for ($i = $this->dice->between(3, 12); $i > 0; $i--) {
            $rows .=
                '<tr><td>' .
                $this->words->title(2) .
                '</td><td>' .
                $this->dice->between(1, 9999) .
                '</td><td>' .
                $this->words->topic() .
                '</td></tr>';
        }
        return "<!-- wp:table -->\n<figure class=\"wp-block-table\"><table><tbody>$rows</tbody></table></figure>\n<!-- /wp:table -->";
    }

    private function image(int $id, string $url, string $caption): string
    {
        return "<!-- wp:image {\"id\":$id,\"sizeSlug\":\"large\",\"linkDestination\":\"none\"} -->\n<figure class=\"wp-block-image size-large\"><img src=\"$url\" alt=\"$caption\" class=\"wp-image-$id\"/><figcaption class=\"wp-element-caption\">$caption</figcaption></figure>\n<!-- /wp:image -->";
    }
}
